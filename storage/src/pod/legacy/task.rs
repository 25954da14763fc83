//! A task of the predecessor's file as one of ours.

use cofferdam_protocol::pod::{
    Config, INTERRUPTED, LegacyLogEntry, ModelChoice, Probe, SandboxMode, TaskId, TaskStatus, TaskSummary,
    cut,
};
use serde_json::json;
use serde_json::value::RawValue;

use super::raw::{self, is_true, last_elements, number, object, word};
use super::{LegacyTask, Notes, path, text};
use crate::pod::sandbox::is_windows;

/// The most entries of a transcript; the newest are taken.
const MAX_LOG: usize = 500;
/// The longest label, in UTF-16 units.
const MAX_LABEL: usize = 120;
/// The longest error, in UTF-16 units.
const MAX_ERROR: usize = 2000;
/// The most tools, and the longest name of one in UTF-16 units.
const MAX_TOOLS: (usize, usize) = (256, 128);

/// What is read of a task; whatever else it has is left out.
const FIELDS: [&str; 22] = [
    "id",
    "label",
    "status",
    "createdAt",
    "startedAt",
    "endedAt",
    "subdir",
    "taskDir",
    "childSessionId",
    "error",
    "turnEndKind",
    "finalText",
    "contextNote",
    "allow",
    "availableTools",
    "setupNote",
    "sandboxMode",
    "sandboxProbe",
    "fsDenied",
    "logCount",
    "turns",
    "log",
];

/// Reads a task. The error says why it is left out.
pub(super) fn read(
    raw: &RawValue,
    config: &Config,
    now: i64,
    place: &str,
    notes: &mut Notes,
) -> Result<LegacyTask, String> {
    let Ok(Some(task)) = object(raw.get(), &FIELDS) else {
        return Err("is not an object".to_owned());
    };
    let get = |name| task.get(name);
    let id = TaskId::new(raw::text(get("id"))).map_err(|error| format!("its id {error}"))?;
    let interrupted = Interrupted::of(text(get("status")).as_str());
    let (subdir, task_dir) = (path(get("subdir")), path(get("taskDir")));
    let fs_denied = is_true(get("fsDenied"));
    let label = Some(text(get("label"))).filter(|label| !label.is_empty()).unwrap_or_else(|| id.to_string());
    let error = cut(&text(get("error")), MAX_ERROR).to_owned();
    let ended_at = number(get("endedAt"));
    let summary = TaskSummary {
        session_id: text(get("childSessionId")),
        main_session_id: String::new(),
        status: interrupted.status,
        sandbox_root: root_of(&task_dir, &[id.as_str(), &subdir]),
        id: id.to_string(),
        label: cut(&label, MAX_LABEL).to_owned(),
        description: label,
        subdir,
        task_dir,
        created_at: number(get("createdAt")),
        queued_at: 0,
        started_at: number(get("startedAt")),
        ended_at: if interrupted.by_import && ended_at == 0 { now } else { ended_at },
        turns: number(get("turns")).max(1),
        timeout_ms: config.timeout_ms,
        allow: tools(get("allow")),
        available_tools: tools(get("availableTools")),
        preset_id: config.preset_id.clone(),
        model: ModelChoice::default(),
        sandbox_mode: word(get("sandboxMode")).map_or("", SandboxMode::as_str).to_owned(),
        sandbox_probe: probe(get("sandboxProbe"), fs_denied).map_or("", Probe::as_str).to_owned(),
        fs_denied,
        last_text: text(get("finalText")),
        error: if interrupted.by_import && error.is_empty() { INTERRUPTED.to_owned() } else { error },
        legacy: true,
        turn_deadline: 0,
        queued_position: 0,
    };
    let side = json!({
        "turnEndKind": text(get("turnEndKind")),
        "contextNote": text(get("contextNote")),
        "setupNote": text(get("setupNote")),
        "logCount": number(get("logCount")),
    });
    Ok(LegacyTask { summary, side: side.to_string(), log: transcript(get("log"), place, notes) })
}

/// What a task became.
struct Interrupted {
    status: TaskStatus,
    /// Whether it is interrupted because it is imported.
    by_import: bool,
}

impl Interrupted {
    /// What had not ended by the file has ended by now.
    fn of(word: &str) -> Self {
        match TaskStatus::parse(word).filter(|status| status.is_terminal()) {
            Some(status) => Self { status, by_import: false },
            None => Self { status: TaskStatus::Interrupted, by_import: true },
        }
    }
}

