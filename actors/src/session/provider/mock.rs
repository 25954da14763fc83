//! A provider whose answers can be foretold, for the tests of clients.

use std::sync::atomic::{AtomicBool, Ordering};

use cofferdam_protocol::session::headless::{BlockStart, Delta, StreamEvent};
use cofferdam_protocol::session::{Block, Content, Message};

use super::{Answer, Provider, ProviderError, Request};

/// What it answers depends on the model that is active when the program starts.
pub(super) enum MockProvider {
    /// All that the user has said.
    History,
    /// A beginning and an error; later only errors.
    PartialError {
        /// The beginning was given.
        spent: AtomicBool,
    },
    /// A summary.
    CompactSummary,
}

impl MockProvider {
    pub(super) fn new(model: &str) -> Self {
        match model {
            "mock-partial-error" => Self::PartialError { spent: AtomicBool::new(false) },
            "mock-compact-summary" => Self::CompactSummary,
            _ => Self::History,
        }
    }
}

impl Provider for MockProvider {
    fn answer(&self, request: Request) -> Answer {
        match self {
            Self::History => whole(history(&request.messages)),
            Self::CompactSummary => {
                whole("## Objective and constraints\n- deterministic mock summary".to_owned())
            }
            Self::PartialError { spent } if !spent.swap(true, Ordering::Relaxed) => Answer::ready(vec![
                Ok(StreamEvent::MessageStart {}),
                Ok(block_start()),
                Ok(text("partial response".to_owned())),
                Err(ProviderError("recoverable mock provider error".to_owned())),
            ]),
            Self::PartialError { .. } => Answer::ready(vec![
                Ok(StreamEvent::MessageStart {}),
                Err(ProviderError("no more mock responses".to_owned())),
            ]),
        }
    }
}

/// An answer of one text in one piece.
fn whole(answer: String) -> Answer {
    let stop = StreamEvent::ContentBlockStop { index: 0 };
    let events =
        [StreamEvent::MessageStart {}, block_start(), text(answer), stop, StreamEvent::MessageStop {}];
    Answer::ready(events.into_iter().map(Ok).collect())
}

fn block_start() -> StreamEvent {
    StreamEvent::ContentBlockStart { index: 0, content_block: BlockStart::Text {} }
}

fn text(text: String) -> StreamEvent {
    StreamEvent::ContentBlockDelta { index: 0, delta: Delta::TextDelta { text } }
}

/// What the user has said, oldest first.
fn history(messages: &[Message]) -> String {
    let said: Vec<String> = messages.iter().filter(|message| message.role == "user").map(words).collect();
    format!("mock history: {}", said.join(" | "))
}

fn words(message: &Message) -> String {
    match &message.content {
        Content::Text(text) => text.clone(),
        Content::Blocks(blocks) => {
            let texts = blocks.iter().map(|block| match block {
                Block::Text { text } => text.as_str(),
                Block::ToolResult { content, .. } => content.as_str(),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}
