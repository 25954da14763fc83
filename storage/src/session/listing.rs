//! Summaries: of a page, and of one session.

use cofferdam_protocol::session::{ListCursor, SessionId, Summary};

use super::{Error, SessionStore};

/// A page of summaries.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Newest file first, then by id.
    pub sessions: Vec<Summary>,
    /// Where the next page begins; none if every candidate was looked at.
    pub next: Option<ListCursor>,
}

impl SessionStore {
    /// A page of at most `limit` summaries. Candidates come from one scan with one stat each; only the page's files are
    /// opened. What cannot be read, or is gone, takes no row.
    pub fn list(
        &self,
        limit: usize,
        cursor: Option<&ListCursor>,
        all_workspaces: bool,
    ) -> Result<Page, Error> {
        let _ = (limit, cursor, all_workspaces);
        todo!()
    }

    /// The summary of one session, whatever its health.
    pub fn inspect(&self, id: &SessionId) -> Result<Summary, Error> {
        todo!("{id}")
    }

    /// The summary of a session that can be resumed; what [`load`](Self::load) says otherwise.
    pub fn validate(&self, id: &SessionId) -> Result<Summary, Error> {
        todo!("{id}")
    }
}
