//! The stable error codes, and an error as it is sent.

use serde::{Deserialize, Serialize};

/// Which kind of failure (spec, *Response Envelope*). The list is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionErrorCode {
    /// An id is not a canonical UUID.
    InvalidId,
    /// A cursor was not made by this store.
    InvalidCursor,
    /// The request cannot be read, or is out of bounds.
    InvalidRequest,
    /// There is no such session.
    NotFound,
    /// The filesystem refused.
    Io,
    /// The session's file cannot be used.
    Corrupt,
    /// The session's file is of another schema.
    IncompatibleVersion,
    /// The session belongs to another workspace.
    ScopeMismatch,
    /// Somebody else writes the session, or wrote it meanwhile.
    Conflict,
    /// The session is protected from removal.
    ActiveSession,
}

/// An error object. Clients match on the code alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionError {
    /// Which kind.
    pub code: SessionErrorCode,
    /// For people; at most [`MESSAGE`](super::limits::MESSAGE) bytes.
    pub message: String,
    /// Whether an interactive caller can go on; always true today.
    pub recoverable: bool,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl SessionErrorCode {
    /// Every code.
    pub const ALL: [Self; 10] = [
        Self::InvalidId,
        Self::InvalidCursor,
        Self::InvalidRequest,
        Self::NotFound,
        Self::Io,
        Self::Corrupt,
        Self::IncompatibleVersion,
        Self::ScopeMismatch,
        Self::Conflict,
        Self::ActiveSession,
    ];

    /// The code on the wire.
    pub fn as_str(self) -> &'static str {
        todo!("the same text as serde's")
    }

    /// What to do next.
    pub fn hint(self) -> &'static str {
        todo!("one sentence each")
    }
}

impl SessionError {
    /// An error with its code's hint; the message without control characters and cut to its bound.
    pub fn new(code: SessionErrorCode, message: &str) -> Self {
        Self {
            code,
            message: super::text::bounded(message, super::limits::MESSAGE),
            recoverable: true,
            hint: Some(code.hint().to_owned()),
        }
    }
}
