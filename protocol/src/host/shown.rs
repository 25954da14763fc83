//! The documents in which the host shows itself: status, state and diagnostics (spec §9), and a task's transcript.

use serde::{Deserialize, Serialize};

use crate::pod::{Config, Diagnostic, DiagnosticsReport, ExportRecord, LogLevel, TaskSummary};

/// A task, and what only the host knows of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRow {
    /// What the core keeps.
    #[serde(flatten)]
    pub task: TaskSummary,
    /// Whether an agent is there: it may be in a turn or wait for one.
    pub live: bool,
    /// Whether it has ended and could get an agent again: it is no migrated one, its directory is there, and its preset can
    /// go on with an old conversation.
    pub can_resume: bool,
}

/// How the core is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CoreState {
    /// Whether and how it can be used.
    pub status: CoreStatus,
    /// Why not, for people; empty if it can.
    pub message: String,
    /// The code that starting a task gets; `null` if it can be started.
    pub code: Option<crate::pod::PodErrorCode>,
    /// Whether it runs in this process or in one of its own.
    pub embedded: bool,
    /// Its version; empty while it is not known.
    pub version: String,
    /// The protocol it speaks; 0 while that is not known.
    pub protocol: i64,
    /// The schema of its database; 0 while that is not known.
    pub schema_version: i64,
    /// Its process; 0 while there is none.
    pub pid: u32,
    /// How often it was started since the host was.
    pub starts: u64,
}

impl CoreState {
    /// A core of which nothing is known yet.
    pub fn starting(embedded: bool) -> Self {
        Self {
            status: CoreStatus::Starting,
            message: String::new(),
            code: None,
            embedded,
            version: String::new(),
            protocol: 0,
            schema_version: 0,
            pid: 0,
            starts: 0,
        }
    }
}

/// Whether and how the core can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CoreStatus {
    /// It is being started.
    Starting,
    /// It answers.
    Ready,
    /// It is of another release: no task starts, everything else goes on.
    Mismatch,
    /// It is gone, or never came; it will be started again.
    Down,
}

/// A choice of preset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresetChoice {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Whether it cannot be used.
    pub broken: bool,
    /// Why it cannot be used, and what to do. An addition, as all that follows: left out where it says nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The tools that have to be allowed for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Those of them that the configuration does not allow now: no task can be started with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    /// Whether its agent can be told more, and resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumable: bool,
}

/// What is to be said of the sandbox root (spec §9.1, last paragraph).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxVerdict {
    /// Whether a root is set.
    pub set: bool,
    /// It.
    pub root: String,
    /// Whether it is there; if not, it will be made.
    pub exists: bool,
    /// Whether the main session's directory is known.
    pub cwd_known: bool,
    /// It; empty if it is not known.
    pub main_cwd: String,
    /// Whether the root is that directory or lies in it; `false` if it is not known.
    pub inside_main_cwd: bool,
    /// Whether the root lies in a directory for temporary files, which some agents' own sandboxes leave writable.
    pub in_temp: bool,
}

/// What the host can do, and what a panel therefore offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compat {
    /// Whether `/isolation-pod/bootstrap` can answer.
    pub bootstrap: bool,
    /// Whether pages carry the row `__DSH_IPP__`.
    pub index_inject: bool,
    /// Whether there are live events.
    pub events: bool,
    /// Whether agents can be given more to do.
    pub follow_up: bool,
}

/// What `getState` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// [`HOST_BUILD`](super::HOST_BUILD).
    pub build: u32,
    /// The version of the host's side.
    pub plugin_version: String,
    /// Grows with every change of anything below but `sandbox`.
    pub revision: u64,
    /// The core.
    pub core: CoreState,
    /// The configuration as it is stored, as the core said it last; `null` before the core came for the first time.
    pub config: Option<Config>,
    /// Tools to choose from, sorted.
    pub tool_choices: Vec<String>,
    /// Presets to choose from.
    pub preset_choices: Vec<PresetChoice>,
    /// The sandbox root and the main session.
    pub sandbox: SandboxVerdict,
    /// All tasks, newest first; `lastText` is cut at 600 UTF-16 units.
    pub tasks: Vec<TaskRow>,
    /// The newest 50 export records, newest first; each with 20 files at most.
    pub exports: Vec<ExportRecord>,
    /// Where the main session's last export went, if that was to be remembered; else empty.
    pub remembered_target: String,
    /// The last 20, oldest first.
    pub diagnostics: Vec<Diagnostic>,
    /// What the host can do.
    pub compat: Compat,
    /// The core's database.
    pub store_path: String,
}

/// What `GET /isolation-pod/status` answers, to anybody on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// [`HOST_BUILD`](super::HOST_BUILD).
    pub build: u32,
    /// The version of the host's side.
    pub plugin_version: String,
    /// The first 8 characters of the token.
    pub token_prefix: String,
    /// The core.
    pub core: CoreState,
    /// How many tasks there are.
    pub task_count: usize,
    /// The core's database.
    pub store_path: String,
    /// The core's program; empty if it runs in this process.
    pub core_path: String,
    /// The sandbox.
    pub sandbox: StatusSandbox,
    /// What the host can do.
    pub compat: Compat,
    /// The last 20, oldest first.
    pub diagnostics: Vec<Diagnostic>,
}

