//! The core as a client asks it: what management requests lead to, over whatever way they travel.

use cofferdam_protocol::session::{
    ClearRequest, InspectRequest, ListRequest, OutOfBounds, PrepareClearAllRequest, SessionData,
    SessionError, SessionErrorCode, SessionId, SessionRequest, Skipped, Summary, ValidateRequest, limits,
};

use super::error::ClientError;

/// Whoever carries management requests out. Calls block; each request has a deadline of its own.
pub trait SessionCore: Send + Sync + 'static {
    /// Has one request carried out. The data is that of its action.
    fn ask(&self, request: SessionRequest) -> Result<SessionData, ClientError>;

    /// A page of summaries, newest first; the limit is clamped to 1–100.
    fn list(&self, request: ListRequest) -> Result<ListPage, ClientError> {
        match self.ask(SessionRequest::List(request))? {
            SessionData::List { sessions, next_cursor } => Ok(ListPage { sessions, next_cursor }),
            _ => Err(wrong_action()),
        }
    }

    /// The summary of a session, whatever its health.
    fn inspect(&self, workspace: &str, session_id: &str) -> Result<Summary, ClientError> {
        let (workspace_scope, session_id) = (workspace.to_owned(), session_id.to_owned());
        match self.ask(SessionRequest::Inspect(InspectRequest { workspace_scope, session_id }))? {
            SessionData::Inspect { session } => Ok(session),
            _ => Err(wrong_action()),
        }
    }

    /// The summary of a session that can be resumed; an error says why another cannot.
    fn validate(&self, workspace: &str, session_id: &str) -> Result<Summary, ClientError> {
        let (workspace_scope, session_id) = (workspace.to_owned(), session_id.to_owned());
        match self.ask(SessionRequest::Validate(ValidateRequest { workspace_scope, session_id }))? {
            SessionData::Validate { session } => Ok(session),
            _ => Err(wrong_action()),
        }
    }

    /// The whole plan of a removal of everything but what is protected (at most 128 ids), a request for each page.
    fn prepare_clear_all(&self, workspace: &str, protected: &[SessionId]) -> Result<ClearPlan, ClientError> {
        let mut plan = ClearPlan::default();
        let mut cursor: Option<String> = None;
        loop {
            let request = PrepareClearAllRequest {
                workspace_scope: workspace.to_owned(),
                protected_session_ids: texts(protected),
                limit: Some(limits::PLAN_PAGE),
                cursor: cursor.clone(),
            };
            request.within_bounds().map_err(refused)?;
            let SessionData::PrepareClearAll { session_ids, protected_session_ids, next_cursor } =
                self.ask(SessionRequest::PrepareClearAll(request))?
            else {
                return Err(wrong_action());
            };
            plan.session_ids.extend(session_ids);
            plan.protected_session_ids.extend(protected_session_ids);
            match next_cursor {
                None => return Ok(plan),
                // Whoever does not advance would be asked for ever.
                Some(next) if cursor.is_some_and(|last| next <= last) => {
                    return Err(ClientError::transport("non-advancing session plan cursor"));
                }
                Some(next) => cursor = Some(next),
            }
        }
    }

    /// Removes sessions, 128 a request. The first request that fails ends it, and the report says what is known of each
    /// id; the only error is too many protected ids (128 at most), with which nothing is asked.
    fn clear(
        &self,
        workspace: &str,
        session_ids: &[String],
        protected: &[SessionId],
    ) -> Result<ClearReport, ClientError> {
        let mut report = ClearReport::default();
        let mut rest = session_ids;
        loop {
            let batch;
            (batch, rest) = rest.split_at(rest.len().min(limits::IDS));
            let request = ClearRequest {
                workspace_scope: workspace.to_owned(),
                session_ids: batch.to_vec(),
                protected_session_ids: texts(protected),
            };
            request.within_bounds().map_err(refused)?;
            if batch.is_empty() {
                return Ok(report);
            }
            let error = match self.ask(SessionRequest::Clear(request)) {
                Ok(SessionData::Clear { deleted, skipped }) => {
                    report.deleted.extend(deleted);
                    report.skipped.extend(skipped);
                    continue;
                }
                Ok(_) => wrong_action(),
                Err(error) => error,
            };
            let (unknown_session_ids, unattempted_session_ids) = (batch.to_vec(), rest.to_vec());
            report.interruption =
                Some(ClearInterruption { error, unknown_session_ids, unattempted_session_ids });
            return Ok(report);
        }
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage {
    /// Newest first.
    pub sessions: Vec<Summary>,
    /// What asks for the next page; none after the last.
    pub next_cursor: Option<String>,
}

/// What a removal of everything would remove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClearPlan {
    /// What would be removed, in byte order.
    pub session_ids: Vec<String>,
    /// What is protected, in byte order.
    pub protected_session_ids: Vec<String>,
}

/// What became of the sessions that were to be removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClearReport {
    /// Removed, in the order asked for.
    pub deleted: Vec<String>,
    /// Not removed, in the order asked for.
    pub skipped: Vec<Skipped>,
    /// What put an end to it before everything was asked for.
    pub interruption: Option<ClearInterruption>,
}

/// A request that failed among several, and what that leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClearInterruption {
    /// How it failed.
    pub error: ClientError,
    /// Those of the request that failed: removed or not.
    pub unknown_session_ids: Vec<String>,
    /// Those that were never asked for.
    pub unattempted_session_ids: Vec<String>,
}

fn texts(ids: &[SessionId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

/// The core answered another request.
fn wrong_action() -> ClientError {
    ClientError::transport("wrong session action in the response")
}

/// The error of a request that is not sent, since the core would refuse it.
fn refused(why: OutOfBounds) -> ClientError {
    let message = format!("invalid session management request: {why}");
    SessionError::new(SessionErrorCode::InvalidRequest, &message).into()
}
