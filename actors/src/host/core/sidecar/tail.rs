//! The last lines that the sidecar wrote on stderr.

use std::collections::VecDeque;
use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

/// How many lines are kept.
const LINES: usize = 50;
/// How many characters of each.
const CHARS: usize = 500;
/// How many bytes those have at most.
const BYTES: usize = 4 * CHARS;

/// Shared by whoever reads stderr and whoever shows it; of all processes, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<String>,
    /// The beginning of a line whose end is to come.
    begun: Vec<u8>,
}

impl Tail {
    /// The lines, oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.with(|kept| kept.lines.iter().cloned().collect())
    }

    /// Reads to the end. What is not kept is thrown away, so the writer never waits for anybody.
    pub(super) async fn follow(&self, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 64 << 10];
        // That it cannot be read any more is its end.
        while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
            self.with(|kept| kept.feed(&chunk[..read]));
        }
        self.with(Kept::end_line);
    }

    fn with<T>(&self, work: impl FnOnce(&mut Kept) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    fn feed(&mut self, bytes: &[u8]) {
        let mut newlines = Vec::new();
        let mut rest = bytes;
        // The fastest search for a byte that the standard library has.
        while let Ok(1..) = rest.skip_until(b'\n') {
            newlines.push(bytes.len() - rest.len());
        }
        // Of many lines only the last ones are looked at: whoever floods costs little.
        let unseen = newlines.len().saturating_sub(LINES + 1);
        let mut from = 0;
        if let Some(last) = unseen.checked_sub(1) {
            from = newlines[last];
            self.begun.clear();
        }
        for end in newlines.drain(unseen..) {
            self.piece(&bytes[from..end]);
            from = end;
        }
    }

    /// Takes a line, or a part of one.
    fn piece(&mut self, piece: &[u8]) {
        let text = piece.strip_suffix(b"\n").unwrap_or(piece);
        let room = BYTES.saturating_sub(self.begun.len());
        self.begun.extend_from_slice(&text[..text.len().min(room)]);
        if piece.ends_with(b"\n") {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.begun);
        let line: String = line.trim_end().chars().take(CHARS).collect();
        self.begun.clear();
        if line.is_empty() {
            return;
        }
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn kept(pieces: &[&[u8]]) -> Vec<String> {
        let tail = Tail::default();
        // Each piece is read alone, if it is short enough.
        let stderr = pieces
            .iter()
            .fold(Box::new(tokio::io::empty()) as Box<dyn AsyncRead + Unpin>, |before, piece| {
                Box::new(before.chain(*piece))
            });
        tail.follow(stderr).await;
        tail.lines()
    }

    #[actix::test]
    async fn lines_are_kept_whole_wherever_the_stream_is_cut_and_the_last_one_without_newline_too() {
        assert_eq!(kept(&[b"a\nb", b"c\r\n\n", b"\xff", b"d"]).await, ["a", "bc", "\u{fffd}d"]);
        assert!(kept(&[]).await.is_empty());
    }

    #[actix::test]
    async fn only_the_last_50_lines_are_kept() {
        let text: String = (0..10_000).map(|number| format!("{number}\n")).collect();
        let last: Vec<_> = (9_950..10_000).map(|number: u32| number.to_string()).collect();
        assert_eq!(kept(&[b"begun", text.as_bytes()]).await, last);
        let slowly: Vec<_> = text.split_inclusive('\n').map(str::as_bytes).collect();
        assert_eq!(kept(&slowly[9_000..]).await, last);
    }

    #[actix::test]
    async fn of_each_line_the_first_500_characters_are_kept() {
        let long = "\u{10348}".repeat(100_000);
        let lines = kept(&[long.as_bytes(), b"\nshort\n"]).await;
        assert_eq!(lines, ["\u{10348}".repeat(500), "short".to_owned()]);
    }
}
