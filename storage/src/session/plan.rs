//! What a removal of everything would remove.

use cofferdam_protocol::session::SessionId;

use super::{Error, SessionStore};

/// A page of a plan, in byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What would be removed.
    pub clearable: Vec<SessionId>,
    /// What is protected.
    pub protected: Vec<SessionId>,
    /// The last id of the page, if there are more.
    pub next: Option<SessionId>,
}

impl SessionStore {
    /// A page of at most `limit` ids behind `after`; without a limit everything, if it fits a page. No file is opened.
    pub fn plan(
        &self,
        protected: &[SessionId],
        limit: Option<usize>,
        after: Option<&SessionId>,
    ) -> Result<Plan, Error> {
        let _ = (protected, limit, after);
        todo!()
    }
}
