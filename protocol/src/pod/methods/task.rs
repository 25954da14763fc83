//! `task.*` and `sandbox.prepare`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lenient;
use super::{Answer, drop_last};
use crate::pod::{LeaseId, ModelChoice, SandboxCheck, SandboxPolicy, TaskId, TaskStatus, TaskSummary};

/// Asks for all tasks (spec §5).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskList {}

/// All tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskRows {
    /// Newest first; descriptions and errors are cut at 2000 UTF-16 units.
    pub tasks: Vec<TaskSummary>,
    /// `true` if older ones were left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Asks for one task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskGet {
    /// Which.
    pub task_id: String,
}

/// A task after whatever was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResult {
    /// All of it.
    pub task: TaskSummary,
}

/// Makes a task, its directory and its lease; starts or queues it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskReserve {
    /// The record's id, also the name of its directory.
    pub task_id: TaskId,
    /// The agent's session.
    #[serde(deserialize_with = "lenient::name")]
    pub session_id: String,
    /// The conversation it is started from.
    #[serde(default, deserialize_with = "lenient::name_or_empty")]
    pub main_session_id: String,
    /// A short name; without one, the beginning of the description.
    #[serde(default)]
    pub label: Option<String>,
    /// What it is asked to do, at most 64 KiB.
    #[serde(default, deserialize_with = "lenient::description")]
    pub description: String,
    /// Below the sandbox root.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub subdir: String,
    /// How long a turn may take, in milliseconds; without it, what the configuration says.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub timeout_ms: Option<i64>,
    /// The tools it may use; without it, those of the configuration.
    #[serde(default, deserialize_with = "lenient::strings")]
    pub allow: Option<Vec<String>>,
    /// The preset; without it, that of the configuration.
    #[serde(default, deserialize_with = "lenient::optional_name")]
    pub preset_id: Option<String>,
    /// The model.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub model: ModelChoice,
    /// Who holds it from now on.
    pub lease_id: LeaseId,
}

/// A task that was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reserved {
    /// All of it.
    pub task: TaskSummary,
    /// Whether it has a slot.
    pub start_now: bool,
    /// Its place in the queue, from 1; 0 if it has a slot.
    pub queued_position: usize,
    /// Where it may write, if it has a slot.
    pub policy: Option<SandboxPolicy>,
}

/// Takes an ended task up again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskReattach {
    /// Which.
    pub task_id: String,
    /// Who holds it from now on.
    pub lease_id: LeaseId,
}

/// Says that the host prepares the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskMarkStarting {
    /// Which.
    pub task_id: String,
    /// Who holds it.
    pub lease_id: LeaseId,
}

/// Says that the agent is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskMarkRunning {
    /// Which.
    pub task_id: String,
    /// Who holds it.
    pub lease_id: LeaseId,
}

/// Says that a turn began.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskTurnStarted {
    /// Which.
    pub task_id: String,
    /// Who holds it.
    pub lease_id: LeaseId,
    /// The agent's number for the turn.
    #[serde(deserialize_with = "lenient::turn")]
    pub turn: u64,
}

/// Says how a turn ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskTurnEnded {
    /// Which.
    pub task_id: String,
    /// Who holds it.
    pub lease_id: LeaseId,
    /// The agent's number for the turn.
    #[serde(deserialize_with = "lenient::turn")]
    pub turn: u64,
    /// Why, in the agent's words; may only be missing if it timed out.
    #[serde(default)]
    pub reason: Option<String>,
    /// Whether the host ended it for being late.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub timed_out: bool,
    /// The last text of the agent.
    #[serde(default)]
    pub last_text: Option<String>,
}

/// Says what the agent said last.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskSetLastText {
    /// Which.
    pub task_id: String,
    /// Who holds it.
    pub lease_id: LeaseId,
    /// The text; cut at 4000 UTF-16 units.
    pub text: String,
}

/// Says what the sandbox's self-test found.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskSetSandboxCheck {
    /// Which.
    pub task_id: String,
    /// Who holds it.
    pub lease_id: LeaseId,
    /// The verdict.
    pub check: SandboxCheck,
}

/// Says which tools the agent was seen to have.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskSetAvailableTools {
    /// Which.
    pub task_id: String,
    /// Who holds it.
    pub lease_id: LeaseId,
    /// Their names; 256 at most are kept.
    #[serde(deserialize_with = "lenient::tools")]
    pub tools: Vec<String>,
}

