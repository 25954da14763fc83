//! What a session's file holds: schema 1, and the message arrays that were there before it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::compaction::Compaction;
use super::id::SessionId;
use super::limits;
use super::message::Message;
use super::object::only_objects;
use super::text::bounded;
use crate::budget::Budget;
use crate::pod::repair_surrogates;

/// The schema that is written.
pub const SCHEMA_VERSION: u64 = 1;

/// A stored conversation (spec, *Persistence Compatibility*). Written with its keys in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Envelope {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u64,
    /// The id; equal to the file's name.
    pub session_id: String,
    /// The canonical path of its workspace.
    pub workspace_scope: String,
    /// Milliseconds since 1970; kept for life.
    pub created_at_ms: u64,
    /// Milliseconds since 1970; of the newest write. 0 before the first: so one that was begun is told from one that was
    /// read.
    pub updated_at_ms: u64,
    /// The model; may be empty.
    pub model: String,
    /// How often it was written. The first write makes it 1; 0 is a message array that was read.
    pub generation: u64,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// What the beginning was summarized to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Compaction>,
    /// How often it was summarized.
    #[serde(default)]
    pub compaction_revision: u64,
}

/// Why a file is no session that can be resumed; in the order in which it is looked for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Defect {
    /// It cannot be read as schema 1 or as an array of messages.
    #[error("{0}")]
    Corrupt(String),
    /// It is of another schema.
    #[error("unsupported schema version {0}")]
    Incompatible(u64),
    /// It belongs to another workspace. Everything else is in order: the envelope is here.
    #[error("belongs to {}", .0.workspace_scope)]
    ScopeMismatch(Box<Envelope>),
}

/// A conversation whose file would be larger than is ever read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("session file exceeds the {} byte safety limit", limits::SESSION_FILE)]
pub struct TooLarge;

/// What tells another schema from damage.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Self")]
struct Head {
    #[serde(default)]
    schema_version: Value,
}

only_objects!(Envelope, Head);

impl Envelope {
    /// Reads the bytes of the file of session `id` of workspace `workspace`, last written at `modified_ms`. An array of
    /// messages becomes an envelope of generation 0.
    ///
    /// The model is cut to [`limits::MODEL`]. A compaction that cannot be used is left out; its revision still counts.
    pub fn read(bytes: &[u8], id: &SessionId, workspace: &str, modified_ms: u64) -> Result<Self, Defect> {
        let text = json(bytes)?;
        if is_array(text) {
            return Self::of_messages(text, id, workspace, modified_ms);
        }
        let mut envelope = Self::of_schema(text)?;
        if envelope.session_id != id.as_str() {
            return Err(Defect::Corrupt("filename and envelope session IDs differ".to_owned()));
        }
        envelope.model = bounded(&envelope.model, limits::MODEL);
        envelope.settle_compaction();
        if envelope.workspace_scope == workspace {
            Ok(envelope)
        } else {
            Err(Defect::ScopeMismatch(Box::new(envelope)))
        }
    }

    /// Reads an array of messages as [`read`](Self::read) does; anything else is corrupt.
    pub fn read_array(
        bytes: &[u8],
        id: &SessionId,
        workspace: &str,
        modified_ms: u64,
    ) -> Result<Self, Defect> {
        let text = json(bytes)?;
        if is_array(text) {
            Self::of_messages(text, id, workspace, modified_ms)
        } else {
            Err(Defect::Corrupt("legacy session is not a message array".to_owned()))
        }
    }

    /// The bytes of its file.
    pub fn write(&self) -> Result<Vec<u8>, TooLarge> {
        let mut file = Budget::new(limits::SESSION_FILE as usize);
        // Every key is a string and the writer takes everything, so nothing can fail here but the length.
        serde_json::to_writer_pretty(&mut file, self).map_err(|_| TooLarge)?;
        file.finish().map_err(|_| TooLarge)
    }

    fn of_messages(text: &str, id: &SessionId, workspace: &str, modified_ms: u64) -> Result<Self, Defect> {
        let messages = serde_json::from_str(text).map_err(|error| Defect::Corrupt(error.to_string()))?;
        Ok(Self {
            schema_version: SCHEMA_VERSION,
            session_id: id.to_string(),
            workspace_scope: workspace.to_owned(),
            created_at_ms: modified_ms,
            updated_at_ms: modified_ms,
            model: String::new(),
            generation: 0,
            messages,
            compaction: None,
            compaction_revision: 0,
        })
    }

    /// Reads schema 1. What is wrong is looked for only where something is.
    fn of_schema(text: &str) -> Result<Self, Defect> {
        let error = match serde_json::from_str::<Self>(text) {
            Ok(envelope) if envelope.schema_version == SCHEMA_VERSION => return Ok(envelope),
            Ok(envelope) => return Err(Defect::Incompatible(envelope.schema_version)),
            Err(error) => error,
        };
        let head: Head = serde_json::from_str(text).map_err(|error| Defect::Corrupt(error.to_string()))?;
        Err(match head.schema_version.as_u64() {
            None => Defect::Corrupt("missing schema_version".to_owned()),
            Some(SCHEMA_VERSION) => Defect::Corrupt(error.to_string()),
            Some(version) => Defect::Incompatible(version),
        })
    }

    fn settle_compaction(&mut self) {
        if let Some(compaction) = &self.compaction {
            self.compaction_revision = self.compaction_revision.max(compaction.revision);
            if !compaction.is_usable(&self.messages) {
                self.compaction = None;
            }
        }
    }
}

/// The text of a file. Whether it is JSON shows when it is read; but for the halves of surrogate pairs, which the parser
/// lets pass in what it ignores.
fn json(bytes: &[u8]) -> Result<&str, Defect> {
    let text = str::from_utf8(bytes).map_err(|_| Defect::Corrupt("invalid UTF-8".to_owned()))?;
    match repair_surrogates(text) {
        Cow::Borrowed(_) => Ok(text),
        Cow::Owned(_) => Err(Defect::Corrupt("half of a surrogate pair".to_owned())),
    }
}

fn is_array(text: &str) -> bool {
    text.trim_ascii_start().starts_with('[')
}
