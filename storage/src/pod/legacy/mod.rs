//! The predecessor's file, `isolation-pod.json`, read leniently: one bad element costs that element at most.
//!
//! Its writer cut texts in the middle of characters and numbers were never checked, so genuine files hold what strict
//! parsers refuse. Nothing is parsed that is not used, and only one element at a time: a file can be large.

mod export;
mod raw;
mod task;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use cofferdam_protocol::pod::{
    Config, Diagnostic, ExportRecord, LegacyLogEntry, LogLevel, TaskSummary, cut, repair_numbers,
    repair_surrogates,
};
use rustix::fs::OFlags;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::sandbox::{Protected, check_root};

/// The largest file that is read; several times the largest its writer could make.
const MAX_FILE: u64 = 64 << 20;
/// The newest tasks and exports that are taken, as its own reader did.
const MAX_RECORDS: usize = 200;
/// The longest value of the configuration that is looked at, in bytes.
const MAX_CONFIG_VALUE: usize = 64 << 10;

/// What the file held.
#[derive(Debug)]
pub(super) struct Legacy {
    /// BLAKE3 of its bytes, to tell that it was imported.
    pub(super) hash: String,
    /// The configuration that its nine keys make of the defaults.
    pub(super) config: Config,
    /// Its tasks in the file's order.
    pub(super) tasks: Vec<LegacyTask>,
    /// Its exports in the file's order.
    pub(super) exports: Vec<ExportRecord>,
    /// What was dropped or replaced.
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// One of its tasks.
#[derive(Debug)]
pub(super) struct LegacyTask {
    /// As the wire shows it.
    pub(super) summary: TaskSummary,
    /// What the wire has no place for, as a JSON object.
    pub(super) side: String,
    /// Its transcript.
    pub(super) log: Vec<LegacyLogEntry>,
}

/// Reads the file; `None` if there is none. The error says why nothing of it can be used.
pub(super) fn read(path: &Path, protected: &Protected, now: i64) -> Result<Option<Legacy>, String> {
    match bytes_of(path) {
        Ok(bytes) => parse(bytes, protected, now).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    // A FIFO would keep the start waiting.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_FILE {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 64 MiB")),
        false => Ok(bytes),
    }
}

fn parse(bytes: Vec<u8>, protected: &Protected, now: i64) -> Result<Legacy, String> {
    let hash = blake3::hash(&bytes).to_hex().to_string();
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let top = raw::object(text, &["version", "config", "tasks", "exports"]);
    let Some(top) = top.map_err(|error| format!("it is not JSON: {error}"))? else {
        return Err("it is not a JSON object".to_owned());
    };
    let version = raw::number(top.get("version"));
    if version > 1 {
        return Err(format!("it has version {version}, and 1 is the newest that is known"));
    }
    let mut notes = Notes { at: now, diagnostics: Vec::new() };
    let config = config_of(top.get("config"), protected, &mut notes);
    let tasks = records("tasks", top.get("tasks"), &mut notes, |raw, place, notes| {
        let task = task::read(raw, &config, now, place, notes)?;
        Ok((task.summary.id.clone(), task))
    });
    let exports = records("exports", top.get("exports"), &mut notes, |raw, place, notes| {
        let export = export::read(raw, place, notes)?;
        Ok((export.id.clone(), export))
    });
    Ok(Legacy { hash, config, tasks, exports, diagnostics: notes.diagnostics })
}

/// The nine keys by the rules of any other patch.
fn config_of(raw: Option<&RawValue>, protected: &Protected, notes: &mut Notes) -> Config {
    const KEYS: [&str; 9] = [
        "sandboxRoot",
        "allowWrites",
        "allowedTools",
        "timeoutMs",
        "readContext",
        "maxConcurrent",
        "enableExport",
        "allowRememberChoice",
        "presetId",
    ];
    let Some(raw) = raw else { return Config::default() };
    let Ok(Some(config)) = raw::object(raw.get(), &KEYS) else {
        notes.say("config", "is not an object; the defaults are used");
        return Config::default();
    };
    let mut patch = Map::new();
    for key in KEYS {
        let Some(raw) = config.get(key) else { continue };
        let value = match raw.get().len() > MAX_CONFIG_VALUE {
            true => None,
            false => serde_json::from_str(&repair_numbers(&repair_surrogates(raw.get()))).ok(),
        };
        match value {
            // Its writer stored a blank as it was typed.
            Some(Value::String(root)) if key == "sandboxRoot" => {
                patch.insert(key.to_owned(), root.trim().into());
            }
            Some(value) => {
                patch.insert(key.to_owned(), value);
            }
            None => notes.say("config", &format!("{key} is too large or too deep; ignored")),
        }
    }
    let (config, messages) = Config::default().patched(&patch, |root| check_root(root, protected));
    for message in messages {
        notes.say("config", &message);
    }
    config
}

/// The newest elements of an array, each read by `read`, which gives its id as well, or says why it is left out. Of
/// elements with the same id the last one counts, and stands where the first one stood.
fn records<T>(
    what: &str,
    raw: Option<&RawValue>,
    notes: &mut Notes,
    read: impl Fn(&RawValue, &str, &mut Notes) -> Result<(String, T), String>,
) -> Vec<T> {
    let Some(raw) = raw else { return Vec::new() };
    let Some(array) = raw::last_elements(raw, MAX_RECORDS) else {
        notes.say(what, "is not an array; ignored");
        return Vec::new();
    };
    if array.left_out > 0 {
        notes
            .say(what, &format!("only the newest {MAX_RECORDS} are taken, {} older are not", array.left_out));
    }
    let mut records: Vec<(String, T)> = Vec::new();
    for (nth, raw) in array.elements.into_iter().enumerate() {
        let place = format!("{what}[{}]", array.left_out + nth);
        match read(raw, &place, notes) {
            Err(why) => notes.say(&place, &format!("{why}; left out")),
            Ok((id, record)) => match records.iter_mut().find(|(known, _)| *known == id) {
                Some((_, known)) => {
                    notes.say(&place, "takes the place of an earlier one with the same id");
                    *known = record;
                }
                None => records.push((id, record)),
            },
        }
    }
    records.into_iter().map(|(_, record)| record).collect()
}

/// What a person should know about the import.
struct Notes {
    at: i64,
    diagnostics: Vec<Diagnostic>,
}

impl Notes {
    fn say(&mut self, place: &str, what: &str) {
        let message = format!("isolation-pod.json: {place}: {what}");
        self.diagnostics.push(Diagnostic { at: self.at, level: LogLevel::Warn, message });
    }
}

/// The longest text that is taken over, in UTF-16 units.
const MAX_TEXT: usize = 4000;

/// A text, cut to what there is room for.
fn text(raw: Option<&RawValue>) -> String {
    let text = raw::text(raw);
    cut(&text, MAX_TEXT).to_owned()
}

/// A path; empty if it is longer than any, since a part of it would be another path.
fn path(raw: Option<&RawValue>) -> String {
    let path = raw::text(raw);
    if cut(&path, MAX_TEXT).len() == path.len() { path } else { String::new() }
}
