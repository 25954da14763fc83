//! Writing one conversation.

use cofferdam_protocol::session::Envelope;

use super::{Error, SessionStore};

impl SessionStore {
    /// Makes a conversation durable, without secrets: under the session's lock, and only over the generation that the
    /// caller knows. Then the envelope's generation and time are those written. A conversation from the flat directory
    /// is moved.
    ///
    /// Whatever goes wrong, at any instant there is a whole conversation, the old one or the new.
    pub fn persist(&self, envelope: &mut Envelope) -> Result<(), Error> {
        let _ = envelope;
        todo!()
    }
}
