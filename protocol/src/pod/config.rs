//! The pod configuration and the rules by which a patch changes it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
    /// This configuration with a patch applied, and a message for each key of the patch that was adjusted, ignored or
    /// is unknown. `root` says what a sandbox root is to be called, or why it cannot be one; it is not asked about an
    /// empty one.
    pub fn patched(
        &self,
        patch: &Map<String, Value>,
        root: impl FnOnce(&str) -> Result<String, RootRefusal>,
    ) -> (Self, Vec<String>) {
        let _ = (patch, root);
        todo!()
    }

    /// The part of `asked` (everything, if nothing is asked) that a task may have: within `allowedTools`, without
    /// `write` and `edit` if writes are off.
    pub fn effective_tools(&self, asked: Option<&[String]>) -> Vec<String> {
        let _ = asked;
        todo!()
    }
}
