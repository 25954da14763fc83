//! What a session's file holds: schema 1, and the message arrays that were there before it.

use serde::{Deserialize, Serialize};

use super::id::SessionId;

/// The schema that is written.
pub const SCHEMA_VERSION: u64 = 1;

/// A stored conversation (spec, *Persistence Compatibility*). Written with its keys in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u64,
    /// The id; equal to the file's name.
    pub session_id: String,
    /// The canonical path of its workspace.
    pub workspace_scope: String,
    /// Milliseconds since 1970; kept for life.
    pub created_at_ms: u64,
    /// Milliseconds since 1970; of the newest write.
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

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it: user, assistant, tool, system, or any other text.
    pub role: String,
    /// What is said.
    pub content: Content,
    /// Which call this is the result of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// A name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The tools that are to be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
}

/// The content of a message: a text or blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// A text.
    Text(String),
    /// Blocks, possibly none.
    Blocks(Vec<Block>),
}

/// A piece of content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// A text.
    Text {
        /// The text.
        text: String,
    },
    /// What a tool gave.
    ToolResult {
        /// Which call.
        tool_use_id: String,
        /// The result.
        content: String,
        /// Whether the tool failed.
        #[serde(default)]
        is_error: bool,
    },
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// What its result refers to.
    pub id: String,
    /// `function`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Which tool, with what.
    pub function: ToolFunction,
}

/// A tool's name and arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFunction {
    /// The tool.
    pub name: String,
    /// JSON, as text.
    pub arguments: String,
}

/// What the beginning of a conversation was summarized to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compaction {
    /// Which summary this is, counted from 1.
    pub revision: u64,
    /// How many messages it stands for.
    pub compacted_through: u64,
    /// The summary.
    pub summary: String,
    /// The model that wrote it.
    pub model: String,
    /// How it was asked for.
    pub prompt_version: u32,
    /// SHA-256 of the messages it stands for, hex.
    pub source_digest: String,
    /// How large the conversation was.
    pub tokens_before: Option<serde_json::Value>,
    /// How large it is now.
    pub tokens_after: Option<serde_json::Value>,
    /// Milliseconds since 1970.
    pub created_at_ms: u64,
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

impl Envelope {
    /// Reads the bytes of the file of session `id` of workspace `workspace`, last written at `modified_ms`. An array of
    /// messages becomes an envelope of generation 0.
    pub fn read(bytes: &[u8], id: &SessionId, workspace: &str, modified_ms: u64) -> Result<Self, Defect> {
        todo!("{} {id} {workspace} {modified_ms}", bytes.len())
    }

    /// The bytes of its file.
    pub fn write(&self) -> Vec<u8> {
        todo!()
    }
}
