//! The pod configuration and the rules by which a patch changes it.

use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::ids::MAX_NAME;
use super::text::cut;

/// What the self-test's doubtful outcomes mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxProbeMode {
    /// A sandbox that is not proven fails the task.
    Strict,
    /// It gives a warning.
    Warn,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the usual words")]
pub enum LogLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
    Off,
}

/// The configuration: exactly these 19 keys (spec §4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// The directory below which tasks work; empty: no task can be reserved.
    pub sandbox_root: String,
    /// Whether tasks may write; if not, `write` and `edit` are taken from their tools.
    pub allow_writes: bool,
    /// The tools a task may have at most; never empty.
    pub allowed_tools: Vec<String>,
    /// How long a turn may take: 30 000 to 7 200 000 ms.
    pub timeout_ms: i64,
    /// Whether an agent gets the last messages of the main conversation.
    pub read_context: bool,
    /// How many tasks may be starting or running: 1 to 8.
    pub max_concurrent: i64,
    /// Whether a task waits when all slots are taken.
    pub queue_enabled: bool,
    /// Whether anything can be exported.
    pub enable_export: bool,
    /// Whether an export's target may be remembered, to fill it in next time.
    pub allow_remember_choice: bool,
    /// The preset of an agent; empty: none.
    pub preset_id: String,
    /// How many ended tasks are kept: 1 to 5000.
    pub max_tasks: i64,
    /// How many export records are kept: 1 to 5000.
    pub max_exports: i64,
    /// For how many days ended tasks are kept: 0 (for ever) to 3650.
    pub retention_days: i64,
    /// The largest file that can be previewed: 16 384 to 1 048 576 bytes.
    pub preview_bytes: i64,
    /// The most characters of a preview: 200 to 20 000.
    pub preview_chars: i64,
    /// Whether undo compares hashes.
    pub export_verify: bool,
    /// What the self-test's doubtful outcomes mean.
    pub sandbox_probe_mode: SandboxProbeMode,
    /// Whether opening a task resumes it.
    pub auto_resume_on_open: bool,
    /// How much is logged.
    pub log_level: LogLevel,
}

impl Default for Config {
    fn default() -> Self {
        let tools = ["pwsh", "bash", "read", "write", "edit", "glob", "grep"];
        Self {
            sandbox_root: String::new(),
            allow_writes: true,
            allowed_tools: tools.map(str::to_owned).into(),
            timeout_ms: 600_000,
            read_context: true,
            max_concurrent: 3,
            queue_enabled: true,
            enable_export: true,
            allow_remember_choice: false,
            preset_id: String::new(),
            max_tasks: 200,
            max_exports: 200,
            retention_days: 0,
            preview_bytes: 307_200,
            preview_chars: 20_000,
            export_verify: true,
            sandbox_probe_mode: SandboxProbeMode::Strict,
            auto_resume_on_open: true,
            log_level: LogLevel::Info,
        }
    }
}

/// Why a directory cannot be the sandbox root.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootRefusal {
    /// `BAD_ROOT`: it is no usable absolute path, or cannot be made or opened.
    #[error("{0}")]
    Bad(String),
    /// `ROOT_PROTECTED`: it is, or holds, something no agent may write to.
    #[error("{0}")]
    Protected(String),
}

impl Config {
    /// How long a turn may take, in milliseconds.
    const TIMEOUT_MS: RangeInclusive<i64> = 30_000..=7_200_000;

