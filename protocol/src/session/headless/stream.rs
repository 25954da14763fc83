//! An answer as it comes: a message of blocks, each of pieces.

use serde::{Deserialize, Serialize};

/// One step of an answer. The order is: the start, then block by block its start, its deltas and its stop, then the stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamEvent {
    /// The answer begins.
    MessageStart {},
    /// A block begins.
    ContentBlockStart {
        /// Which, counted from 0.
        index: u32,
        /// What it will be.
        content_block: BlockStart,
    },
    /// A piece of a block.
    ContentBlockDelta {
        /// Of which block.
        index: u32,
        /// The piece.
        delta: Delta,
    },
    /// A block is complete.
    ContentBlockStop {
        /// Which.
        index: u32,
    },
    /// The answer is complete.
    MessageStop {},
}

/// What a block will be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BlockStart {
    /// Text for the person.
    Text {},
    /// What the model thinks; shown, not kept.
    Thinking {},
    /// The call of a tool.
    ToolUse {
        /// What its result refers to.
        id: String,
        /// The tool.
        name: String,
    },
}

/// A piece of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Delta {
    /// Of a text.
    TextDelta {
        /// The piece.
        text: String,
    },
    /// Of what the model thinks.
    ThinkingDelta {
        /// The piece.
        thinking: String,
    },
    /// Of a call's arguments, which are JSON when they are complete.
    InputJsonDelta {
        /// The piece.
        partial_json: String,
    },
}
