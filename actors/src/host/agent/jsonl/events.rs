//! Items, as a task is told of them.

use super::Item;
use crate::host::agent::AgentEvent;
use crate::host::agent::command::readable;

/// The most of a tool's name, in bytes.
const NAME: usize = 256;

/// What a task is told of an item, if it is told anything; `ours` is our name for a tool. Texts are fit for a terminal.
pub(in crate::host::agent) fn event(item: &Item, ours: impl Fn(&str) -> String) -> Option<AgentEvent> {
    Some(match item {
        Item::Text(text) => AgentEvent::Text(readable(text.as_bytes())),
        Item::Thinking(text) => AgentEvent::Thinking(readable(text.as_bytes())),
        Item::ToolCall { name, input, .. } => {
            AgentEvent::ToolCall { name: bounded(&ours(name)), input: readable(input.to_string().as_bytes()) }
        }
        Item::ToolResult { text, is_error, .. } => {
            let text = readable(text.as_bytes());
            AgentEvent::ToolResult { text: if *is_error { format!("error: {text}") } else { text } }
        }
        Item::Init(init) => {
            AgentEvent::Tools(init.tools.as_ref()?.iter().map(|name| bounded(&ours(name))).collect())
        }
        Item::Session(_)
        | Item::Request { .. }
        | Item::Status(_)
        | Item::Complaint(_)
        | Item::Result(_)
        | Item::TooLong => return None,
    })
}

/// A tool's name, which a program may choose as it likes, or its beginning with a mark.
fn bounded(name: &str) -> String {
    let beginning = &name[..name.floor_char_boundary(NAME)];
    let mark = if beginning.len() < name.len() { "…" } else { "" };
    format!("{}{mark}", readable(beginning.as_bytes()))
}