    /// This configuration with a patch applied, and a message for each key of the patch that was adjusted, ignored or
    /// is unknown. `root` says what a sandbox root is to be called, or why it cannot be one; it is not asked about an
    /// empty one.
    pub fn patched(
        &self,
        patch: &Map<String, Value>,
        root: impl FnOnce(&str) -> Result<String, RootRefusal>,
    ) -> (Self, Vec<String>) {
        let mut to = self.clone();
        let mut patch = Patch { patch, keys: Vec::new(), messages: Vec::new() };
        patch.root("sandboxRoot", &mut to.sandbox_root, root);
        patch.flag("allowWrites", &mut to.allow_writes);
        patch.tools("allowedTools", &mut to.allowed_tools);
        patch.integer("timeoutMs", &mut to.timeout_ms, Self::TIMEOUT_MS);
        patch.flag("readContext", &mut to.read_context);
        patch.integer("maxConcurrent", &mut to.max_concurrent, 1..=8);
        patch.flag("queueEnabled", &mut to.queue_enabled);
        patch.flag("enableExport", &mut to.enable_export);
        patch.flag("allowRememberChoice", &mut to.allow_remember_choice);
        patch.name("presetId", &mut to.preset_id);
        patch.integer("maxTasks", &mut to.max_tasks, 1..=5000);
        patch.integer("maxExports", &mut to.max_exports, 1..=5000);
        patch.integer("retentionDays", &mut to.retention_days, 0..=3650);
        patch.integer("previewBytes", &mut to.preview_bytes, 16_384..=1_048_576);
        patch.integer("previewChars", &mut to.preview_chars, 200..=20_000);
        patch.flag("exportVerify", &mut to.export_verify);
        patch.word("sandboxProbeMode", &mut to.sandbox_probe_mode);
        patch.flag("autoResumeOnOpen", &mut to.auto_resume_on_open);
        patch.word("logLevel", &mut to.log_level);
        (to, patch.finish())
    }

    /// How long a turn of a task may take that asked for so much: in range; as configured, if it did not ask.
    pub fn timeout_for(&self, asked: Option<i64>) -> i64 {
        asked.unwrap_or(self.timeout_ms).clamp(*Self::TIMEOUT_MS.start(), *Self::TIMEOUT_MS.end())
    }

    /// The part of `asked` (everything, if nothing is asked) that a task may have: within `allowedTools`, without
    /// `write` and `edit` if writes are off, each once.
    pub fn effective_tools(&self, asked: Option<&[String]>) -> Vec<String> {
        let writes = |tool: &str| matches!(tool, "write" | "edit");
        let mut tools: Vec<String> = Vec::new();
        for tool in asked.unwrap_or(&self.allowed_tools) {
            let allowed = self.allowed_tools.contains(tool) && (self.allow_writes || !writes(tool));
            if allowed && !tools.contains(tool) {
                tools.push(tool.clone());
            }
        }
        tools
    }

    /// The part of `needed` that no task may have now.
    pub fn lacking_tools(&self, needed: &[String]) -> Vec<String> {
        let allowed = self.effective_tools(Some(needed));
        needed.iter().filter(|tool| !allowed.contains(tool)).cloned().collect()
    }
}

/// The most tools that can be allowed or seen.
pub(super) const MAX_TOOLS: usize = 256;
/// The longest name of a tool, in characters.
pub(super) const MAX_TOOL_NAME: usize = 128;
/// How many unknown keys are told apart.
const MAX_UNKNOWN: usize = 32;
/// The longest message, in UTF-16 units; what it quotes may be of any length.
const MAX_MESSAGE: usize = 500;

/// A patch while it is applied: each method is a kind of value, and takes one key.
struct Patch<'a> {
    patch: &'a Map<String, Value>,
    /// All keys that were asked for: those that there are.
    keys: Vec<&'static str>,
    messages: Vec<String>,
}