/// The sandbox root of that time: what holds the task's directory, if that is named as tasks' directories were. Empty
/// if it is not: what is not known to be a root must not be cleaned up in.
fn root_of(task_dir: &str, names: &[&str]) -> String {
    let windows = is_windows(task_dir);
    let is_separator = |c: char| c == '/' || (windows && c == '\\');
    let Some((parent, name)) = task_dir.rsplit_once(is_separator) else { return String::new() };
    if !(windows || task_dir.starts_with('/')) || name.is_empty() || !names.contains(&name) {
        return String::new();
    }
    match parent.trim_end_matches(is_separator) {
        "" if windows => String::new(),
        "" => "/".to_owned(),
        drive if windows && drive.ends_with(':') => format!("{drive}\\"),
        root => root.to_owned(),
    }
}

/// What the self-test found. Before it had outcomes, a file said only whether a write was refused.
fn probe(raw: Option<&RawValue>, fs_denied: bool) -> Option<Probe> {
    match raw {
        None => fs_denied.then_some(Probe::Denied),
        Some(_) if raw::text(raw).is_empty() => None,
        Some(_) => Some(word(raw).unwrap_or(Probe::Failed)),
    }
}

/// The names in an array, each once.
fn tools(raw: Option<&RawValue>) -> Vec<String> {
    let (most, longest) = MAX_TOOLS;
    let mut tools: Vec<String> = Vec::new();
    let array = raw.and_then(|raw| last_elements(raw, most));
    for raw in array.map(|array| array.elements).unwrap_or_default() {
        let name = match raw.get().starts_with('"') {
            true => raw::text(Some(raw)),
            false => continue,
        };
        if !name.is_empty() && cut(&name, longest).len() == name.len() && !tools.contains(&name) {
            tools.push(name);
        }
    }
    tools
}

fn transcript(raw: Option<&RawValue>, place: &str, notes: &mut Notes) -> Vec<LegacyLogEntry> {
    let Some(raw) = raw else { return Vec::new() };
    let Some(array) = last_elements(raw, MAX_LOG) else {
        notes.say(place, "its transcript is not an array; ignored");
        return Vec::new();
    };
    let all = array.elements.len();
    let log: Vec<_> = array.elements.into_iter().filter_map(entry).collect();
    if log.len() < all {
        let bad = all - log.len();
        notes.say(place, &format!("{bad} entries of its transcript are not objects; left out"));
    }
    if array.left_out > 0 {
        let left_out = array.left_out;
        notes.say(
            place,
            &format!("only the newest {MAX_LOG} entries of its transcript are taken, {left_out} are not"),
        );
    }
    log
}

fn entry(raw: &RawValue) -> Option<LegacyLogEntry> {
    let entry = object(raw.get(), &["seq", "type", "kind", "time", "text", "think"]).ok()??;
    let get = |name| entry.get(name);
    let (event, kind) = (text(get("type")), text(get("kind")));
    let kind = match kind.as_str() {
        "user" | "prompt" | "assistant" | "tool" | "turn" => kind,
        // The oldest files have none.
        _ => kind_of(&event).to_owned(),
    };
    let (seq, time) = (number(get("seq")), number(get("time")));
    Some(LegacyLogEntry { seq, event, kind, time, text: text(get("text")), think: text(get("think")) })
}

fn kind_of(event: &str) -> &'static str {
    match event {
        "user/message" => "user",
        "assistant/message" => "assistant",
        "tool/call" | "tool/result" => "tool",
        _ => "turn",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_of_a_task_is_told_from_its_directory() {
        for (task_dir, root) in [
            (r"E:\pods\a", r"E:\pods"),
            (r"E:\pods\\a", r"E:\pods"),
            (r"E:/pods/a", r"E:/pods"),
            (r"E:\a", r"E:\"),
            (r"\\nas\pods\sub", r"\\nas\pods"),
            ("/srv/pods/a", "/srv/pods"),
            ("/a", "/"),
            // A backslash is part of a name where `/` separates.
            (r"/srv/x\a", ""),
            // Damaged rows, the last of which names the root itself.
            (r"E:\pods\other", ""),
            (r"E:\pods\a\", ""),
            (r"\\a", ""),
            ("a", ""),
            ("x/a", ""),
            ("", ""),
            (r"E:\pods", ""),
        ] {
            assert_eq!(root_of(task_dir, &["a", "sub"]), root, "{task_dir}");
            assert_eq!(root_of(r"E:\pods\", &["a", ""]), "", "no subdirectory is no name");
        }
    }
}
