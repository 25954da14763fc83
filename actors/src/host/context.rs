//! What of the main conversation an agent is told (spec §4, `readContext`).

use cofferdam_protocol::session::Message;

use super::messages::MainSession;
use crate::session::Sessions;

/// The most messages.
const MESSAGES: usize = 12;
/// The most characters of a message of the user.
const USER_CHARS: usize = 700;
/// The most characters of a message of the assistant.
const ASSISTANT_CHARS: usize = 900;
/// The most characters in all; the oldest go first.
const TOTAL_CHARS: usize = 12_000;

/// What of the main conversation an agent is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadContext {
    /// The messages, oldest first; empty: none.
    pub(super) text: String,
    /// How many there are, or why there are none; for people.
    pub(super) note: String,
}

/// Reads the stored session that has the main session's id, in the scope of its directory.
pub(super) async fn read(_sessions: &Sessions, _main: Option<&MainSession>) -> ReadContext {
    ReadContext::default()
}
