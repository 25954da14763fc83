//! Untrusted text, made fit to be shown.

use std::borrow::Borrow;

use super::limits::PROMPT_CHARS;
use super::message::Message;

/// What stands for what was cut.
const ELLIPSIS: char = '…';

/// The text without control characters, cut at a character to at most `max` bytes; `…` ends what was cut.
pub fn bounded(text: &str, max: usize) -> String {
    let mut kept = String::new();
    // Where to cut if it turns out to be too long.
    let mut cut = 0;
    for char in text.chars().filter(|char| !char.is_control()) {
        if kept.len() + char.len_utf8() > max {
            kept.truncate(cut);
            kept.push(ELLIPSIS);
            break;
        }
        kept.push(char);
        if kept.len() + ELLIPSIS.len_utf8() <= max {
            cut = kept.len();
        }
    }
    kept
}

/// The first prompt of a conversation on one line, as a summary shows it: of the first message of role `user` that has
/// any text. At most [`PROMPT_CHARS`] characters. Control characters, those that reorder text and those without width
/// are left out. Messages are taken one at a time, and none behind the one that is shown.
pub fn preview(messages: impl IntoIterator<Item = impl Borrow<Message>>) -> Option<String> {
    messages.into_iter().find_map(|message| {
        let message = message.borrow();
        (message.role == "user").then(|| line_of(message.content.pieces().map(words_of_user)))?
    })
}

/// Pieces of text as one line; `None` if nothing of them can be seen. Looks no further than it shows.
fn line_of<'a>(pieces: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut line = String::new();
    let mut count = 0;
    for word in pieces.flat_map(str::split_whitespace) {
        let mut gap = !line.is_empty();
        for char in visible(word) {
            for char in gap.then_some(' ').into_iter().chain([char]) {
                if count == PROMPT_CHARS {
                    return Some(cut(line));
                }
                line.push(char);
                count += 1;
            }
            gap = false;
        }
    }
    (!line.is_empty()).then_some(line)
}

/// A line of one character too many, the last ones replaced by `…`.
fn cut(mut line: String) -> String {
    line.pop();
    // What joins is between two characters or nowhere.
    while line.ends_with(JOINER) {
        line.pop();
    }
    line.push(ELLIPSIS);
    line
}

/// What joins pictures into one, as those of a family; of no width by itself.
const JOINER: char = '\u{200d}';

/// The characters of a word that can be seen, and what joins pictures.
fn visible(word: &str) -> impl Iterator<Item = char> {
    let mut before = None;
    let mut chars = word.chars().filter(|char| *char == JOINER || !is_invisible(*char)).peekable();
    std::iter::from_fn(move || {
        loop {
            let char = chars.next()?;
            let after = chars.peek().copied();
            if char != JOINER || (before.is_some_and(is_picture) && after.is_some_and(is_picture)) {
                before = Some(char);
                return Some(char);
            }
        }
    })
}

/// Whether a character is an emoji or a part of one: pictures, symbols that may be shown as such, and the sign that asks
/// for it.
fn is_picture(char: char) -> bool {
    matches!(char, '\u{2190}'..='\u{2bff}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
}

/// Whether a character controls something, reorders text, or has no width and joins nothing to what it follows.
fn is_invisible(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{ad}' // soft hyphen
            | '\u{34f}' // grapheme joiner
            | '\u{61c}' // Arabic letter mark
            | '\u{115f}'..='\u{1160}' // Hangul fillers
            | '\u{17b4}'..='\u{17b5}' // inherent Khmer vowels
            | '\u{180b}'..='\u{180f}' // Mongolian selectors, vowel separator
            | '\u{200b}'..='\u{200f}' // zero-width space, non-joiner and joiner, direction marks
            | '\u{202a}'..='\u{202e}' // embeddings and overrides of direction
            | '\u{2060}'..='\u{206f}' // word joiner, invisible operators, isolates of direction
            | '\u{3164}' // Hangul filler
            | '\u{feff}' // zero-width no-break space
            | '\u{ffa0}' // halfwidth Hangul filler
            | '\u{fff9}'..='\u{fffb}' // interlinear annotations
            | '\u{1bca0}'..='\u{1bca3}' // shorthand controls
            | '\u{1d173}'..='\u{1d17a}' // musical controls
            | '\u{e0000}'..='\u{e0fff}' // tags, further selectors
        )
}

/// What a shell puts before the user's words when it passes them on.
const WRAPPER: &str = "Handle this natural-language shell prompt request for a Shell-first assistant.\n";
const WORDS: &str = "\nuser_input: ";
const FRAME: &str = "\n\nruntime_frame:\n";
const CONTRACT: &str = "\n\ncosh-shell Agent contract:\n";

/// The user's own words in a text: all of it, unless a shell has wrapped them up.
fn words_of_user(text: &str) -> &str {
    let words = || {
        let start = text.starts_with(WRAPPER).then(|| text.find(WORDS))?? + WORDS.len();
        let end = text[..text.rfind(CONTRACT)?].rfind(FRAME)?;
        let words = text.get(start..end)?.trim();
        (!words.is_empty()).then_some(words)
    };
    words().unwrap_or(text)
}
