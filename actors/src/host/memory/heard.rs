//! What is heard of a turn, as the messages it adds to the conversation.

use std::collections::VecDeque;

use cofferdam_protocol::session::{self, Content, Envelope, Message, ToolCall, ToolFunction};
use serde_json::{Value, json};

/// The most of one text, in bytes.
const TEXT: usize = 256 << 10;
/// The most of a turn, in bytes. What comes after it is left out, but for what the agent said last.
const TURN: usize = 4 << 20;
/// The most of a tool's name, in bytes.
const NAME: usize = 256;
/// What a call or its result takes besides its texts, in bytes, about.
const AROUND: usize = 256;
/// Stands where a text was cut.
const CUT: &str = "… (cut)";
/// Stands for what did not fit a turn.
const LEFT_OUT: &str = "(more was said and done here than is kept of a turn)";

/// What is heard of a turn.
#[derive(Debug)]
pub(in crate::host) struct Heard {
    /// Which turn.
    pub(super) turn: u64,
    /// What it adds.
    messages: Vec<Message>,
    /// What the agent has of the whole conversation, if it keeps that itself.
    pub(super) own: Option<Box<Envelope>>,
    /// How many bytes may still come.
    room: usize,
    /// What came when there was no room any more; the last of it is kept.
    last: Option<String>,
    /// The calls that have no result yet, oldest first.
    open: VecDeque<String>,
    /// How many calls there were.
    calls: usize,
}

impl Heard {
    /// A turn that begins with what the agent is told; with nothing if it begins by itself.
    pub(in crate::host) fn new(turn: u64, told: Option<&str>) -> Self {
        let mut heard = Self {
            turn,
            messages: Vec::new(),
            own: None,
            room: TURN,
            last: None,
            open: VecDeque::new(),
            calls: 0,
        };
        if let Some(told) = told {
            heard.add(message("user", bounded(told)));
        }
        heard
    }

    /// The agent said something. What it says in one go is one message.
    pub(in crate::host) fn said(&mut self, text: &str) {
        let text = bounded(text);
        let Some(text) = self.within(text, 0) else { return };
        match self.messages.last_mut() {
            Some(Message { role, content: Content::Text(said), tool_calls: None, .. })
                if role == "assistant" =>
            {
                if !said.ends_with('\n') {
                    said.push('\n');
                }
                said.push_str(&text);
            }
            _ => self.messages.push(message("assistant", text)),
        }
    }

    /// The agent calls a tool.
    pub(in crate::host) fn called(&mut self, name: &str, input: &str) {
        let name = session::bounded(name, NAME);
        let Some(input) = self.within(bounded(input), name.len() + AROUND) else { return };
        self.calls += 1;
        let id = format!("call-{}-{}", self.turn, self.calls);
        let arguments = match serde_json::from_str(&input) {
            Ok(Value::Object(_)) => input,
            _ => json!({ "input": input }).to_string(),
        };
        let function = ToolFunction { name, arguments };
        let call = ToolCall { id: id.clone(), kind: "function".to_owned(), function };
        self.open.push_back(id);
        match self.messages.last_mut() {
            Some(message) if message.role == "assistant" => {
                message.tool_calls.get_or_insert_default().push(call);
            }
            _ => self
                .messages
                .push(Message { tool_calls: Some(vec![call]), ..message("assistant", String::new()) }),
        }
    }

    /// A tool has answered: the one that was called first of those that have not.
    pub(in crate::host) fn answered(&mut self, text: &str) {
        let Some(text) = self.within(bounded(text), AROUND) else { return };
        let tool_call_id = self.open.pop_front();
        self.messages.push(Message { tool_call_id, ..message("tool", text) });
    }

    /// The agent says what the whole conversation is.
    pub(in crate::host) fn keeps(&mut self, own: Box<Envelope>) {
        self.own = Some(own);
    }

    /// What the turn adds. A call without a result would make the conversation useless for whoever goes on with it.
    pub(super) fn messages(mut self) -> Vec<Message> {
        for id in std::mem::take(&mut self.open) {
            let text = "the turn ended before the tool had answered".to_owned();
            self.messages.push(Message { tool_call_id: Some(id), ..message("tool", text) });
        }
        if let Some(last) = self.last {
            self.messages.push(message("assistant", format!("{LEFT_OUT}\n{last}")));
        }
        self.messages
    }

    /// The text, if there is room for it and `more` bytes.
    fn within(&mut self, text: String, more: usize) -> Option<String> {
        match self.room.checked_sub(text.len() + more) {
            Some(room) if self.last.is_none() => {
                self.room = room;
                Some(text)
            }
            _ => {
                self.last = Some(text);
                None
            }
        }
    }

    fn add(&mut self, message: Message) {
        self.room = self.room.saturating_sub(message.content.pieces().map(str::len).sum());
        self.messages.push(message);
    }
}

/// A message that is a text.
pub(super) fn message(role: &str, text: String) -> Message {
    Message {
        role: role.to_owned(),
        content: Content::Text(text),
        tool_call_id: None,
        name: None,
        tool_calls: None,
    }
}

/// The text, or its beginning with a mark.
fn bounded(text: &str) -> String {
    match text.len() > TEXT {
        false => text.to_owned(),
        true => format!("{}{CUT}", &text[..text.floor_char_boundary(TEXT)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_results_take_room_also_if_they_say_nothing() {
        let mut heard = Heard::new(1, None);
        let name = "x".repeat(1 << 20);
        for _ in 0..50_000 {
            heard.called(&name, "");
            heard.answered("");
        }
        let messages = heard.messages();
        let kept = serde_json::to_vec(&messages).unwrap().len();
        assert!(kept <= 2 * TURN, "{kept}");
        assert!(messages.last().unwrap().content.pieces().any(|text| text.starts_with(LEFT_OUT)));
    }
}
