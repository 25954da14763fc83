//! Removing any number of conversations, in requests of bounded size.

use cofferdam_protocol::session::{ClearRequest, SessionData, SessionRequest, Skipped, limits};

use super::SessionControlClient;
use super::error::{Result, SessionClientError, TransportError, refused};

/// What is known of each id after a removal.
#[derive(Debug, Default)]
pub struct ClearOutcome {
    /// Removed, in the order asked for.
    pub deleted: Vec<String>,
    /// Not removed, in the order asked for.
    pub skipped: Vec<Skipped>,
    /// Why it ended before all were asked for, if it did.
    pub interruption: Option<Interruption>,
}

/// A removal that ended too early.
#[derive(Debug)]
pub struct Interruption {
    /// What went wrong.
    pub error: SessionClientError,
    /// What may or may not have been removed.
    pub unknown_session_ids: Vec<String>,
    /// What was certainly not removed.
    pub unattempted_session_ids: Vec<String>,
}

impl SessionControlClient {
    /// Removes conversations, 128 in a run of the program, each run with a deadline of its own. It ends with the first
    /// run that fails; what was removed before is told all the same, so the only error is too many protected ids (128 at
    /// most), with which nothing is run.
    pub fn clear(
        &self,
        workspace: &str,
        session_ids: &[String],
        protected: &[String],
    ) -> Result<ClearOutcome> {
        let mut outcome = ClearOutcome::default();
        let mut rest = session_ids;
        loop {
            let batch;
            (batch, rest) = rest.split_at(rest.len().min(limits::IDS));
            let request = ClearRequest {
                workspace_scope: workspace.to_owned(),
                session_ids: batch.to_vec(),
                protected_session_ids: protected.to_vec(),
            };
            request.within_bounds().map_err(refused)?;
            if batch.is_empty() {
                return Ok(outcome);
            }
            match self.clear_batch(request) {
                Ok((deleted, skipped)) => {
                    outcome.deleted.extend(deleted);
                    outcome.skipped.extend(skipped);
                }
                Err(error) => {
                    outcome.interruption = Some(Interruption {
                        error,
                        unknown_session_ids: batch.to_vec(),
                        unattempted_session_ids: rest.to_vec(),
                    });
                    return Ok(outcome);
                }
            }
        }
    }

    fn clear_batch(&self, request: ClearRequest) -> Result<(Vec<String>, Vec<Skipped>)> {
        match self.ask(SessionRequest::Clear(request))? {
            SessionData::Clear { deleted, skipped } => Ok((deleted, skipped)),
            _ => Err(TransportError::WrongAction.into()),
        }
    }
}
