//! How every failure reaches the pod's wire: the one table from what went wrong to a stable code, a text and data.

use cofferdam_protocol::pod::{PodErrorCode as Code, RootRefusal, TaskStatus};
use cofferdam_storage::pod::Error;
use serde_json::{Value, json};

/// Why a request was not carried out, as a host is told.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Which kind.
    pub code: Code,
    /// For people; what happened and what to do next.
    pub message: String,
    /// What belongs to it; `null` if nothing does.
    pub data: Value,
}

/// What the actors refuse, or what failed below them.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// `initialize` comes first.
    #[error("not initialized; send initialize first")]
    NotInitialized,
    /// The sidecar is stopping.
    #[error("the sidecar is stopping")]
    Stopping,
    /// More requests wait than there is room for.
    #[error("too many requests wait already; send fewer at a time")]
    Overloaded,
    /// The request makes no sense, whatever the state.
    #[error("{0}")]
    BadRequest(String),
    /// The host speaks another protocol.
    #[error(
        "the host speaks protocol {0}, this sidecar speaks 1; install host and sidecar of the same release"
    )]
    Protocol(i64),
    /// No such task.
    #[error("no such task: {0}")]
    TaskNotFound(String),
    /// A migrated task can only be looked at, exported and removed.
    #[error("{0} comes from an older version and can only be looked at, exported and removed")]
    LegacyReadonly(String),
    /// Somebody else holds the task, or nobody does.
    #[error("the lease is not the one that holds the task; reattach it first")]
    StaleLease,
    /// There is no sandbox root.
    #[error("no sandbox root is set; choose one in the configuration")]
    NoSandboxRoot,
    /// The sandbox root cannot be used.
    #[error(transparent)]
    Root(#[from] RootRefusal),
    /// The subdirectory breaks a rule.
    #[error("{0}")]
    Subdir(String),
    /// The id or the session is taken, all slots are, or another lease is live.
    #[error("{message}")]
    Busy {
        /// For people.
        message: String,
        /// After how many milliseconds to try again, if that is known.
        retry_after_ms: Option<u64>,
    },
    /// No such export.
    #[error("no such export: {0}")]
    ExportNotFound(String),
    /// An active task cannot be deleted.
    #[error("the task is {}; cancel it first", .0.as_str())]
    Running(TaskStatus),
    /// What is asked makes sense only of a task that has not ended.
    #[error("the task is {}; reattach it first", .0.as_str())]
    NotResumable(TaskStatus),
    /// The configuration leaves a task nothing to work with.
    #[error("{0}")]
    Config(String),
    /// The disk or the database failed.
    #[error(transparent)]
    Storage(#[from] Error),
    /// A batch of changes could not be made durable; none of them happened.
    #[error("the change could not be saved, and did not happen: {0}; try again")]
    NotSaved(String),
    /// A request panicked; what it had not finished did not happen.
    #[error("internal error while working on the request; the log says more")]
    Panicked,
}

impl Refusal {
    /// Something is taken, and nobody knows for how long.
    pub(super) fn busy(message: &str) -> Self {
        Self::Busy { message: message.to_owned(), retry_after_ms: None }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        let (code, data) = match refusal {
            Refusal::NotInitialized => (Code::CoreUnavailable, json!({"reason": "NOT_INITIALIZED"})),
            Refusal::Stopping => (Code::CoreUnavailable, json!({"reason": "STOPPING"})),
            Refusal::Overloaded => (Code::CoreUnavailable, json!({"reason": "OVERLOADED"})),
            Refusal::BadRequest(_) => (Code::BadRequest, Value::Null),
            Refusal::Protocol(actual) => (Code::ProtocolMismatch, json!({"expected": 1, "actual": actual})),
            Refusal::TaskNotFound(_) => (Code::TaskNotFound, Value::Null),
            Refusal::LegacyReadonly(_) => (Code::LegacyReadonly, Value::Null),
            Refusal::ExportNotFound(_) => (Code::ExportNotFound, Value::Null),
            Refusal::StaleLease => (Code::StaleLease, Value::Null),
            Refusal::NoSandboxRoot => (Code::NoSandboxRoot, Value::Null),
            Refusal::Root(RootRefusal::Bad(_)) => (Code::BadRoot, Value::Null),
            Refusal::Root(RootRefusal::Protected(_)) => (Code::RootProtected, Value::Null),
            Refusal::Subdir(_) => (Code::BadSubdir, Value::Null),
            Refusal::Busy { retry_after_ms: None, .. } => (Code::TaskBusy, Value::Null),
            Refusal::Busy { retry_after_ms: Some(ms), .. } => (Code::TaskBusy, json!({"retryAfterMs": ms})),
            Refusal::Running(_) => (Code::TaskRunning, Value::Null),
            Refusal::NotResumable(_) => (Code::TaskNotResumable, Value::Null),
            Refusal::Config(_) => (Code::ConfigInvalid, Value::Null),
            Refusal::Storage(error) => of_storage(&error),
            Refusal::NotSaved(_) => (Code::DbError, Value::Null),
            Refusal::Panicked => (Code::Internal, Value::Null),
        };
        Self { code, message, data }
    }
}

fn of_storage(error: &Error) -> (Code, Value) {
    match error {
        Error::Locked(_) => (Code::DbError, json!({"reason": "LOCKED"})),
        Error::NewerSchema { found, known } => {
            (Code::SchemaMismatch, json!({"expected": known, "actual": found}))
        }
        Error::Database(_) => (Code::DbError, Value::Null),
        Error::Io { source, .. } => (Code::DbError, json!({"os": source.to_string()})),
        Error::BadRoot { source, .. } => (Code::BadRoot, json!({"os": source.to_string()})),
        Error::PathOutside(_) => (Code::PathOutside, Value::Null),
    }
}
