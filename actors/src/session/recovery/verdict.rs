//! What a turn's end means for its last event.

use super::error::ClientError;

/// What to do with a turn's last event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Deliver it.
    Continue,
    /// Whatever the turn says, the session was not restored.
    RestoreFailed(ClientError),
    /// Drop it: a newer turn, or a choice of the user, has taken the turn's place.
    StaleAttempt,
}

/// The last event of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastEvent {
    /// It completed.
    Completed,
    /// It failed, with this text.
    Failed(String),
    /// The user cancelled it.
    Cancelled,
}

impl Verdict {
    /// What the user is shown in place of an event: never that a turn completed that did not restore its session.
    pub fn shown(&self, event: LastEvent) -> Option<LastEvent> {
        match (self, event) {
            (Self::StaleAttempt, _) => None,
            (Self::RestoreFailed(error), LastEvent::Completed) => Some(LastEvent::Failed(error.to_string())),
            (Self::RestoreFailed(_) | Self::Continue, event) => Some(event),
        }
    }
}
