//! The text of a stream of server-sent events, taken apart as it comes in: in chunks that end anywhere.

use std::collections::VecDeque;

/// The longest line, and the most text of one event, in bytes. More is skipped and said to be missing.
const MAX_EVENT: usize = 1 << 20;

/// What the text of a stream says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// An event: the text of its data.
    Event(String),
    /// An event that is too long, or no text. It was skipped.
    Skipped,
}

/// Takes the text apart. It holds no more than one event of [`MAX_EVENT`] bytes, and what was not asked for yet.
#[derive(Debug, Default)]
pub(super) struct EventText {
    /// The line that is not over yet.
    line: Vec<u8>,
    /// Whether the last byte ended a line as `\r` does: a `\n` that follows belongs to it.
    after_return: bool,
    /// The data lines of the event that is not over yet.
    data: Vec<u8>,
    has_data: bool,
    /// Whether the event that is not over yet has grown too long.
    too_long: bool,
    said: VecDeque<Said>,
    is_alive: bool,
}

impl EventText {
    /// Takes what came in.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        for byte in chunk {
            let after_return = std::mem::take(&mut self.after_return);
            match byte {
                b'\n' if after_return => {}
                b'\n' => self.end_line(),
                b'\r' => {
                    self.after_return = true;
                    self.end_line();
                }
                _ if self.line.len() < MAX_EVENT => self.line.push(*byte),
                _ => self.too_long = true,
            }
        }
    }

    /// What was said and not asked for yet, oldest first.
    pub(super) fn pop(&mut self) -> Option<Said> {
        self.said.pop_front()
    }

    /// Whether there was anything but what a stream begins with: an event, or a sign of life.
    pub(super) fn is_alive(&self) -> bool {
        self.is_alive
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.end_event();
        }
        self.is_alive |= line.starts_with(b":");
        let Some(value) = field(&line, b"data") else { return };
        self.too_long |= self.data.len() + value.len() >= MAX_EVENT;
        if self.too_long {
            return self.data.clear();
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
    }

    fn end_event(&mut self) {
        let data = std::mem::take(&mut self.data);
        self.is_alive |= self.has_data;
        let (has_data, too_long) = (std::mem::take(&mut self.has_data), std::mem::take(&mut self.too_long));
        match String::from_utf8(data) {
            _ if too_long => self.said.push_back(Said::Skipped),
            // A comment, a heartbeat, an event that says nothing.
            _ if !has_data => {}
            Ok(text) => self.said.push_back(Said::Event(text)),
            Err(_) => self.said.push_back(Said::Skipped),
        }
    }
}

/// The value of a line, if it is of that field. One blank after the colon belongs to neither.
fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(name)?;
    match rest {
        [] => Some(rest),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a text says that comes in pieces of so many bytes.
    fn said(text: &[u8], piece: usize) -> Vec<Said> {
        let mut events = EventText::default();
        text.chunks(piece).for_each(|chunk| events.push(chunk));
        std::iter::from_fn(|| events.pop()).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let expected: Vec<_> = expected.iter().map(|text| Said::Event((*text).to_owned())).collect();
        for piece in [1, 2, 3, 7, text.len().max(1)] {
            assert_eq!(said(text.as_bytes(), piece), expected, "{text:?} in pieces of {piece}");
        }
    }

    #[test]
    fn events_come_out_whole_however_their_bytes_come_in() {
        check("event: a\ndata: {}\n\ndata: größe\n\n", &["{}", "größe"]);
        check("data:a\ndata: b\ndata\n\n", &["a\nb\n"]);
        check("data:  two blanks\n\n", &[" two blanks"]);
    }

    #[test]
    fn lines_may_end_in_any_of_the_three_ways() {
        check("data: a\r\n\r\ndata: b\r\rdata: c\n\n", &["a", "b", "c"]);
        check("data: a\r\ndata: b\r\n\r\n", &["a\nb"]);
    }

    #[test]
    fn comments_other_fields_and_an_event_that_was_cut_off_say_nothing() {
        check(": heartbeat\n\n:\n\n", &[]);
        check("id: 1\nretry: 5\nevent: x\n\n", &[]);
        check("database: no\n\ndata: yes\n: in between\n\n", &["yes"]);
        check("data: cut off\n", &[]);
        check("", &[]);
    }

    #[test]
    fn events_and_comments_are_signs_of_life_and_the_beginning_of_a_stream_is_none() {
        for (text, alive) in
            [("retry: 2000\n\n", false), ("data: a\n", false), (":\n", true), ("data: a\n\n", true)]
        {
            let mut events = EventText::default();
            events.push(text.as_bytes());
            assert_eq!(events.is_alive(), alive, "{text:?}");
        }
    }

    #[test]
    fn an_event_that_is_too_long_is_skipped_and_said_to_be_and_takes_no_more_room_than_allowed() {
        let long = format!("data: {}\n\ndata: after\n\n", "x".repeat(3 * MAX_EVENT));
        let after = Said::Event("after".to_owned());
        assert_eq!(said(long.as_bytes(), 4096), [Said::Skipped, after.clone()]);
        let many = format!("{}\ndata: after\n\n", format!("data: {}\n", "x".repeat(1000)).repeat(2000));
        assert_eq!(said(many.as_bytes(), 4096), [Said::Skipped, after]);
        let mut events = EventText::default();
        (0..4000).for_each(|_| events.push(&[b'x'; 1024]));
        assert!(events.line.len() <= MAX_EVENT && events.data.is_empty());
    }

    #[test]
    fn what_is_no_text_is_skipped_and_said_to_be() {
        assert_eq!(said(b"data: \xff\n\n", 1), [Said::Skipped]);
    }
}
