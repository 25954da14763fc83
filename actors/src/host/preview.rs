//! What could be told to the main session about a task (spec §9.1, `previewReturn`).

use cofferdam_protocol::host::{MAX_PREVIEW, ReturnParts, ReturnPreview};
use cofferdam_protocol::pod::{FileText, TaskStatus, TaskSummary, cut};

use super::failure::HostFailure;

/// How much of a file is told, in characters.
pub(super) const FILE_CHARS: i64 = 1500;
/// How much of an error is told, in UTF-16 units.
const ERROR: usize = 120;
/// How much a person can add, in UTF-16 units.
const CUSTOM: usize = 1000;
/// Stands where a text was cut.
const CUT: &str = "… (cut)";

/// The text, made of the parts that are wanted. A file that cannot be read is said so in the text.
pub(super) fn preview(
    task: &TaskSummary,
    parts: &ReturnParts,
    file: Option<Result<FileText, HostFailure>>,
) -> ReturnPreview {
    let mut lines = vec![format!("Isolated task: {}", task.label)];
    if parts.status {
        let error = match shortened(&task.error, ERROR) {
            error if error.is_empty() => error,
            error => format!(" ({error})"),
        };
        lines.push(format!("Status: {}{error}", said(task.status)));
    }
    if parts.conclusion {
        let text = match task.last_text.trim() {
            "" => "(the agent said nothing)",
            text => text,
        };
        lines.push(format!("Conclusion: {text}"));
    }
    if let (Some(wanted), Some(file)) = (&parts.file, file) {
        let name = &wanted.rel_path;
        lines.push(match file {
            Ok(file) if file.truncated => format!("File {name}:\n{}{CUT}", file.text),
            Ok(file) => format!("File {name}:\n{}", file.text),
            Err(failure) => format!("File {name}: cannot be read: {failure}"),
        });
    }
    if !parts.custom_text.trim().is_empty() {
        lines.push(shortened(parts.custom_text.trim(), CUSTOM));
    }
    let text = lines.join("\n");
    match cut(&text, MAX_PREVIEW) == text {
        true => ReturnPreview { text, truncated: false },
        false => {
            let room = MAX_PREVIEW - CUT.encode_utf16().count();
            ReturnPreview { text: format!("{}{CUT}", cut(&text, room)), truncated: true }
        }
    }
}

/// A text, or its beginning with a mark.
fn shortened(text: &str, most: usize) -> String {
    match cut(text, most) {
        whole if whole == text => text.to_owned(),
        beginning => format!("{beginning}{CUT}"),
    }
}

/// A status in words.
fn said(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Queued => "waits for its turn",
        TaskStatus::Starting => "is being started",
        TaskStatus::Running => "still runs",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Timeout => "ran out of time",
        TaskStatus::Cancelled => "was cancelled",
        TaskStatus::Interrupted => "was interrupted",
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_protocol::host::ReturnedFile;
    use serde_json::json;

    use super::*;
    use crate::host::HostRefusal;

    fn task() -> TaskSummary {
        serde_json::from_value(json!({
            "id": "t", "sessionId": "s", "mainSessionId": "m", "label": "fix the bug", "description": "d",
            "status": "failed", "subdir": "", "taskDir": "/", "sandboxRoot": "/", "createdAt": 1, "queuedAt": 0,
            "startedAt": 0, "endedAt": 0, "turns": 1, "timeoutMs": 1, "allow": [], "availableTools": [],
            "presetId": "", "model": {}, "sandboxMode": "", "sandboxProbe": "", "fsDenied": false,
            "lastText": "It works now.", "error": "", "legacy": false, "turnDeadline": 0, "queuedPosition": 0,
        }))
        .unwrap()
    }

    #[track_caller]
    fn check(task: &TaskSummary, parts: &ReturnParts, expected: &str) {
        assert_eq!(preview(task, parts, None), ReturnPreview { text: expected.to_owned(), truncated: false });
    }

    #[test]
    fn a_preview_has_the_parts_that_are_wanted_in_their_order() {
        let all = ReturnParts { custom_text: " mine ".to_owned(), ..ReturnParts::default() };
        let said = "Isolated task: fix the bug\nStatus: failed\nConclusion: It works now.";
        check(&task(), &ReturnParts::default(), said);
        check(&task(), &all, &format!("{said}\nmine"));
        let none = ReturnParts { status: false, conclusion: false, ..ReturnParts::default() };
        check(&task(), &none, "Isolated task: fix the bug");
        let silent = TaskSummary { last_text: " ".to_owned(), error: "e".repeat(121), ..task() };
        let error = format!("{}… (cut)", "e".repeat(120));
        let said = format!(
            "Isolated task: fix the bug\nStatus: failed ({error})\nConclusion: (the agent said nothing)"
        );
        check(&silent, &ReturnParts::default(), &said);
    }

    #[test]
    fn a_file_is_quoted_and_one_that_cannot_be_read_is_said_so() {
        let file = Some(ReturnedFile { rel_path: "a.txt".to_owned() });
        let parts = ReturnParts { status: false, conclusion: false, file, custom_text: String::new() };
        let read = |text: &str, truncated| FileText {
            text: text.to_owned(),
            truncated,
            bytes: 1,
            chars: 1,
            encoding: "utf-8".to_owned(),
            binary: false,
        };
        let refused = HostFailure::from(HostRefusal::BadRequest("it is a directory".to_owned()));
        for (file, expected) in [
            (Ok(read("hello", false)), "File a.txt:\nhello"),
            (Ok(read("hel", true)), "File a.txt:\nhel… (cut)"),
            (Err(refused), "File a.txt: cannot be read: it is a directory"),
        ] {
            let text = preview(&task(), &parts, Some(file)).text;
            assert_eq!(text, format!("Isolated task: fix the bug\n{expected}"));
        }
    }

    #[test]
    fn a_long_preview_is_cut_to_4000_characters_and_says_so() {
        let long = TaskSummary { last_text: "é".repeat(4000), ..task() };
        let cut = preview(&long, &ReturnParts::default(), None);
        assert!(cut.truncated && cut.text.ends_with("é… (cut)"));
        assert_eq!(cut.text.encode_utf16().count(), 4000);
    }
}
