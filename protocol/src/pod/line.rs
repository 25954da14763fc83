//! Cutting a stream of bytes into request lines, without ever holding more than one line.

use super::MAX_REQUEST_LINE;

/// What stood between two newlines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// At most [`MAX_REQUEST_LINE`] bytes, without newline, trailing carriage return and leading byte order mark; not
    /// blank.
    Whole(Vec<u8>),
    /// More than that; it is gone.
    TooLong,
}

/// Collects bytes until a line is complete.
#[derive(Debug, Default)]
pub struct LineReader {
    held: Vec<u8>,
    /// The line was too long; everything up to its newline is dropped.
    skipping: bool,
}

impl LineReader {
    /// Takes what was read and hands on each line that it completes.
    pub fn feed(&mut self, bytes: &[u8], mut line: impl FnMut(Line)) {
        let _ = (bytes, &mut line, &mut self.skipping, MAX_REQUEST_LINE);
        todo!()
    }

    /// The stream has ended: what is left, as a last line without newline.
    pub fn finish(self) -> Option<Line> {
        let _ = self.held;
        todo!()
    }
}