/// The sandbox, in a status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusSandbox {
    /// The root; empty: none.
    pub root: String,
    /// The sessions that are live: agents of tasks, and main sessions with a client.
    pub live_sessions: Vec<LiveSession>,
}

/// A session that is live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveSession {
    /// Its id.
    pub id: String,
    /// `pod`, `main` or `subagent`.
    pub origin: String,
    /// Where it works.
    pub cwd: String,
    /// Whether that is in the sandbox root.
    pub inside_sandbox: bool,
}

/// What `getDiagnostics` answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticsPage {
    /// [`HOST_BUILD`](super::HOST_BUILD).
    pub build: u32,
    /// The version of the host's side.
    pub plugin_version: String,
    /// How the core is.
    pub core: CoreState,
    /// What the core says of itself; `null` while it does not answer.
    pub core_report: Option<DiagnosticsReport>,
    /// The core's program; empty if it runs in this process.
    pub core_path: String,
    /// The last lines the core's process wrote on stderr; without secrets, since the core logs none.
    pub stderr_tail: Vec<String>,
    /// The last 50 of host and core, oldest first.
    pub diagnostics: Vec<Diagnostic>,
    /// Agents that are live.
    pub live_agents: usize,
    /// Main sessions with a client.
    pub main_sessions: usize,
    /// What the host can do.
    pub compat: Compat,
    /// How much the core logs; `null` while it does not answer.
    pub log_level: Option<LogLevel>,
}

/// What a task's agent said and did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transcript {
    /// In order.
    pub entries: Vec<TranscriptEntry>,
    /// What to ask for next.
    pub next: u64,
    /// Whether older entries than the first are gone.
    pub truncated: bool,
}

/// One thing that was said or done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptEntry {
    /// Its number, from 1.
    pub seq: u64,
    /// What it is.
    pub kind: EntryKind,
    /// When, in milliseconds since the epoch; 0 where that is not known, as of what is read from a stored conversation.
    pub time: i64,
    /// What; at most 4000 UTF-16 units.
    pub text: String,
}

/// What an entry of a transcript is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// What the agent was told first.
    Prompt,
    /// What it was told later.
    User,
    /// What it said.
    Assistant,
    /// What it thought.
    Thinking,
    /// A tool it called, or what came of that.
    Tool,
    /// A turn that began or ended.
    Turn,
    /// What the host has to say.
    Note,
}

/// The turns a task had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnList {
    /// Oldest first, the last 1000.
    pub turns: Vec<TurnRow>,
    /// What can be undone; nothing if nothing was done.
    pub undo: Option<Undoable>,
}

impl TurnList {
    /// The turns that led to the one that is named, with it, newest first; as far as that is known, and of those that are
    /// listed.
    pub fn line(&self, newest: Option<u64>) -> Vec<u64> {
        let mut line = Vec::new();
        let mut next = newest;
        for row in self.turns.iter().rev() {
            // Where it is not known, nothing was gone back to: each turn came after the one before it.
            if next.is_none_or(|next| next == row.turn) {
                line.push(row.turn);
                next = row.after;
            }
        }
        line
    }
}

/// A rewind, or the undoing of one, as far as it can be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Undoable {
    /// What is undone.
    pub of: WayBack,
    /// Before which turn the rewind led that was made, or was undone.
    pub turn: u64,
    /// When that was, in milliseconds since the epoch; 0 if nobody knows.
    pub at: i64,
    /// The turns that come back, oldest first.
    pub brings: Vec<u64>,
    /// The turns that are taken back, oldest first.
    pub takes: Vec<u64>,
    /// What will not be as it was, since it could not be kept; empty: nothing.
    pub incomplete: String,
}

/// A way back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WayBack {
    /// To before a turn.
    #[default]
    Rewind,
    /// To before a rewind.
    Undo,
}

impl WayBack {
    /// What is done by undoing it.
    pub fn undone(self) -> Self {
        match self {
            Self::Rewind => Self::Undo,
            Self::Undo => Self::Rewind,
        }
    }
}

/// A turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRow {
    /// Its number; numbers only grow, whatever is gone back to.
    pub turn: u64,
    /// When it began, in milliseconds since the epoch.
    pub at: i64,
    /// The beginning of what was asked; at most 200 UTF-16 units.
    pub asked: String,
    /// Whether there is a checkpoint from before it, so that it can be gone back to.
    pub checkpoint: bool,
    /// Why there is none; empty if there is one.
    pub note: String,
    /// What is missing in the checkpoint, and will not be as it was; empty: nothing.
    pub incomplete: String,
    /// Whether the task has what was done in it; otherwise a rewind took it back.
    pub stands: bool,
    /// The turn whose end it began at; 0: it was the first. Not there if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}
