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
