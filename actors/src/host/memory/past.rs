//! A stored conversation as a transcript: for a task whose agent is not there, or is there again.

use cofferdam_protocol::host::EntryKind;
use cofferdam_protocol::session::{Envelope, Message};

use super::envelope::text;

/// What of a conversation is shown first, so that nobody takes it for all there was.
const NOTE: &str = "what was said before, from the stored conversation: without thoughts, notes and times";

/// What was said and done, oldest first; nothing if nothing was.
pub(super) fn entries(conversation: &Envelope) -> Vec<(EntryKind, String)> {
    let mut entries = Vec::new();
    let mut first = true;
    for message in &conversation.messages {
        let said = text(&message.content);
        let kind = match message.role.as_str() {
            "user" if std::mem::take(&mut first) => EntryKind::Prompt,
            "user" => EntryKind::User,
            "assistant" => EntryKind::Assistant,
            "tool" => EntryKind::Tool,
            _ => EntryKind::Note,
        };
        if !said.trim().is_empty() {
            entries.push((kind, said));
        }
        entries.extend(calls(message).map(|call| (EntryKind::Tool, call)));
    }
    if !entries.is_empty() {
        entries.insert(0, (EntryKind::Note, NOTE.to_owned()));
    }
    entries
}

fn calls(message: &Message) -> impl Iterator<Item = String> {
    let calls = message.tool_calls.iter().flatten();
    calls.map(|call| format!("{} {}", call.function.name, call.function.arguments))
}
