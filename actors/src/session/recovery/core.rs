//! The core as a client asks it: what management requests lead to, over whatever way they travel.

use cofferdam_protocol::session::{SessionId, Skipped, Summary};

use super::error::ClientError;

/// Whoever carries management requests out. Calls block; each request has a deadline of its own.
pub trait SessionCore: Send + Sync + 'static {
    /// The summary of a session that can be resumed.
    fn validate(&self, workspace: &str, session_id: &str) -> Result<Summary, ClientError>;

    /// Everything that a removal of everything would remove, all pages of it.
    fn prepare_clear_all(&self, workspace: &str, protected: &[SessionId]) -> Result<ClearPlan, ClientError>;

    /// Removes sessions, as many requests as that takes. One that fails ends this, and the report says what is known.
    fn clear(
        &self,
        workspace: &str,
        session_ids: &[String],
        protected: &[SessionId],
    ) -> Result<ClearReport, ClientError>;
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
