//! The client of the management protocol: blocking, one run of `cosh-core --session-control` per request.
//!
//! A call always comes back within its deadline, plus the quarter of a second that a program gets to end by itself, and
//! leaves nothing behind: no process of the program's group, no descriptor, no thread.
//!
//! ```no_run
//! use cofferdam::session::SessionControlClient;
//!
//! # fn main() -> Result<(), cofferdam::session::SessionClientError> {
//! let client = SessionControlClient::discover();
//! let page = client.list("/home/user/project", 20, None, false)?;
//! for session in page.sessions {
//!     println!("{} {:?}", session.session_id, session.first_prompt);
//! }
//! # Ok(())
//! # }
//! ```

mod answer;
mod clear;
mod error;
mod exchange;
mod leader;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use cofferdam_protocol::session::{
    InspectRequest, ListRequest, PrepareClearAllRequest, SessionData, SessionRequest, Summary,
    ValidateRequest, limits,
};

pub use clear::{ClearOutcome, Interruption};
pub use error::{SessionClientError, TransportError};

use crate::deadline::Deadline;
use crate::paths::Environment;
use error::{Result, refused};

/// A client of the program that keeps conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionControlClient {
    program: PathBuf,
    timeout: Duration,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage {
    /// Newest first.
    pub sessions: Vec<Summary>,
    /// What asks for the next page; none after the last.
    pub next_cursor: Option<String>,
}

/// What a removal of everything would remove, whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClearPlan {
    /// What would be removed, in byte order.
    pub session_ids: Vec<String>,
    /// What is protected, in byte order.
    pub protected_session_ids: Vec<String>,
}

impl SessionControlClient {
    /// How long a call may take unless said otherwise.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

    /// The client of the program at `$COSH_CORE_PATH`, else of the `cosh-core` beside the running program, else of the
    /// one that the search path finds.
    pub fn discover() -> Self {
        Self::new(program(Environment::of_process().cosh_core(), std::env::current_exe().ok()))
    }

    /// The client of a certain program; a name without a slash is looked for along the search path.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), timeout: Self::DEFAULT_TIMEOUT }
    }

    /// The same with another deadline for each run of the program.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// A page of summaries, newest first; `limit` is clamped to 1–100. With `all_workspaces` also those of others.
    pub fn list(
        &self,
        workspace: &str,
        limit: usize,
        cursor: Option<&str>,
        all_workspaces: bool,
    ) -> Result<ListPage> {
        let (workspace_scope, cursor) = (workspace.to_owned(), cursor.map(str::to_owned));
        match self.ask(SessionRequest::List(ListRequest {
            workspace_scope,
            limit,
            cursor,
            all_workspaces,
        }))? {
            SessionData::List { sessions, next_cursor } => Ok(ListPage { sessions, next_cursor }),
            _ => Err(TransportError::WrongAction.into()),
        }
    }

    /// The summary of a session, whatever its health.
    pub fn inspect(&self, workspace: &str, session_id: &str) -> Result<Summary> {
        let (workspace_scope, session_id) = (workspace.to_owned(), session_id.to_owned());
        match self.ask(SessionRequest::Inspect(InspectRequest { workspace_scope, session_id }))? {
            SessionData::Inspect { session } => Ok(session),
            _ => Err(TransportError::WrongAction.into()),
        }
    }

    /// The summary of a session that can be resumed; an error says why another cannot.
    pub fn validate(&self, workspace: &str, session_id: &str) -> Result<Summary> {
        let (workspace_scope, session_id) = (workspace.to_owned(), session_id.to_owned());
        match self.ask(SessionRequest::Validate(ValidateRequest { workspace_scope, session_id }))? {
            SessionData::Validate { session } => Ok(session),
            _ => Err(TransportError::WrongAction.into()),
        }
    }

    /// The whole plan of a removal of everything but what is protected (at most 128 ids). Each of its pages is a run of
    /// the program, with a deadline of its own.
    pub fn prepare_clear_all(&self, workspace: &str, protected: &[String]) -> Result<ClearPlan> {
        let mut plan = ClearPlan::default();
        let mut cursor: Option<String> = None;
        loop {
            let request = PrepareClearAllRequest {
                workspace_scope: workspace.to_owned(),
                protected_session_ids: protected.to_vec(),
                limit: Some(limits::PLAN_PAGE),
                cursor: cursor.clone(),
            };
            request.within_bounds().map_err(refused)?;
            let SessionData::PrepareClearAll { session_ids, protected_session_ids, next_cursor } =
                self.ask(SessionRequest::PrepareClearAll(request))?
            else {
                return Err(TransportError::WrongAction.into());
            };
            plan.session_ids.extend(session_ids);
            plan.protected_session_ids.extend(protected_session_ids);
            match next_cursor {
                None => return Ok(plan),
                // Whoever does not advance would be asked for ever.
                Some(next) if cursor.is_some_and(|last| next <= last) => {
                    return Err(TransportError::NotAdvancing.into());
                }
                Some(next) => cursor = Some(next),
            }
        }
    }

    /// Runs the program for one request.
    fn ask(&self, request: SessionRequest) -> Result<SessionData> {
        let deadline = Deadline::after(Some(self.timeout));
        let text = serde_json::to_vec(&request).map_err(TransportError::Encode)?;
        let printed = exchange::run(&self.program, &text, &deadline)?;
        answer::read(&printed, request.action())
    }
}

/// Which program it is: the one that is named, else `cosh-core` beside the running one, if there is such a file.
fn program(named: Option<PathBuf>, running: Option<PathBuf>) -> PathBuf {
    let beside = || running.map(|running| running.with_file_name("cosh-core")).filter(|path| path.is_file());
    named.or_else(beside).unwrap_or_else(|| "cosh-core".into())
}
