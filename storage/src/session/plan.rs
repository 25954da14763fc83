//! What a removal of everything would remove.

use cofferdam_protocol::session::{SessionId, limits};

use super::{Error, SessionStore, scan};

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
    /// A page of at most `limit` ids (clamped to 1–4096) behind `after`; without a limit everything, if the whole plan
    /// fits a page. No file is opened.
    pub fn plan(
        &self,
        protected: &[SessionId],
        limit: Option<usize>,
        after: Option<&SessionId>,
    ) -> Result<Plan, Error> {
        let mut ids = Vec::new();
        for dir in [self.scope.for_reading()?, self.legacy.dir()?].into_iter().flatten() {
            scan::sessions(&dir, |id, _| ids.push(id))?;
        }
        ids.sort_unstable();
        ids.dedup();
        if limit.is_none() && ids.len() > limits::PLAN_PAGE {
            let (stored, page) = (ids.len(), limits::PLAN_PAGE);
            return Err(Error::InvalidRequest(format!(
                "the plan has {stored} sessions, more than one page of {page}: give a limit"
            )));
        }
        if let Some(after) = after {
            ids.drain(..ids.partition_point(|id| id <= after));
        }
        let page = limit.unwrap_or(limits::PLAN_PAGE).clamp(1, limits::PLAN_PAGE);
        let more = ids.len() > page;
        ids.truncate(page);
        let next = if more { ids.last().cloned() } else { None };
        let (protected, clearable) = ids.into_iter().partition(|id| protected.contains(id));
        Ok(Plan { clearable, protected, next })
    }
}
