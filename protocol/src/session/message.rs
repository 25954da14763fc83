//! The messages of a conversation.

use std::fmt;

use serde::de::{SeqAccess, Visitor, value::SeqAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};

use super::object::only_objects;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// A text.
    Text(String),
    /// Blocks, possibly none.
    Blocks(Vec<Block>),
}

/// A piece of content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", remote = "Self")]
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
#[serde(remote = "Self")]
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
#[serde(remote = "Self")]
pub struct ToolFunction {
    /// The tool.
    pub name: String,
    /// JSON, as text.
    pub arguments: String,
}

only_objects!(Message, Block, ToolCall, ToolFunction);

impl Content {
    /// Its text, a piece for each block: what is said, and what tools gave.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        let (text, blocks) = match self {
            Self::Text(text) => (Some(text.as_str()), &[][..]),
            Self::Blocks(blocks) => (None, blocks.as_slice()),
        };
        text.into_iter().chain(blocks.iter().map(|block| match block {
            Block::Text { text } => text.as_str(),
            Block::ToolResult { content, .. } => content.as_str(),
        }))
    }
}

/// Told apart by what comes, so that a text is not copied once more to be looked at.
impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrBlocks;

        impl<'de> Visitor<'de> for TextOrBlocks {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or an array of blocks")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<Content, E> {
                Ok(Content::Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, blocks: A) -> Result<Content, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(blocks)).map(Content::Blocks)
            }
        }

        deserializer.deserialize_any(TextOrBlocks)
    }
}
