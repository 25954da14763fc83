//! A task as the wire shows it.

use serde::{Deserialize, Serialize};

use super::methods::lenient;
use super::text::cut;

/// Where a task is in its life (spec §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskStatus {
    /// Waits for a slot.
    Queued,
    /// Has a slot; the host is making the agent ready.
    Starting,
    /// Has a slot; a turn runs or may begin.
    Running,
    /// The last turn ended by itself.
    Completed,
    /// The last turn or the set-up failed.
    Failed,
    /// A turn outran its deadline.
    Timeout,
    /// Somebody cancelled it.
    Cancelled,
    /// A restart, or a host that was lost, ended it.
    Interrupted,
}

impl TaskStatus {
    /// All of them, in the order of the contract.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Starting,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Timeout,
        Self::Cancelled,
        Self::Interrupted,
    ];

    /// Whether the task takes one of the `maxConcurrent` slots.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }

    /// Whether it has ended.
    pub fn is_terminal(self) -> bool {
        !self.is_active() && self != Self::Queued
    }

    /// The word on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// The status of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// The model an agent runs with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelChoice {
    /// Who serves it.
    #[serde(deserialize_with = "lenient::name_or_empty")]
    pub provider: String,
    /// Its name there.
    #[serde(deserialize_with = "lenient::name_or_empty")]
    pub model: String,
    /// How hard it thinks, if that can be chosen.
    #[serde(deserialize_with = "lenient::optional_name")]
    pub reasoning_effort: Option<String>,
}

/// A task as hosts see it (spec §5). Times are milliseconds since the epoch, 0 if it never came to that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskSummary {
    /// The record's id; not the session's.
    pub id: String,
    /// The agent's session; may be empty for a migrated task.
    pub session_id: String,
    /// The conversation it was started from; may be empty.
    pub main_session_id: String,
    /// A short name, at most 120 UTF-16 units.
    pub label: String,
    /// What it was asked to do, at most 64 KiB.
    pub description: String,
    /// Where it is in its life.
    pub status: TaskStatus,
    /// Below the sandbox root; empty: none.
    pub subdir: String,
    /// Its own directory.
    pub task_dir: String,
    /// The sandbox root when it was reserved; empty if a migrated task's cannot be told.
    pub sandbox_root: String,
    /// When it was reserved.
    pub created_at: i64,
    /// When it was queued.
    pub queued_at: i64,
    /// When its last turn began.
    pub started_at: i64,
    /// When it ended last.
    pub ended_at: i64,
    /// How many turns were begun.
    pub turns: i64,
    /// How long a turn may take, in milliseconds.
    pub timeout_ms: i64,
    /// The tools it may use.
    pub allow: Vec<String>,
    /// The tools it was seen to have.
    pub available_tools: Vec<String>,
    /// The preset it was started with; may be empty.
    pub preset_id: String,
    /// The model it was started with.
    pub model: ModelChoice,
    /// What its sandbox allowed in the self-test; empty before that.
    pub sandbox_mode: String,
    /// What the self-test found; empty before it.
    pub sandbox_probe: String,
    /// Whether a write outside was refused.
    pub fs_denied: bool,
    /// The newest text of the agent, at most 4000 UTF-16 units.
    pub last_text: String,
    /// Why it failed, at most 2000 UTF-16 units; empty if it did not.
    pub error: String,
    /// Whether it was migrated from the predecessor's file: it can be looked at, exported and removed.
    pub legacy: bool,
    /// When the open turn will be out of time; 0 if none is open.
    pub turn_deadline: i64,
    /// Its place in the queue, from 1; 0 if it is not queued.
    pub queued_position: usize,
}

impl TaskSummary {
    /// How much of a description or an error a list shows, in UTF-16 units.
    const LISTED: usize = 2000;

    /// The task as a list shows it: with a description and an error of at most 2000 UTF-16 units.
    pub fn for_list(mut self) -> Self {
        self.description.truncate(cut(&self.description, Self::LISTED).len());
        self.error.truncate(cut(&self.error, Self::LISTED).len());
        self
    }
}
