//! Cutting a stream of bytes into lines, without ever holding more than one line.

/// What stood between two newlines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// At most as many bytes as a line may have, without newline, trailing carriage return and leading byte order mark; not
    /// blank.
    Whole(Vec<u8>),
    /// More than that; it is gone.
    TooLong,
}

/// Collects bytes until a line is complete.
#[derive(Debug)]
pub struct LineReader {
    /// How long a line may be.
    longest: usize,
    held: Vec<u8>,
    /// The line was too long; everything up to its newline is dropped.
    skipping: bool,
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

impl LineReader {
    /// For lines of at most that many bytes.
    pub fn new(longest: usize) -> Self {
        Self { longest, held: Vec::new(), skipping: false }
    }

    /// Takes what was read and hands on each line that it completes.
    pub fn feed(&mut self, bytes: &[u8], mut line: impl FnMut(Line)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.split_last() {
                Some((b'\n', end)) => {
                    self.hold(end);
                    self.take().into_iter().for_each(&mut line);
                }
                _ => self.hold(piece),
            }
        }
    }

    /// The stream has ended: what is left, as a last line without newline.
    pub fn finish(mut self) -> Option<Line> {
        self.take()
    }

    fn hold(&mut self, piece: &[u8]) {
        let length = self.held.len() + piece.len();
        // A line and the carriage return that may be part of its newline.
        let most = self.longest + 1;
        if self.skipping || length > most {
            (self.held, self.skipping) = (Vec::new(), true);
            return;
        }
        if length > self.held.capacity() {
            // Doubles like any vector, but not past the longest line.
            let capacity = (2 * self.held.capacity()).clamp(length, most);
            self.held.reserve_exact(capacity - self.held.len());
        }
        self.held.extend_from_slice(piece);
    }

    /// Ends the line that is held.
    fn take(&mut self) -> Option<Line> {
        let mut held = std::mem::take(&mut self.held);
        held.pop_if(|last| *last == b'\r');
        if std::mem::take(&mut self.skipping) || held.len() > self.longest {
            return Some(Line::TooLong);
        }
        if held.starts_with(BYTE_ORDER_MARK) {
            held.drain(..BYTE_ORDER_MARK.len());
        }
        (!held.trim_ascii().is_empty()).then_some(Line::Whole(held))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pod::MAX_REQUEST_LINE;

    /// All lines of a stream that arrives in these pieces.
    fn lines<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Line> {
        let (mut reader, mut lines) = (LineReader::new(MAX_REQUEST_LINE), Vec::new());
        for piece in pieces {
            reader.feed(piece, |line| lines.push(line));
        }
        lines.extend(reader.finish());
        lines
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn line_ends_and_byte_order_marks_are_dropped_and_blank_lines_skipped() {
        let stream = "\u{feff}a\r\n\n \t\r\n\r\n\u{feff}\nb\n\u{feff}c\r";
        assert_eq!(lines([stream.as_bytes()]), [whole("a"), whole("b"), whole("c")]);
        assert_eq!(lines([&b"a\r\r\n \rb"[..]]), [whole("a\r"), whole(" \rb")]);
    }

    #[test]
    fn a_line_may_have_1048576_bytes_however_its_newline_is_written() {
        for end in ["", "\n", "\r\n", "\r"] {
            let longest = "x".repeat(1_048_576);
            assert_eq!(lines([format!("{longest}{end}").as_bytes()]), [whole(&longest)], "{end:?}");
            assert_eq!(lines([format!("{longest}x{end}").as_bytes()]), [Line::TooLong], "{end:?}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_told_once_and_takes_no_memory() {
        let (mut reader, mut lines) = (LineReader::new(MAX_REQUEST_LINE), Vec::new());
        let chunk = vec![b'x'; 65_536];
        for _ in 0..1024 {
            reader.feed(&chunk, |line| lines.push(line));
            assert!(reader.held.capacity() <= MAX_REQUEST_LINE + 1);
        }
        assert!(lines.is_empty());
        reader.feed(b"\nnext\n", |line| lines.push(line));
        assert_eq!(lines, [Line::TooLong, whole("next")]);
        assert_eq!(reader.held.capacity(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn where_the_stream_is_cut_makes_no_difference(
            stream in "[ab\r\n\u{feff} ]{0,80}",
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
        ) {
            let bytes = stream.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
            let expected: Vec<Line> = stream
                .split('\n')
                .map(|line| line.strip_suffix('\r').unwrap_or(line))
                .map(|line| line.strip_prefix('\u{feff}').unwrap_or(line))
                .filter(|line| !line.trim_matches([' ', '\r']).is_empty())
                .map(whole)
                .collect();
            prop_assert_eq!(lines(pieces), expected);
        }
    }
}
