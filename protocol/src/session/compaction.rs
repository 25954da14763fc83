//! The summary that stands for the beginning of a long conversation.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::limits;
use super::message::{Block, Content, Message};
use super::object::only_objects;

/// The only way of asking for a summary whose answers are used.
const PROMPT_VERSION: u32 = 1;

/// What the beginning of a conversation was summarized to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
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
    /// [`Compaction::digest`] of the messages it stands for.
    pub source_digest: String,
    /// How large the conversation was.
    pub tokens_before: Option<TokenCount>,
    /// How large it is now.
    pub tokens_after: Option<TokenCount>,
    /// Milliseconds since 1970.
    pub created_at_ms: u64,
}

/// A size in tokens, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct TokenCount {
    /// How many.
    pub value: u64,
    /// Who counted.
    pub source: TokenSource,
}

/// Who counted tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenSource {
    /// The provider.
    ProviderReported,
    /// Nobody exactly.
    Estimated,
}

only_objects!(Compaction, TokenCount);

impl Compaction {
    /// Whether it can stand for the beginning of this conversation: it was made from exactly that beginning, and does not
    /// part a tool's call from its result.
    pub fn is_usable(&self, messages: &[Message]) -> bool {
        let through = usize::try_from(self.compacted_through).unwrap_or(usize::MAX);
        let Some((beginning, rest)) = messages.split_at_checked(through) else { return false };
        !beginning.is_empty()
            && !self.summary.trim().is_empty()
            && self.summary.len() <= limits::COMPACTION_SUMMARY
            && self.prompt_version == PROMPT_VERSION
            && !parts_calls(beginning, rest)
            && self.source_digest == Self::digest(beginning)
    }

    /// The digest of messages: SHA-256 as lowercase hexadecimal digits.
    pub fn digest(messages: &[Message]) -> String {
        let mut hash = Sha256::new();
        hash.update((messages.len() as u64).to_le_bytes());
        let mut field = |pieces: &mut dyn Iterator<Item = &str>, end: u8| {
            for (at, piece) in pieces.enumerate() {
                if at > 0 {
                    hash.update(b"\n");
                }
                hash.update(piece);
            }
            hash.update([end]);
        };
        for message in messages {
            field(&mut [message.role.as_str()].into_iter(), 0);
            field(&mut message.content.pieces(), 0);
            field(&mut message.tool_call_id.as_deref().into_iter(), 0);
            for call in message.tool_calls.iter().flatten() {
                for text in [&call.id, &call.function.name, &call.function.arguments] {
                    field(&mut [text.as_str()].into_iter(), 0);
                }
            }
            field(&mut std::iter::empty(), 0xff);
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Whether a call in the one part has its result in the other. The same id may be called again later.
fn parts_calls(beginning: &[Message], rest: &[Message]) -> bool {
    let mut open = HashSet::new();
    for message in beginning {
        for result in results(message) {
            open.remove(result);
        }
        open.extend(calls(message));
    }
    for message in rest {
        if results(message).any(|result| open.contains(result)) {
            return true;
        }
        for call in calls(message) {
            open.remove(call);
        }
    }
    false
}

/// The ids of the calls in a message.
fn calls(message: &Message) -> impl Iterator<Item = &str> {
    message.tool_calls.iter().flatten().map(|call| call.id.as_str())
}

/// The ids of the calls whose results are in a message.
fn results(message: &Message) -> impl Iterator<Item = &str> {
    let blocks = match &message.content {
        Content::Text(_) => &[][..],
        Content::Blocks(blocks) => blocks.as_slice(),
    };
    let of_blocks = blocks.iter().filter_map(|block| match block {
        Block::Text { .. } => None,
        Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.as_str()),
    });
    message.tool_call_id.as_deref().into_iter().chain(of_blocks)
}
