//! What a program prints as JSON, one object a line, made into what an agent says and does.
//!
//! Understood are the headless stream of the session contract, the stream-json of common agent programs (`system`, `assistant`,
//! `user`, `stream_event`, `result`), and the events of some others. Nothing here reads or waits:
//!
//! ```text
//! let mut stream = Stream::default();
//! stream.push(bytes)      what a read gave, however it was cut; the items that are whole by now
//! stream.finish()         nothing more will come; what was still open
//! ```
//!
//! [`event`] tells which [`AgentEvent`](super::AgentEvent) an item is, if it is one; `Session`, `Init`, `Request`, `Complaint`,
//! `Result` and `TooLong` are for whoever runs the program. What a program prints is not trusted: a line has at most
//! [`MAX_LINE`] bytes, what is not known is ignored, and a text that was streamed and is then repeated as a whole comes once.
//!
//! - `lines`: bytes into lines; `blocks`: pieces into texts and calls, each once;
//! - `messages`: the contract's lines and stream-json; `others`: those of other programs; `events`: items for a task.

mod blocks;
mod events;
mod lines;
mod messages;
mod others;
#[cfg(test)]
mod tests;

pub(super) use self::events::event;

use serde_json::{Map, Value};

use self::blocks::Blocks;
use self::lines::{Line, Lines};

/// The longest line, in bytes: what a tool has read, even if that was an image, is in one.
pub(super) const MAX_LINE: usize = 4 << 20;

/// How much of a line that is no object is kept, in bytes.
const COMPLAINT: usize = 4000;

/// Something that a program has said.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    /// The id of its conversation: when it is first named, and whenever another one is.
    Session(String),
    /// Who is here.
    Init(Init),
    /// Something for people, in pieces of a few thousand bytes.
    Text(String),
    /// What it thinks, in such pieces.
    Thinking(String),
    /// A tool is called. Each call comes once.
    ToolCall {
        /// Which call; empty if it has no id.
        id: String,
        /// The tool, as the program calls it.
        name: String,
        /// Its arguments.
        input: Value,
    },
    /// What a tool gave.
    ToolResult {
        /// Which call; empty if that is not said.
        id: String,
        /// For people.
        text: String,
        /// Whether it failed.
        is_error: bool,
    },
    /// It wants something, and waits for the answer.
    Request {
        /// What the answer has to refer to.
        id: String,
        /// What it wants.
        request: Request,
    },
    /// Something about the program itself.
    Status(String),
    /// Something went wrong, which need not be the end; or the end of a line that is no JSON object.
    Complaint(String),
    /// A turn is over.
    Result(Outcome),
    /// A line was longer than [`MAX_LINE`], and nobody knows what was in it. Comes once for each such line.
    TooLong,
}

/// Who is here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Init {
    /// Whether the conversation will be there after the end of the program, if that is said.
    pub(super) resumable: Option<bool>,
    /// The model's name.
    pub(super) model: Option<String>,
    /// The tools it has, as it calls them; `None` if that is not said.
    pub(super) tools: Option<Vec<String>>,
}

/// What a program wants.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Request {
    /// May this tool be called?
    CanUseTool {
        /// The tool, as the program calls it.
        name: String,
        /// Its arguments.
        input: Value,
        /// Which call; empty if that is not said.
        call: String,
    },
    /// Something else.
    Other {
        /// What, in the program's word.
        subtype: String,
    },
}

/// How a turn ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Whether something went wrong.
    pub(super) is_error: bool,
    /// The program's word for it, such as `success`; may be empty.
    pub(super) subtype: String,
    /// What went wrong, or a last text; may be empty.
    pub(super) text: String,
    /// What was wrong with what the program was given.
    pub(super) error_code: Option<String>,
    /// What the program's store said.
    pub(super) session_error_code: Option<String>,
    /// What the store was to do: `load` or `persist`.
    pub(super) session_error_phase: Option<String>,
}

