//! Why the store did not do something.

use std::io;
use std::path::PathBuf;

use cofferdam_protocol::session::{InvalidCursor, InvalidSessionId, SessionId};

/// One variant for each stable code of the wire; the texts are those of the wire.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An id is not a canonical UUID.
    #[error(transparent)]
    InvalidId(#[from] InvalidSessionId),
    /// A cursor is not one.
    #[error(transparent)]
    InvalidCursor(#[from] InvalidCursor),
    /// Out of bounds, or a workspace whose path is not UTF-8.
    #[error("invalid session management request: {0}")]
    InvalidRequest(String),
    /// There is no such session.
    #[error("session not found: {0}")]
    NotFound(SessionId),
    /// The filesystem refused.
    #[error("session {operation} failed for {}: {source}", path.display())]
    Io {
        /// What was tried, such as `resolve workspace`.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file cannot be used.
    #[error("session {id} is corrupt: {detail}")]
    Corrupt {
        /// The session.
        id: SessionId,
        /// Why.
        detail: String,
    },
    /// The file is of another schema.
    #[error("session {id} uses unsupported schema version {version}")]
    IncompatibleVersion {
        /// The session.
        id: SessionId,
        /// Its schema.
        version: u64,
    },
    /// The session belongs to another workspace.
    #[error("session {id} belongs to {stored}, not {requested}")]
    ScopeMismatch {
        /// The session.
        id: SessionId,
        /// Its workspace.
        stored: String,
        /// The one it was asked for in.
        requested: String,
    },
    /// Somebody else writes the session, or wrote it since it was read.
    #[error("session {0} changed concurrently")]
    Conflict(SessionId),
    /// The session is protected from removal.
    #[error("session {0} is protected")]
    ActiveSession(SessionId),
}

impl Error {
    /// An operation that the filesystem refused.
    pub(super) fn io(
        operation: &'static str,
        path: impl Into<PathBuf>,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::Io { operation, path: path.into(), source: source.into() }
    }
}
