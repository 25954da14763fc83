//! Why no answer came.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cofferdam_actors::session::recovery::ClientError;

/// Why no answer came.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransportError {
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
    /// Success without data.
    #[error("session response omitted data")]
    OmittedData,
    /// Failure without an error.
    #[error("session request failed without an error")]
    OmittedError,
}

/// Clients match on the code alone, which is the same for all of these.
impl From<TransportError> for ClientError {
    fn from(error: TransportError) -> Self {
        Self::transport(error.to_string())
    }
}
