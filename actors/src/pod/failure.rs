//! How every failure reaches the pod's wire: the one table from what went wrong to a stable code, a text and data.

use cofferdam_protocol::pod::{PROTOCOL_VERSION, PodErrorCode as Code, RootRefusal, TaskStatus};
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
        "the host speaks protocol {0}, this sidecar speaks {ours}; install host and sidecar of the same release",
        ours = PROTOCOL_VERSION
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
    /// Other tasks have their files there, too.
    #[error("other tasks have files in that directory: {}; remove those tasks first", .0.join(", "))]
    SharedWith(Vec<String>),
    /// Exports are off.
    #[error("exports are off in the configuration")]
    ExportDisabled,
    /// An export that runs cannot be undone.
    #[error("the export still runs; undo it when it has ended")]
    ExportRuns,
    /// The record of an export that runs cannot be deleted.
    #[error("the export still runs; delete its record when it has ended")]
    RecordInUse,
    /// No such export.
    #[error("no such export: {0}")]
    ExportNotFound(String),
    /// An active task cannot be deleted.
    #[error("the task's status is {}; cancel it first", .0.as_str())]
    Running(TaskStatus),
    /// What is asked makes sense only of a task that has not ended.
    #[error("the task's status is {}; reattach it first", .0.as_str())]
    NotResumable(TaskStatus),
    /// The configuration leaves a task nothing to work with.
    #[error("{0}")]
    Config(String),
    /// The disk or the database failed.
    #[error(transparent)]
    Storage(#[from] Error),
    /// A batch of changes could not be made durable; none of them happened.
    #[error("the change did not happen, try it again later: it could not be saved: {0}")]
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
            Refusal::Protocol(actual) => {
                (Code::ProtocolMismatch, json!({"expected": PROTOCOL_VERSION, "actual": actual}))
            }
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
            Refusal::SharedWith(tasks) => (Code::TaskBusy, json!({"sharedWith": tasks})),
            Refusal::ExportDisabled => (Code::ExportDisabled, Value::Null),
            Refusal::ExportRuns => (Code::UndoConflict, json!({"reason": "RUNNING"})),
            Refusal::RecordInUse => (Code::TaskBusy, Value::Null),
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
        Error::BadRequest(_) => (Code::BadRequest, Value::Null),
        Error::FileNotFound(_) => (Code::FileNotFound, Value::Null),
        Error::NotAFile { kind, .. } => (Code::BadRequest, json!({"type": kind})),
        Error::FileTooLarge { size, limit } => (Code::FileTooLarge, json!({"size": size, "limit": limit})),
        Error::Binary { size } => (Code::BinaryFile, json!({"binary": true, "size": size})),
        Error::RootProtected(_) => (Code::RootProtected, Value::Null),
        Error::Files { source, .. } => (Code::Internal, json!({"os": source.to_string()})),
        Error::TargetInsideSandbox(_) => (Code::TargetInsideSandbox, Value::Null),
        Error::ExportLimit { limit, value } => {
            (Code::ExportLimit, json!({"limit": limit.word(), "value": value}))
        }
        Error::UndoConflict { reason, .. } => (Code::UndoConflict, json!({"reason": reason})),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use cofferdam_protocol::pod::FileType;

    use super::*;

    #[track_caller]
    fn check(refusal: impl Into<Refusal>, code: Code, data: Value, message: &str) {
        assert_eq!(Failure::from(refusal.into()), Failure { code, message: message.to_owned(), data });
    }

    #[test]
    fn what_the_actors_refuse_reaches_the_wire_with_its_code_text_and_data() {
        let text = || "x".to_owned();
        check(
            Refusal::NotInitialized,
            Code::CoreUnavailable,
            json!({"reason": "NOT_INITIALIZED"}),
            "not initialized; send initialize first",
        );
        check(
            Refusal::Stopping,
            Code::CoreUnavailable,
            json!({"reason": "STOPPING"}),
            "the sidecar is stopping",
        );
        check(
            Refusal::Overloaded,
            Code::CoreUnavailable,
            json!({"reason": "OVERLOADED"}),
            "too many requests wait already; send fewer at a time",
        );
        check(Refusal::BadRequest(text()), Code::BadRequest, Value::Null, "x");
        check(
            Refusal::Protocol(2),
            Code::ProtocolMismatch,
            json!({"expected": 1, "actual": 2}),
            "the host speaks protocol 2, this sidecar speaks 1; install host and sidecar of the same release",
        );
        check(Refusal::TaskNotFound(text()), Code::TaskNotFound, Value::Null, "no such task: x");
        check(
            Refusal::LegacyReadonly(text()),
            Code::LegacyReadonly,
            Value::Null,
            "x comes from an older version and can only be looked at, exported and removed",
        );
        check(
            Refusal::StaleLease,
            Code::StaleLease,
            Value::Null,
            "the lease is not the one that holds the task; reattach it first",
        );
        check(
            Refusal::NoSandboxRoot,
            Code::NoSandboxRoot,
            Value::Null,
            "no sandbox root is set; choose one in the configuration",
        );
        check(RootRefusal::Bad(text()), Code::BadRoot, Value::Null, "x");
        check(RootRefusal::Protected(text()), Code::RootProtected, Value::Null, "x");
        check(Refusal::Subdir(text()), Code::BadSubdir, Value::Null, "x");
        check(Refusal::busy("x"), Code::TaskBusy, Value::Null, "x");
        check(
            Refusal::Busy { message: text(), retry_after_ms: Some(7) },
            Code::TaskBusy,
            json!({"retryAfterMs": 7}),
            "x",
        );
        check(
            Refusal::SharedWith(vec![text(), "y".to_owned()]),
            Code::TaskBusy,
            json!({"sharedWith": ["x", "y"]}),
            "other tasks have files in that directory: x, y; remove those tasks first",
        );
        check(
            Refusal::ExportDisabled,
            Code::ExportDisabled,
            Value::Null,
            "exports are off in the configuration",
        );
        check(
            Refusal::ExportRuns,
            Code::UndoConflict,
            json!({"reason": "RUNNING"}),
            "the export still runs; undo it when it has ended",
        );
        check(
            Refusal::RecordInUse,
            Code::TaskBusy,
            Value::Null,
            "the export still runs; delete its record when it has ended",
        );
        check(Refusal::ExportNotFound(text()), Code::ExportNotFound, Value::Null, "no such export: x");
        check(
            Refusal::Running(TaskStatus::Starting),
            Code::TaskRunning,
            Value::Null,
            "the task's status is starting; cancel it first",
        );
        check(
            Refusal::NotResumable(TaskStatus::Timeout),
            Code::TaskNotResumable,
            Value::Null,
            "the task's status is timeout; reattach it first",
        );
        check(Refusal::Config(text()), Code::ConfigInvalid, Value::Null, "x");
        check(
            Refusal::NotSaved(text()),
            Code::DbError,
            Value::Null,
            "the change did not happen, try it again later: it could not be saved: x",
        );
        check(
            Refusal::Panicked,
            Code::Internal,
            Value::Null,
            "internal error while working on the request; the log says more",
        );
    }

    #[test]
    fn what_the_disk_and_the_database_say_reaches_the_wire_likewise() {
        let text = || "x".to_owned();
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let os = json!({"os": "permission denied"});
        check(
            Error::Locked(text()),
            Code::DbError,
            json!({"reason": "LOCKED"}),
            "the database is in use by another process; close that one first: x",
        );
        check(
            Error::NewerSchema { found: 2, known: 1 },
            Code::SchemaMismatch,
            json!({"expected": 1, "actual": 2}),
            "the database has schema version 2, this program knows 1; use the newer program",
        );
        check(Error::Database(text()), Code::DbError, Value::Null, "the database cannot be used: x");
        check(
            Error::Io { what: text(), source: denied() },
            Code::DbError,
            os.clone(),
            "x: permission denied",
        );
        check(
            Error::BadRoot { what: text(), source: denied() },
            Code::BadRoot,
            os.clone(),
            "x: permission denied",
        );
        check(Error::PathOutside(text()), Code::PathOutside, Value::Null, "x");
        check(
            Error::NotAFile { path: text(), kind: FileType::Directory, what: "a directory" },
            Code::BadRequest,
            json!({"type": "directory"}),
            "x is a directory and not a file; only a file can be read",
        );
        check(
            Error::FileTooLarge { size: 9, limit: 8 },
            Code::FileTooLarge,
            json!({"size": 9, "limit": 8}),
            "the file has 9 bytes, a preview 8 at most; export it to read it elsewhere",
        );
        check(
            Error::Binary { size: 9 },
            Code::BinaryFile,
            json!({"binary": true, "size": 9}),
            "the file is neither UTF-8 nor UTF-16 with a byte order mark; export it to open it elsewhere",
        );
        check(Error::RootProtected(text()), Code::RootProtected, Value::Null, "x");
        check(
            Error::Files { what: text(), source: denied() },
            Code::Internal,
            os.clone(),
            "x: permission denied",
        );
    }
}
