//! The stable error codes, and an error as it is sent.

use serde::{Deserialize, Serialize};

use super::request::UnreadableRequest;

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("[{}] {message}", code.as_str())]
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
        match self {
            Self::InvalidId => "invalid_id",
            Self::InvalidCursor => "invalid_cursor",
            Self::InvalidRequest => "invalid_request",
            Self::NotFound => "not_found",
            Self::Io => "io",
            Self::Corrupt => "corrupt",
            Self::IncompatibleVersion => "incompatible_version",
            Self::ScopeMismatch => "scope_mismatch",
            Self::Conflict => "conflict",
            Self::ActiveSession => "active_session",
        }
    }

    /// What to do next.
    pub fn hint(self) -> &'static str {
        match self {
            Self::InvalidId => "Copy the full UUID from the session list.",
            Self::InvalidCursor => "Refresh the session list and page from its beginning.",
            Self::InvalidRequest => "Send one well-formed request within the documented bounds.",
            Self::NotFound => "Refresh the session list and choose an existing entry.",
            Self::Io => "Check that the session directories exist and may be read and written.",
            Self::Corrupt => "Check the ID; clear the session if its history is no longer needed.",
            Self::IncompatibleVersion => "Upgrade to a version that reads this schema, or clear the session.",
            Self::ScopeMismatch => "Resume the session from the workspace it belongs to.",
            Self::Conflict => "Wait until the other writer is done, then retry.",
            Self::ActiveSession => "Select another session before clearing this one.",
        }
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

impl From<&UnreadableRequest> for SessionError {
    fn from(unreadable: &UnreadableRequest) -> Self {
        let message = format!("invalid session management request: {unreadable}");
        Self::new(SessionErrorCode::InvalidRequest, &message)
    }
}