impl<'a> Patch<'a> {
    fn take(&mut self, key: &'static str) -> Option<&'a Value> {
        self.keys.push(key);
        self.patch.get(key)
    }

    fn say(&mut self, key: &str, what: &str) {
        self.messages.push(cut(&format!("{key}: {what}"), MAX_MESSAGE).to_owned());
    }

    fn flag(&mut self, key: &'static str, to: &mut bool) {
        match self.take(key) {
            None => {}
            Some(Value::Bool(flag)) => *to = *flag,
            Some(_) => self.say(key, "must be true or false; ignored"),
        }
    }

    /// Fractions are cut off, and what is out of range becomes the nearest that is not.
    fn integer(&mut self, key: &'static str, to: &mut i64, range: RangeInclusive<i64>) {
        let (min, max) = (*range.start(), *range.end());
        let asked = match self.take(key) {
            None => return,
            Some(Value::Number(asked)) => asked,
            Some(_) => return self.say(key, &format!("must be an integer from {min} to {max}; ignored")),
        };
        let floor = floor(asked);
        *to = floor.clamp(min, max);
        // As floats, since `5.0` is the integer 5.
        if *to != floor || asked.as_f64().is_some_and(|asked| asked.fract() != 0.0) {
            self.say(key, &format!("{asked} is no integer from {min} to {max}; {to} is used"));
        }
    }

    fn word<T: DeserializeOwned>(&mut self, key: &'static str, to: &mut T) {
        match self.take(key) {
            None => {}
            Some(word @ Value::String(_)) => match T::deserialize(word) {
                Ok(word) => *to = word,
                Err(error) => self.say(key, &format!("{error}; ignored")),
            },
            Some(_) => self.say(key, "must be a string; ignored"),
        }
    }

    fn name(&mut self, key: &'static str, to: &mut String) {
        match self.take(key) {
            None => {}
            Some(Value::String(name)) if name.chars().count() <= MAX_NAME => name.clone_into(to),
            Some(_) => {
                self.say(key, &format!("must be a string of at most {MAX_NAME} characters; ignored"));
            }
        }
    }

    /// Keeps the names that are fit to be one, each once; there must be one.
    fn tools(&mut self, key: &'static str, to: &mut Vec<String>) {
        let asked = match self.take(key) {
            None => return,
            Some(Value::Array(asked)) => asked,
            Some(_) => return self.say(key, "must be an array of names; ignored"),
        };
        let mut tools: Vec<String> = Vec::new();
        for name in asked.iter().filter_map(Value::as_str).map(str::trim) {
            let fits = !name.is_empty() && name.chars().count() <= MAX_TOOL_NAME;
            if fits && tools.len() < MAX_TOOLS && !tools.iter().any(|tool| tool == name) {
                tools.push(name.to_owned());
            }
        }
        if tools.is_empty() {
            return self.say(key, "must name at least one tool; ignored");
        }
        if tools != *asked {
            let limits = format!("at most {MAX_TOOLS}, of at most {MAX_TOOL_NAME} characters");
            self.say(key, &format!("kept what is a name, each once, {limits}"));
        }
        *to = tools;
    }

    fn root(
        &mut self,
        key: &'static str,
        to: &mut String,
        check: impl FnOnce(&str) -> Result<String, RootRefusal>,
    ) {
        let asked = match self.take(key) {
            None => return,
            Some(Value::String(asked)) => asked,
            Some(_) => return self.say(key, "must be a string; ignored"),
        };
        match if asked.is_empty() { Ok(String::new()) } else { check(asked) } {
            Ok(root) => *to = root,
            Err(RootRefusal::Bad(why)) => self.say(key, &format!("BAD_ROOT {why}")),
            Err(RootRefusal::Protected(why)) => self.say(key, &format!("ROOT_PROTECTED {why}")),
        }
    }

    /// All messages, with those about unknown keys at the end.
    fn finish(mut self) -> Vec<String> {
        let known = std::mem::take(&mut self.keys);
        let unknown: Vec<_> = self.patch.keys().filter(|key| !known.contains(&key.as_str())).collect();
        for key in unknown.iter().take(MAX_UNKNOWN) {
            self.say(cut(key, MAX_NAME), "there is no such key; ignored");
        }
        if unknown.len() > MAX_UNKNOWN {
            let more = unknown.len() - MAX_UNKNOWN;
            self.messages.push(format!("there are no such keys, either: {more} more; ignored"));
        }
        self.messages
    }
}

/// The largest integer that is not above a number, held to what an `i64` can hold.
pub(super) fn floor(number: &Number) -> i64 {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => integer,
        (None, float) => float.unwrap_or_default().floor() as i64,
    }
}
