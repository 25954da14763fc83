//! The five requests of the management protocol.

use serde::{Deserialize, Serialize};

/// One request (spec, *Request Actions*). Ids and cursors are still texts: a workspace that cannot be used is reported
/// before an id that cannot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum SessionRequest {
    /// Summaries, newest first, a page at a time.
    List(ListRequest),
    /// The summary of one session, whatever its health.
    Inspect(InspectRequest),
    /// Whether a session can be resumed.
    Validate(ValidateRequest),
    /// The ids that a removal of everything would remove, a page at a time.
    PrepareClearAll(PrepareClearAllRequest),
    /// Removes sessions, each for itself.
    Clear(ClearRequest),
}

/// Asks for summaries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRequest {
    /// The workspace's path.
    pub workspace_scope: String,
    /// Rows of the page; clamped to 1–100.
    #[serde(default = "default_limit")]
    pub limit: usize,
    /// The `next_cursor` of the page before.
    #[serde(default)]
    pub cursor: Option<String>,
    /// Also those of other workspaces.
    #[serde(default)]
    pub all_workspaces: bool,
}

/// Asks for one summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InspectRequest {
    /// The workspace's path.
    pub workspace_scope: String,
    /// The session.
    pub session_id: String,
}

/// Asks whether a session can be resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidateRequest {
    /// The workspace's path.
    pub workspace_scope: String,
    /// The session.
    pub session_id: String,
}

/// Asks what a removal of everything would remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrepareClearAllRequest {
    /// The workspace's path.
    pub workspace_scope: String,
    /// What must not be removed. May be empty, may not be missing.
    pub protected_session_ids: Vec<String>,
    /// Ids of the page; clamped to 1–4096. Without it the whole plan, if that fits one page.
    #[serde(default)]
    pub limit: Option<usize>,
    /// The `next_cursor` of the page before.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// Removes sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClearRequest {
    /// The workspace's path.
    pub workspace_scope: String,
    /// Which; at most 128.
    pub session_ids: Vec<String>,
    /// What must not be removed; at most 128. May be empty, may not be missing.
    pub protected_session_ids: Vec<String>,
}

/// Why bytes are no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid session-control request: {0}")]
pub struct UnreadableRequest(pub String);

impl SessionRequest {
    /// Reads a request: exactly one JSON value, blanks around it, at most 1 MiB.
    pub fn parse(bytes: &[u8]) -> Result<Self, UnreadableRequest> {
        todo!("{}", bytes.len())
    }
}

fn default_limit() -> usize {
    super::limits::LIST_PAGE_DEFAULT
}
