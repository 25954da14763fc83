//! Why a client could not choose, resume or remove a session.

use std::fmt;

use cofferdam_protocol::session::SessionError;

/// An error as a client shows it. Match on the code alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// One of the stable codes as the core or the provider said it, [`TRANSPORT`](Self::TRANSPORT), or
    /// [`RESTORE_FAILED`](Self::RESTORE_FAILED).
    pub code: String,
    /// For people.
    pub message: String,
    /// Whether the user can go on.
    pub recoverable: bool,
    /// What to do next.
    pub hint: Option<String>,
}

impl ClientError {
    /// The core could not be asked, or gave no answer of the protocol.
    pub const TRANSPORT: &str = "transport";
    /// A turn that was to resume a session did not.
    pub const RESTORE_FAILED: &str = "restore_failed";

    /// The core could not be asked.
    pub fn transport(message: impl Into<String>) -> Self {
        Self::new(Self::TRANSPORT, message, "Check where the core program is (COSH_CORE_PATH) and try again.")
    }

    pub(super) fn new(code: &str, message: impl Into<String>, hint: &str) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            recoverable: true,
            hint: Some(hint.to_owned()),
        }
    }
}

/// What the core says is passed on as it is.
impl From<SessionError> for ClientError {
    fn from(SessionError { code, message, recoverable, hint }: SessionError) -> Self {
        Self { code: code.as_str().to_owned(), message, recoverable, hint }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.code, self.message)
    }
}

impl std::error::Error for ClientError {}
