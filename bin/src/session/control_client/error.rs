//! Why a management call failed.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cofferdam_protocol::session::{OutOfBounds, SessionError, SessionErrorCode};

/// The result of a management call.
pub(super) type Result<T> = std::result::Result<T, SessionClientError>;

/// Why a management call failed. Both kinds are recoverable.
#[derive(Debug, thiserror::Error)]
pub enum SessionClientError {
    /// The program's own error, unchanged; or the one it would have given to a request that was not sent.
    #[error("{}", .0.message)]
    Refused(SessionError),
    /// No answer came. Whether the request was carried out is not known.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// Why no answer came.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The request cannot be printed.
    #[error("session request cannot be encoded: {0}")]
    Encode(serde_json::Error),
    /// The program cannot be started.
    #[error("failed to run {}: {source}", program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It cannot be seen whether the program has ended.
    #[error("session program cannot be watched: {0}")]
    Watch(io::Error),
    /// The deadline passed.
    #[error("session request exceeded {}ms", .0.as_millis())]
    TimedOut(Duration),
    /// The program does not take the request.
    #[error("session request write failed: {0}")]
    Write(io::Error),
    /// The program's output cannot be read.
    #[error("session {stream} read failed: {source}")]
    Read {
        /// `stdout` or `stderr`.
        stream: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// The program prints more than it may.
    #[error("session {stream} exceeded {max} bytes")]
    TooMuch {
        /// `stdout` or `stderr`.
        stream: &'static str,
        /// How many it may print.
        max: usize,
    },
    /// The program ended too early.
    #[error("session program exited before consuming the complete request")]
    NotConsumed,
    /// What the program printed is not one JSON value. Holds why, and what it said to people.
    #[error("invalid JSON session response: {0}")]
    NotJson(String),
    /// What the program printed is JSON of another shape.
    #[error("invalid session response data: {0}")]
    Shape(String),
    /// The program answered another request.
    #[error("wrong session action in the response")]
    WrongAction,
    /// Success without data.
    #[error("session response omitted data")]
    OmittedData,
    /// Failure without an error.
    #[error("session request failed without an error")]
    OmittedError,
    /// A page of a plan that leads back.
    #[error("non-advancing session plan cursor")]
    NotAdvancing,
}

impl SessionClientError {
    /// The code: one of the protocol's, or `transport`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused(error) => error.code.as_str(),
            Self::Transport(_) => "transport",
        }
    }

    /// What to do next, if there is anything to say.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Refused(error) => error.hint.as_deref(),
            Self::Transport(_) => Some("Check which cosh-core is run (COSH_CORE_PATH), then retry."),
        }
    }
}

/// The error of a request that is not sent, since the program would refuse it.
pub(super) fn refused(why: OutOfBounds) -> SessionClientError {
    let message = format!("invalid session management request: {why}");
    SessionClientError::Refused(SessionError::new(SessionErrorCode::InvalidRequest, &message))
}
