//! Stdin, read until it ends or nobody wants more of it.

use std::io::{self, Read};
use std::ops::ControlFlow;

use cofferdam_protocol::pod::{Line, LineReader};

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// Hands on each line of at most `longest` bytes, the last one also without a newline. `Break` if `take` wanted no more; else the input has ended.
pub(crate) fn read_lines(
    mut input: impl Read,
    longest: usize,
    mut take: impl FnMut(Line) -> ControlFlow<()>,
) -> io::Result<ControlFlow<()>> {
    let mut chunk = vec![0; CHUNK];
    let mut lines = LineReader::new(longest);
    let mut flow = ControlFlow::Continue(());
    loop {
        match input.read(&mut chunk)? {
            0 => return Ok(lines.finish().map_or(flow, take)),
            read => lines.feed(&chunk[..read], |line| {
                if flow.is_continue() {
                    flow = take(line);
                }
            }),
        }
        if flow.is_break() {
            return Ok(flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that comes in pieces of some size.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let size = self.1.min(self.0.len()).min(bytes.len());
            bytes[..size].copy_from_slice(&self.0[..size]);
            self.0 = &self.0[size..];
            Ok(size)
        }
    }

    fn whole(line: &str) -> Line {
        Line::Whole(line.as_bytes().to_vec())
    }

    #[test]
    fn lines_are_the_same_however_the_stream_is_cut() {
        let text = "one\n\ntwo\r\n\u{20ac}\nlast";
        for size in 1..=text.len() {
            let mut lines = Vec::new();
            let ended = read_lines(Pieces(text.as_bytes(), size), 100, |line| {
                lines.push(line);
                ControlFlow::Continue(())
            });
            assert_eq!(ended.unwrap(), ControlFlow::Continue(()));
            assert_eq!(
                lines,
                [whole("one"), whole("two"), whole("\u{20ac}"), whole("last")],
                "pieces of {size}"
            );
        }
    }

    #[test]
    fn nothing_is_taken_after_the_line_that_ended_it() {
        for size in [1, 4, 100] {
            let mut lines = Vec::new();
            let ended = read_lines(Pieces(b"one\nend\nlater\nlast", size), 100, |line| {
                lines.push(line.clone());
                if line == whole("end") { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(ended.unwrap(), ControlFlow::Break(()));
            assert_eq!(lines, [whole("one"), whole("end")], "pieces of {size}");
        }
    }
}