/// Says that something went wrong outside of a turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskSetError {
    /// Which.
    pub task_id: String,
    /// Who holds it.
    pub lease_id: LeaseId,
    /// What kind; kept in the audit only.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub code: String,
    /// For people; cut at 2000 UTF-16 units.
    pub message: String,
}

/// Asks for a task to be cancelled.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskCancel {
    /// Which.
    pub task_id: String,
}

/// Says that the holder is alive.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskHeartbeat {
    /// Which.
    pub task_id: String,
    /// Who holds it.
    pub lease_id: LeaseId,
}

/// That it was heard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeartbeatResult {
    /// Always `true`.
    pub ok: bool,
    /// All of it.
    pub task: TaskSummary,
}

/// Removes a task's directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskCleanupFiles {
    /// Whose.
    pub task_id: String,
}

/// That it is gone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CleanupFilesResult {
    /// Always `true`.
    pub ok: bool,
    /// Whether it was there.
    pub removed: bool,
}

/// Deletes a task's record, not its files.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskDelete {
    /// Which.
    pub task_id: String,
}

/// That it is gone.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskDeleted {
    /// Always `true`.
    pub ok: bool,
    /// Which.
    pub task_id: String,
}

/// Asks for the task of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskBySession {
    /// The agent's session; not empty.
    #[serde(deserialize_with = "lenient::name")]
    pub session_id: String,
}

/// A task, if there is one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskOrNull {
    /// All of it.
    pub task: Option<TaskSummary>,
}

/// Asks for the transcript of a migrated task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskLegacyLog {
    /// Whose.
    pub task_id: String,
}

/// The transcript of a migrated task; empty for another one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LegacyLog {
    /// In order.
    pub entries: Vec<LegacyLogEntry>,
    /// `true` if older ones were left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// What else the predecessor's file said of the task: `turnEndKind`, `contextNote`, `setupNote`, `logCount`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Value>,
}

/// A line of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegacyLogEntry {
    /// Its number in the agent's session.
    pub seq: i64,
    /// The kind of event, such as `assistant/message`.
    #[serde(rename = "type")]
    pub event: String,
    /// How it is shown: `user`, `prompt`, `assistant`, `tool` or `turn`.
    pub kind: String,
    /// When, in milliseconds since the epoch.
    pub time: i64,
    /// What.
    pub text: String,
    /// What the agent thought.
    pub think: String,
}

/// Deletes many tasks, at most 500 at once, oldest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskBulkCleanup {
    /// Of these statuses; completed, if it is missing.
    #[serde(default)]
    pub statuses: Option<Vec<TaskStatus>>,
    /// Only what ended longer ago than that.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub older_than_ms: Option<i64>,
    /// Whether their files go too.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub delete_files: bool,
}

/// What became of each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BulkCleanupResult {
    /// Task by task.
    pub results: Vec<BulkCleanupRow>,
    /// How many are gone.
    pub deleted: usize,
    /// Whether more than 500 matched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// What became of one task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BulkCleanupRow {
    /// Which.
    pub task_id: String,
    /// Whether it is gone.
    pub ok: bool,
    /// Why not; empty if it is.
    pub code: String,
    /// For people.
    pub message: String,
}

/// Asks where a task may write.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxPrepare {
    /// Which.
    pub task_id: String,
}

/// Where a task may write.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SandboxPrepared {
    /// The policy.
    pub policy: SandboxPolicy,
    /// All of it.
    pub task: TaskSummary,
}

impl Answer for TaskRows {
    fn shorten(&mut self, excess: usize) -> bool {
        self.truncated = true;
        drop_last(&mut self.tasks, excess)
    }
}

impl Answer for LegacyLog {
    fn shorten(&mut self, excess: usize) -> bool {
        self.truncated = true;
        // In order, so the oldest come first.
        self.entries.reverse();
        let dropped = drop_last(&mut self.entries, excess);
        self.entries.reverse();
        dropped
    }
}

impl Answer for TaskResult {}
impl Answer for Reserved {}
impl Answer for HeartbeatResult {}
impl Answer for CleanupFilesResult {}
impl Answer for TaskDeleted {}
impl Answer for TaskOrNull {}
impl Answer for BulkCleanupResult {}
impl Answer for SandboxPrepared {}
