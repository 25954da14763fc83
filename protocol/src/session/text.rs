//! Untrusted text, made fit to be shown.

use super::envelope::Message;

/// The text without control characters, cut at a character to at most `max` bytes; `…` ends what was cut.
pub fn bounded(text: &str, max: usize) -> String {
    todo!("{text} {max}")
}

/// The first prompt of a conversation on one line, as a summary shows it: of the first message of role `user` that has
/// any text. At most [`PROMPT_CHARS`](super::limits::PROMPT_CHARS) characters. Control characters, those that reorder
/// text and those without width are left out.
pub fn preview<'a>(messages: impl Iterator<Item = &'a Message>) -> Option<String> {
    let _ = messages;
    todo!()
}
