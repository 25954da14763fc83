//! How every failure reaches the session wire: the one table from what went wrong to a stable code.

use cofferdam_protocol::session::{SessionError, SessionErrorCode as Code};
use cofferdam_storage::session::Error;

/// The error object of a failure.
pub fn error_of(error: &Error) -> SessionError {
    let code = match error {
        Error::InvalidId(_) => Code::InvalidId,
        Error::InvalidCursor(_) => Code::InvalidCursor,
        Error::InvalidRequest(_) => Code::InvalidRequest,
        Error::NotFound(_) => Code::NotFound,
        Error::Io { .. } => Code::Io,
        Error::Corrupt { .. } => Code::Corrupt,
        Error::IncompatibleVersion { .. } => Code::IncompatibleVersion,
        Error::ScopeMismatch { .. } => Code::ScopeMismatch,
        Error::Conflict(_) => Code::Conflict,
        Error::ActiveSession(_) => Code::ActiveSession,
    };
    SessionError::new(code, &error.to_string())
}

/// An error that is nobody's fault but ours. The list of codes is closed: `io` is the one that blames neither request nor
/// session, so that no client gives a conversation up over it.
pub(super) fn internal_error(what: &str) -> SessionError {
    let hint = Some("Try again; if it happens once more, the log says what to report.".to_owned());
    SessionError { hint, ..SessionError::new(Code::Io, &format!("internal error: {what}")) }
}
