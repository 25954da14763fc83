//! Why the host's requests do not reach the core, or come back without an answer, and how that reaches the wire.

use std::time::Duration;

use cofferdam_protocol::pod::{MAX_REQUEST_LINE, PodErrorCode as Code};
use serde_json::{Value, json};

use crate::pod::Failure;

/// What keeps a request from being answered by the core itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// The core is not there yet.
    #[error("the core is being started; try again in a moment")]
    Starting,
    /// The core is not there, and why.
    #[error("the core is down: {0}; it is started again by itself")]
    Down(String),
    /// The core was there when it was asked, and is gone.
    #[error("the core has ended before it answered; see what has become of it before you ask again")]
    Ended,
    /// The core has not answered in time.
    #[error(
        "the core has not answered within {} ms; see what has become of it before you ask again",
        .0.as_millis()
    )]
    Late(Duration),
    /// More requests wait than there is room for.
    #[error("too many requests wait for the core already; send fewer at a time")]
    Overloaded,
    /// The request does not fit into a line.
    #[error("the request has {0} bytes, a line may have {MAX_REQUEST_LINE}; ask for less at a time")]
    TooLong(usize),
    /// Only the keeper sends this.
    #[error("{0} is sent by the host itself; to begin anew, restart the core")]
    Reserved(&'static str),
    /// The request cannot be written, or its answer not be read.
    #[error("{0}")]
    Unreadable(String),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        let unavailable = |reason: &str| (Code::CoreUnavailable, json!({"reason": reason}));
        let (code, data) = match refusal {
            Refusal::Starting => unavailable("STARTING"),
            Refusal::Down(_) => unavailable("DOWN"),
            Refusal::Ended => unavailable("ENDED"),
            Refusal::Late(_) => unavailable("TIMEOUT"),
            Refusal::Overloaded => unavailable("OVERLOADED"),
            Refusal::TooLong(_) => (Code::BadRequest, json!({"limit": MAX_REQUEST_LINE})),
            Refusal::Reserved(_) => (Code::BadRequest, Value::Null),
            Refusal::Unreadable(_) => (Code::Internal, Value::Null),
        };
        Self { code, message, data }
    }
}

/// Why the core cannot be used, or not for everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    /// What starting a task is answered with.
    pub(super) code: Code,
    /// For people.
    pub(super) message: String,
}

impl Trouble {
    /// There is no core that could be asked.
    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self { code: Code::CoreUnavailable, message: message.into() }
    }
}

impl From<Failure> for Trouble {
    fn from(Failure { code, message, .. }: Failure) -> Self {
        Self { code, message }
    }
}

impl From<Trouble> for Failure {
    fn from(Trouble { code, message }: Trouble) -> Self {
        Self { code, message, data: Value::Null }
    }
}
