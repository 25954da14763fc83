//! Secrets, taken out of text before it is kept or shown.

use std::borrow::Cow;

use cofferdam_protocol::session::{Block, Content, Envelope, Message};
use serde_json::{Map, Value};

mod scan;

#[cfg(test)]
mod tests;

/// What stands in a secret's place.
pub const REDACTED: &str = "<redacted>";

/// The text without secrets, in one pass. What is redacted already stays as it is: redacting twice changes nothing.
pub fn text(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    for piece in text.split(REDACTED) {
        let end = at + piece.len();
        // Nothing is found across a place that is redacted, nor was it when that was done: what is left over between
        // secrets has no others in it.
        while let Some(secret) = scan::first_secret(&text.as_bytes()[at..end]) {
            out.push_str(&text[copied..at + secret.start]);
            out.push_str(REDACTED);
            at += secret.end;
            copied = at;
        }
        at = end + REDACTED.len();
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Takes the secrets out of a message: its text, and the arguments of its tool calls, which are JSON.
pub fn message(message: &mut Message) {
    match &mut message.content {
        Content::Text(said) => scrub(said),
        Content::Blocks(blocks) => blocks.iter_mut().for_each(|block| match block {
            Block::Text { text: said } | Block::ToolResult { content: said, .. } => scrub(said),
        }),
    }
    for call in message.tool_calls.iter_mut().flatten() {
        call.function.arguments = arguments(&call.function.arguments);
    }
}

/// Takes the secrets out of all that was said, the summary of it included.
pub fn envelope(envelope: &mut Envelope) {
    envelope.messages.iter_mut().for_each(message);
    if let Some(compaction) = &mut envelope.compaction {
        scrub(&mut compaction.summary);
    }
}

/// A tool's arguments without secrets: compact, keys sorted. What is no JSON is a text like any other.
fn arguments(arguments: &str) -> String {
    match serde_json::from_str::<Value>(arguments) {
        Ok(mut value) => {
            scrub_json(&mut value);
            value.to_string()
        }
        Err(_) => text(arguments).into_owned(),
    }
}

/// As deep as the JSON is, which its parser bounds.
fn scrub_json(value: &mut Value) {
    match value {
        Value::String(said) => scrub(said),
        Value::Array(items) => {
            let mut after_flag = false;
            for item in items {
                let flag = item.as_str().is_some_and(scan::is_secret_flag);
                match item {
                    Value::String(secret) if after_flag && !flag => REDACTED.clone_into(secret),
                    other => scrub_json(other),
                }
                after_flag = flag;
            }
        }
        Value::Object(fields) => {
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(key, value)| field(key, value))
                .collect::<Map<_, _>>();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn field(mut key: String, mut value: Value) -> (String, Value) {
    if scan::is_secret_name(key.as_bytes()) {
        // There is nothing to hide in these.
        if !matches!(value, Value::Null | Value::Bool(_)) {
            value = Value::String(REDACTED.to_owned());
        }
    } else {
        scrub_json(&mut value);
        scrub(&mut key);
    }
    (key, value)
}

fn scrub(said: &mut String) {
    if let Cow::Owned(clean) = text(said) {
        *said = clean;
    }
}
