//! Bytes, however they were cut, into lines that are not too long.

use super::MAX_LINE;

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// It is longer than [`MAX_LINE`] bytes; what is in it was not kept.
    TooLong,
}

/// The line whose end has not come yet.
#[derive(Debug, Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
    /// It is too long; the rest of it is skipped.
    skipping: bool,
}

impl Lines {
    /// Takes bytes, and gives the lines that end in them. One that is too long is given as soon as it is.
    pub(super) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Line<'_>)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match part.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (part, false),
            };
            if !self.skipping && self.begun.len() + text.len() > MAX_LINE {
                self.skipping = true;
                self.begun = Vec::new();
                take(Line::TooLong);
            }
            match (self.skipping, ends) {
                (true, ends) => self.skipping = !ends,
                (false, false) => self.begun.extend_from_slice(text),
                (false, true) if self.begun.is_empty() => take(Line::Whole(text)),
                (false, true) => {
                    self.begun.extend_from_slice(text);
                    // What a long line took is given back.
                    take(Line::Whole(&std::mem::take(&mut self.begun)));
                }
            }
        }
    }

    /// Gives a line whose end never came.
    pub(super) fn finish(&mut self, mut take: impl FnMut(Line<'_>)) {
        self.skipping = false;
        let last = std::mem::take(&mut self.begun);
        if !last.is_empty() {
            take(Line::Whole(&last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(parts: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut given) = (Lines::default(), Vec::new());
        let mut take = |line: Line<'_>| {
            given.push(match line {
                Line::Whole(text) => String::from_utf8_lossy(text).into_owned(),
                Line::TooLong => "too long".to_owned(),
            });
        };
        for part in parts {
            lines.push(part, &mut take);
            assert!(lines.begun.len() <= MAX_LINE);
        }
        lines.finish(take);
        given
    }

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        assert_eq!(lines(&[b"one\ntw", b"", b"o\n\nthr", b"ee"]), ["one", "two", "", "three"]);
        let parts: Vec<&[u8]> = b"one\ntwo\n".chunks(1).collect();
        assert_eq!(lines(&parts), ["one", "two"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_told_once_and_the_next_one_is_whole() {
        let long = vec![b'x'; MAX_LINE];
        assert_eq!(lines(&[&long, b"\nnext"])[1], "next");
        assert_eq!(lines(&[&long, b"x", &long, b"\nnext\n"]), ["too long", "next"]);
        assert_eq!(lines(&[&long, b"x"]), ["too long"]);
    }
}
