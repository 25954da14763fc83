//! The stable error codes.

use serde::{Deserialize, Serialize};

/// Why a request was refused. The names on the wire never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(
    missing_docs,
    reason = "the names are the contract's own; what each means stands with the error that has it"
)]
pub enum PodErrorCode {
    UnknownMethod,
    BadRequest,
    CoreUnavailable,
    ProtocolMismatch,
    SchemaMismatch,
    DbError,
    Internal,
    StaleLease,
    NoSandboxRoot,
    BadRoot,
    BadSubdir,
    RootProtected,
    PathOutside,
    TaskNotFound,
    TaskBusy,
    TaskRunning,
    TaskNotResumable,
    ExportDisabled,
    TargetInsideSandbox,
    ExportLimit,
    ExportNotFound,
    FileTooLarge,
    FileNotFound,
    BinaryFile,
    UndoConflict,
    LegacyReadonly,
    ConfigInvalid,
}
