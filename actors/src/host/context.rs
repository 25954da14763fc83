//! What of the main conversation an agent is told (spec §4, `readContext`).
//!
//! Every line of it begins with `> `, so that nothing that was said there can pass for what is around it.

use std::path::PathBuf;

use cofferdam_protocol::pod::cut;
use cofferdam_protocol::session::{Block, Content, Message, SessionError};

use super::messages::MainSession;
use crate::session::{LoadSession, OpenStore, Sessions};

/// The most messages.
const MESSAGES: usize = 12;
/// The most characters of a message of the user.
const USER_CHARS: usize = 700;
/// The most characters of a message of the assistant.
const ASSISTANT_CHARS: usize = 900;
/// The most characters in all; the oldest lines go first.
const TOTAL_CHARS: usize = 12_000;

/// What of the main conversation an agent is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadContext {
    /// The messages, oldest first; empty: none.
    pub(super) text: String,
    /// How many there are, or why there are none; for people.
    pub(super) note: String,
}

impl ReadContext {
    /// Nothing, and why.
    pub(super) fn none(note: impl Into<String>) -> Self {
        Self { text: String::new(), note: note.into() }
    }
}

/// Reads the stored session that has the main session's id, in the scope of its directory.
pub(super) async fn read(sessions: &Sessions, main: Option<&MainSession>) -> ReadContext {
    let Some(main) = main.filter(|main| !main.id.is_empty()) else {
        return ReadContext::none("no context: the task was started from no main session");
    };
    if main.cwd.is_empty() {
        return ReadContext::none(format!(
            "no context: it is not known where the main session {} works; attach it with its directory",
            main.id
        ));
    }
    match load(sessions, main).await {
        Ok(messages) => of(&messages),
        Err(error) => ReadContext::none(format!(
            "no context: the main session {} is not stored for {}: {}",
            main.id, main.cwd, error.message
        )),
    }
}

async fn load(sessions: &Sessions, main: &MainSession) -> Result<Vec<Message>, SessionError> {
    let workspace = PathBuf::from(&main.cwd);
    let store = sessions.ask(OpenStore { workspace, project_settings: false }).await?.store?;
    let session_id = main.id.clone();
    Ok(sessions.ask(LoadSession { store, session_id }).await?.messages)
}

/// The last messages that have a text.
fn of(messages: &[Message]) -> ReadContext {
    let newest_first: Vec<String> = messages.iter().rev().filter_map(shown).take(MESSAGES).collect();
    let note = match newest_first.len() {
        0 => return ReadContext::none("no context: nothing was said yet in the main conversation"),
        1 => "context: the last message of the main conversation".to_owned(),
        n => format!("context: the last {n} messages of the main conversation"),
    };
    let all: Vec<String> = newest_first.into_iter().rev().collect();
    ReadContext { text: last_lines(&all.join("\n\n"), TOTAL_CHARS).to_owned(), note }
}

/// A message as the agent sees it: who speaks, and what is said; nothing if that is for nobody else, or no text.
fn shown(message: &Message) -> Option<String> {
    let (speaker, most) = match message.role.as_str() {
        "user" => ("User", USER_CHARS),
        "assistant" => ("Assistant", ASSISTANT_CHARS),
        _ => return None,
    };
    let text = said(&message.content);
    let text = cut(text.trim(), most).trim_end();
    (!text.is_empty()).then(|| format!("{speaker}:\n{}", quoted(text)))
}

/// What is said, without what tools gave.
fn said(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        Content::Blocks(blocks) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|block| match block {
                    Block::Text { text } => Some(text.as_str()),
                    Block::ToolResult { .. } => None,
                })
                .collect();
            texts.join("\n")
        }
    }
}

/// Marks every line, whatever ends it.
fn quoted(text: &str) -> String {
    const ENDS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    let text = text.replace("\r\n", "\n");
    let lines: Vec<String> = text.split(ENDS).map(|line| format!("> {line}").trim_end().to_owned()).collect();
    lines.join("\n")
}

/// The last lines that have at most so many UTF-16 units.
fn last_lines(text: &str, most: usize) -> &str {
    let mut excess = text.encode_utf16().count().saturating_sub(most);
    let mut rest = text;
    while excess > 0 {
        let end = rest.find('\n').map_or(rest.len(), |end| end + 1);
        excess = excess.saturating_sub(rest[..end].encode_utf16().count());
        rest = &rest[end..];
    }
    rest
}

#[cfg(test)]
mod tests;
