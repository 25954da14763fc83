//! What the host says unasked, to whoever listens at `/api/v1/events`.

use serde::{Deserialize, Serialize};

use super::shown::{CoreState, TaskRow, TranscriptEntry};

/// An event. Whoever cannot keep up is told [`Lost`](Self::Lost) and asks for the state anew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum HostEvent {
    /// Something that can be seen of a task has changed.
    #[serde(rename = "task.changed")]
    TaskChanged {
        /// Which one.
        task_id: String,
        /// All of it.
        task: Box<TaskRow>,
    },
    /// A task's record is gone.
    #[serde(rename = "task.removed")]
    TaskRemoved {
        /// Which one.
        task_id: String,
    },
    /// An agent said or did something.
    #[serde(rename = "task.entry")]
    TaskEntry {
        /// Whose agent.
        task_id: String,
        /// What.
        entry: TranscriptEntry,
    },
    /// Configuration or export records have changed, or the core was exchanged: ask for the state.
    #[serde(rename = "state.changed")]
    StateChanged,
    /// How far an export is.
    #[serde(rename = "export.progress")]
    ExportProgress {
        /// Which one.
        export_id: String,
        /// Whose files.
        task_id: String,
        /// How many files are done.
        done: usize,
        /// Of how many.
        total: usize,
    },
    /// The core came or went.
    #[serde(rename = "core.changed")]
    CoreChanged {
        /// How it is now.
        core: CoreState,
    },
    /// A message for a main session. Goes only to the client that is attached to it.
    #[serde(rename = "main.message")]
    MainMessage(MainMessage),
    /// Events were left out since the listener took them too slowly.
    #[serde(rename = "events.lost")]
    Lost,
}

/// A message that a person sent from a task to a main session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MainMessage {
    /// The main session.
    pub session_id: String,
    /// The message's id, `ipp-ret-…`; a message that is delivered again has the same one.
    pub id: String,
    /// What is said.
    pub text: String,
    /// When, in milliseconds since the epoch.
    pub at: i64,
}