/// A program's output, from its beginning.
#[derive(Debug, Default)]
pub(super) struct Stream {
    lines: Lines,
    heard: Heard,
    understood: bool,
}

/// What was heard of one output.
#[derive(Debug, Default)]
struct Heard {
    session: Option<String>,
    blocks: Blocks,
    items: Vec<Item>,
}

impl Stream {
    /// Takes what was printed; returns what is whole by now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Item> {
        let Self { lines, heard, understood } = self;
        lines.push(bytes, |line| *understood |= heard.line(line));
        std::mem::take(&mut heard.items)
    }

    /// Nothing more will be printed; returns what was still open. A line without its end is one.
    pub(super) fn finish(&mut self) -> Vec<Item> {
        let Self { lines, heard, understood } = self;
        lines.finish(|line| *understood |= heard.line(line));
        heard.close();
        std::mem::take(&mut heard.items)
    }

    /// Whether any line was a JSON object.
    pub(super) fn is_understood(&self) -> bool {
        self.understood
    }
}

impl Heard {
    /// Takes a line; whether it was a JSON object.
    fn line(&mut self, line: Line<'_>) -> bool {
        let text = match line {
            Line::Whole(text) => text.trim_ascii(),
            Line::TooLong => {
                self.say(Item::TooLong);
                return false;
            }
        };
        if text.is_empty() {
            return false;
        }
        // Deep nesting is refused, too. Of a key that is there twice the last one counts.
        let Ok(Value::Object(object)) = serde_json::from_slice(text) else {
            let end = &text[text.len().saturating_sub(COMPLAINT)..];
            self.items.push(Item::Complaint(String::from_utf8_lossy(end).into_owned()));
            return false;
        };
        self.name_session(&object);
        if !self.message(&object) {
            self.other(&object);
        }
        true
    }

    fn name_session(&mut self, object: &Map<String, Value>) {
        let named = ["session_id", "sessionID", "thread_id"].into_iter().find_map(|key| string(object, key));
        if let Some(id) = named.filter(|id| !id.is_empty())
            && self.session.as_ref() != Some(&id)
        {
            self.session = Some(id.clone());
            self.items.push(Item::Session(id));
        }
    }

    /// Says something after whatever was still being streamed.
    fn say(&mut self, item: Item) {
        self.close();
        self.items.push(item);
    }

    fn close(&mut self) {
        self.blocks.close(&mut self.items);
    }

    /// A tool is called; one that was said to be is not called again.
    fn call(&mut self, id: String, name: String, input: Value) {
        self.blocks.call(id, name, input, &mut self.items);
    }

    /// A tool has answered. Whatever was streamed before is over, and will not be repeated.
    fn answer(&mut self, id: String, text: String, is_error: bool) {
        self.say(Item::ToolResult { id, text, is_error });
        self.blocks.forget_texts();
    }

    /// A turn is over.
    fn end(&mut self, outcome: Outcome) {
        self.say(Item::Result(outcome));
        self.blocks.forget_texts();
    }
}

/// A text in an object.
fn string(object: &Map<String, Value>, key: &str) -> Option<String> {
    object.get(key)?.as_str().map(str::to_owned)
}

/// A text in an object; empty if there is none.
fn text_of(object: &Map<String, Value>, key: &str) -> String {
    string(object, key).unwrap_or_default()
}

/// An object in an object.
fn object_of<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Map<String, Value>> {
    object.get(key)?.as_object()
}

/// Any value for people: a text as it is, blocks by their texts, and everything else as JSON.
fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) if blocks.iter().all(|block| block.get("type").is_some()) => {
            let text = |block: &Value| match block.get("text").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => format!("[{}]", block.get("type").and_then(Value::as_str).unwrap_or("?")),
            };
            blocks.iter().map(text).collect::<Vec<_>>().join("\n")
        }
        Some(other) => other.to_string(),
    }
}
