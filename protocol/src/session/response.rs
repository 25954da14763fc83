//! What is answered.

use std::io::Write;

use serde::{Deserialize, Serialize};

use super::error::{SessionError, SessionErrorCode};
use super::limits;
use super::text::bounded;
use crate::budget::Budget;

/// The response envelope: one compact line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionResponse {
    /// Whether there is `data`, rather than an `error`.
    pub ok: bool,
    /// What was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<SessionData>,
    /// Why nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<SessionError>,
}

/// The data of each action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum SessionData {
    /// A page of summaries.
    List {
        /// Newest first.
        sessions: Vec<Summary>,
        /// Where the next page begins; none after the last.
        #[serde(default)]
        next_cursor: Option<String>,
    },
    /// One summary.
    Inspect {
        /// The summary.
        session: Summary,
    },
    /// The summary of a session that can be resumed.
    Validate {
        /// The summary.
        session: Summary,
    },
    /// A page of a clear-all plan.
    PrepareClearAll {
        /// What would be removed, in byte order.
        session_ids: Vec<String>,
        /// What is protected, in byte order.
        protected_session_ids: Vec<String>,
        /// Where the next page begins; none after the last.
        #[serde(default)]
        next_cursor: Option<String>,
    },
    /// What became of each id.
    Clear {
        /// Removed, in the order asked for.
        deleted: Vec<String>,
        /// Not removed, in the order asked for.
        skipped: Vec<Skipped>,
    },
}

/// One session in a list. Every field is always present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The id: the name of its file.
    pub session_id: String,
    /// The stored workspace; the requested one if the file does not say.
    pub workspace_scope: String,
    /// Milliseconds since 1970.
    pub created_at_ms: u64,
    /// Milliseconds since 1970.
    pub updated_at_ms: u64,
    /// The model, if the file names one.
    pub model: Option<String>,
    /// How many messages.
    pub message_count: u64,
    /// The first thing the user said.
    pub first_prompt: Option<String>,
    /// The schema, if the file says.
    pub schema_version: Option<u64>,
    /// Whether it can be resumed, and if not, why.
    pub health: Health,
}

/// What can be done with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// It can be resumed.
    Ready,
    /// Its file is damaged.
    Corrupt,
    /// Its file is of another schema.
    Incompatible,
    /// It belongs to another workspace.
    ScopeMismatch,
}

/// An id that was not removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The id as asked for, bounded.
    pub session_id: String,
    /// Why.
    pub error: SessionError,
}

impl SessionResponse {
    /// The answer to a request that was carried out, or not.
    pub fn of(result: Result<SessionData, SessionError>) -> Self {
        match result {
            Ok(data) => Self { ok: true, data: Some(data), error: None },
            Err(error) => Self { ok: false, data: None, error: Some(error) },
        }
    }

    /// The line with its newline. One that would be over the budget becomes an error that says so: the second value is
    /// whether the request succeeded after all.
    pub fn line(&self) -> (Vec<u8>, bool) {
        if let Some(line) = self.within_budget() {
            return (line, self.ok);
        }
        let message = "invalid session management request: the response exceeded the protocol byte budget";
        let refusal = Self::of(Err(SessionError::new(SessionErrorCode::InvalidRequest, message)));
        (refusal.within_budget().unwrap_or_default(), false)
    }

    fn within_budget(&self) -> Option<Vec<u8>> {
        let mut line = Budget::new(limits::RESPONSE);
        // Every key is a string and the writer takes everything, so nothing can fail here but the length.
        serde_json::to_writer(&mut line, self).ok()?;
        line.write_all(b"\n").ok()?;
        line.finish().ok()
    }
}

impl Skipped {
    /// An id that was not removed, as it was sent; it is bounded here.
    pub fn new(session_id: &str, error: SessionError) -> Self {
        Self { session_id: bounded(session_id, limits::SKIPPED_ID), error }
    }
}
