//! The five requests of the management protocol.

use serde::{Deserialize, Serialize};

use super::limits;
use super::object::only_objects;

/// One request (spec, *Request Actions*). Ids and cursors are still texts: a workspace that cannot be used is reported
/// before an id that cannot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", remote = "Self")]
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

/// A list of ids that is longer than it may be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} has {count} entries; send at most {} at a time", limits::IDS)]
pub struct OutOfBounds {
    /// The key of the list.
    pub field: &'static str,
    /// How many ids it has.
    pub count: usize,
}

only_objects!(SessionRequest);

impl SessionRequest {
    /// Reads a request: exactly one JSON object, blanks around it, at most 1 MiB. Keys that no action has are ignored, a
    /// key that comes twice is an error.
    pub fn parse(bytes: &[u8]) -> Result<Self, UnreadableRequest> {
        if bytes.len() > limits::REQUEST {
            return Err(UnreadableRequest(format!("longer than {} bytes", limits::REQUEST)));
        }
        // The parser itself does not look at the text of what it ignores.
        let text = str::from_utf8(bytes).map_err(|_| UnreadableRequest("not UTF-8".to_owned()))?;
        serde_json::from_str(text).map_err(|error| {
            let why = error.to_string();
            // Only where the text is no JSON does the place say anything.
            let known = if error.is_data() { why.rsplit_once(" at line ") } else { None };
            UnreadableRequest(known.map_or(why.as_str(), |(why, _)| why).to_owned())
        })
    }

    /// What it asks for, as it stands on the wire.
    pub fn action(&self) -> &'static str {
        match self {
            Self::List(_) => "list",
            Self::Inspect(_) => "inspect",
            Self::Validate(_) => "validate",
            Self::PrepareClearAll(_) => "prepare_clear_all",
            Self::Clear(_) => "clear",
        }
    }
}

impl ListRequest {
    /// How many rows the page has at most.
    pub fn rows(&self) -> usize {
        self.limit.clamp(1, limits::LIST_PAGE)
    }
}

impl PrepareClearAllRequest {
    /// How many ids the page has at most; `None` is the whole plan.
    pub fn ids(&self) -> Option<usize> {
        self.limit.map(|limit| limit.clamp(1, limits::PLAN_PAGE))
    }

    /// Whether its lists are short enough.
    pub fn within_bounds(&self) -> Result<(), OutOfBounds> {
        within("protected_session_ids", &self.protected_session_ids)
    }
}

impl ClearRequest {
    /// Whether its lists are short enough.
    pub fn within_bounds(&self) -> Result<(), OutOfBounds> {
        within("session_ids", &self.session_ids)?;
        within("protected_session_ids", &self.protected_session_ids)
    }
}

fn within(field: &'static str, ids: &[String]) -> Result<(), OutOfBounds> {
    if ids.len() > limits::IDS { Err(OutOfBounds { field, count: ids.len() }) } else { Ok(()) }
}

fn default_limit() -> usize {
    limits::LIST_PAGE_DEFAULT
}
