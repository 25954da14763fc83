//! What the sidecar says unasked.

use serde::{Deserialize, Serialize};

use super::task::{TaskStatus, TaskSummary};

/// An event (spec §6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum PodEvent {
    /// A queued task has a slot now: prepare its agent.
    #[serde(rename = "queue.dispatch")]
    QueueDispatch {
        /// Which one.
        task_id: String,
    },
    /// A turn is out of time: cancel it. Said once a turn.
    #[serde(rename = "deadline.expired")]
    DeadlineExpired {
        /// Whose turn.
        task_id: String,
        /// Which turn.
        turn: u64,
    },
    /// Something that can be seen of a task has changed. Authoritative.
    #[serde(rename = "task.changed")]
    TaskChanged {
        /// Which one.
        task_id: String,
        /// Its status now.
        status: TaskStatus,
        /// All of it.
        task: Box<TaskSummary>,
    },
    /// How far an export is. Only for a host that asked for it with `features`.
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
    /// Something a person should know.
    #[serde(rename = "core.warning")]
    CoreWarning {
        /// What it is about, if about a task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task_id: Option<String>,
        /// For people.
        message: String,
    },
}

impl PodEvent {
    /// Which task it says has changed, if it says that.
    pub fn changed_task(&self) -> Option<&str> {
        match self {
            Self::TaskChanged { task_id, .. } => Some(task_id),
            Self::QueueDispatch { .. }
            | Self::DeadlineExpired { .. }
            | Self::ExportProgress { .. }
            | Self::CoreWarning { .. } => None,
        }
    }

    /// That a task has changed.
    pub fn changed(task: &TaskSummary) -> Self {
        Self::TaskChanged { task_id: task.id.clone(), status: task.status, task: Box::new(task.clone()) }
    }
}
