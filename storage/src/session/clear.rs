//! Removing conversations.

use cofferdam_protocol::session::SessionId;

use super::{Error, SessionStore};

/// What became of each id.
#[derive(Debug, Default)]
pub struct Cleared {
    /// Removed, in the order asked for.
    pub deleted: Vec<SessionId>,
    /// Not removed, in the order asked for; the id as it was given.
    pub skipped: Vec<(String, Error)>,
}

impl SessionStore {
    /// Removes each id for itself, in order; durable when this returns. What a file holds does not matter.
    pub fn clear(&self, ids: &[String], protected: &[SessionId]) -> Cleared {
        let _ = (ids, protected);
        todo!()
    }
}
