//! Why a call to the daemon failed, told apart as finely as a caller can act on.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cofferdam_protocol::ckpt::{FrameError, WsCkptErrorCode};

/// The result of a call to the daemon.
pub type Result<T> = std::result::Result<T, CkptError>;

/// Why a call to the daemon failed.
#[derive(Debug, thiserror::Error)]
pub enum CkptError {
    /// Nobody answers at the socket, or the connection broke. The request may have been carried out if it broke late.
    #[error("cannot reach the daemon at {}: {source}", path.display())]
    Connection {
        /// The socket.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The call took longer than it was given. The daemon may still carry it out.
    #[error("no answer within {} ms; the daemon may still be working on it", .0.as_millis())]
    Timeout(Duration),
    /// What came back is not this protocol, or what was to be sent does not fit into it.
    #[error("protocol: {0}")]
    Protocol(String),
    /// The daemon did not do it.
    #[error("{message}")]
    Daemon {
        /// Which kind of failure.
        code: WsCkptErrorCode,
        /// The daemon's words.
        message: String,
    },
}

impl CkptError {
    /// The code, if it was the daemon that refused.
    pub fn code(&self) -> Option<WsCkptErrorCode> {
        match self {
            Self::Daemon { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// What a failed exchange of frames means to the caller.
    pub(super) fn of_frame(error: FrameError, path: &std::path::Path, limit: Option<Duration>) -> Self {
        let timed_out =
            |source: &io::Error| matches!(source.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock);
        match (error, limit) {
            (FrameError::Io(source), Some(limit)) if timed_out(&source) => Self::Timeout(limit),
            (FrameError::Io(source), _) => Self::Connection { path: path.to_owned(), source },
            (other, _) => Self::Protocol(other.to_string()),
        }
    }
}
