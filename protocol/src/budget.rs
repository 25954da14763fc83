//! Writing that stops to take memory at a bound.

use std::io;

/// Holds what is written as long as it is within its bound, and counts on where it is not.
pub(crate) struct Budget {
    max: usize,
    bytes: Vec<u8>,
    length: usize,
}

impl Budget {
    /// A writer that keeps at most `max` bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, bytes: Vec::new(), length: 0 }
    }

    /// What was written, or by how many bytes it was too much.
    pub(crate) fn finish(self) -> Result<Vec<u8>, usize> {
        match self.length.checked_sub(self.max) {
            None | Some(0) => Ok(self.bytes),
            Some(excess) => Err(excess),
        }
    }
}

impl io::Write for Budget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len();
        if self.length <= self.max {
            self.bytes.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
