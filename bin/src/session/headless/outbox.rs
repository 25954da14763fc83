//! Stdout: the lines that wait to be printed, and the thread that prints them.

use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use cofferdam_actors::session::conversation::OutputSink;
use cofferdam_protocol::session::headless::Output;
use tokio::sync::Notify;

/// How many bytes may wait before whoever puts lines waits, too.
const MAX_WAITING: usize = 1 << 20;

/// Takes lines to be printed.
pub(super) struct Outbox {
    lines: Sender<Vec<u8>>,
    waiting: Arc<Waiting>,
}

/// Prints them.
pub(super) struct Printer {
    lines: Receiver<Vec<u8>>,
    waiting: Arc<Waiting>,
}

#[derive(Default)]
struct Waiting {
    bytes: AtomicUsize,
    /// Something was printed.
    less: Notify,
}

impl Outbox {
    pub(super) fn new() -> (Self, Printer) {
        let (sender, lines) = channel();
        let waiting = Arc::<Waiting>::default();
        (Self { lines: sender, waiting: Arc::clone(&waiting) }, Printer { lines, waiting })
    }
}

impl OutputSink for Outbox {
    fn put(&self, line: &Output) {
        let line = line.line();
        self.waiting.bytes.fetch_add(line.len(), Ordering::Relaxed);
        // The printer lives longer.
        let _ = self.lines.send(line);
    }

    fn room(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async {
            while self.waiting.bytes.load(Ordering::Relaxed) >= MAX_WAITING {
                self.waiting.less.notified().await;
            }
        })
    }
}

impl Printer {
    /// Prints each line at once until there is no outbox any more. Where nobody reads, lines are dropped: the conversation
    /// goes on and is kept. Says whether everything was printed.
    pub(super) fn print(self, mut out: impl Write) -> bool {
        let mut whole = true;
        while let Ok(line) = self.lines.recv() {
            whole = whole && out.write_all(&line).is_ok();
            self.waiting.bytes.fetch_sub(line.len(), Ordering::Relaxed);
            self.waiting.less.notify_one();
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, PipeReader};
    use std::thread;

    use super::*;

    fn status(text: &str) -> Output {
        Output::status(text)
    }

    fn read_all(mut reader: PipeReader) -> String {
        let mut text = String::new();
        io::Read::read_to_string(&mut reader, &mut text).unwrap();
        text
    }

    #[test]
    fn lines_are_printed_in_their_order() {
        let (outbox, printer) = Outbox::new();
        let (reader, writer) = io::pipe().unwrap();
        let printing = thread::spawn(move || printer.print(writer));
        for i in 0..100 {
            outbox.put(&status(&i.to_string()));
        }
        drop(outbox);
        assert!(printing.join().unwrap());
        let text = read_all(reader);
        let expected: String = (0..100)
            .map(|i| format!("{{\"type\":\"system\",\"subtype\":\"status\",\"status\":\"{i}\"}}\n"))
            .collect();
        assert_eq!(text, expected);
    }

    #[test]
    fn who_puts_much_waits_until_it_is_read() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (outbox, printer) = Outbox::new();
            outbox.room().await;
            outbox.put(&status(&"x".repeat(MAX_WAITING)));
            let mut room = outbox.room();
            let waits =
                std::future::poll_fn(|cx| std::task::Poll::Ready(room.as_mut().poll(cx).is_pending()));
            assert!(waits.await);
            let (reader, writer) = io::pipe().unwrap();
            let (printing, reading) =
                (thread::spawn(move || printer.print(writer)), thread::spawn(move || read_all(reader)));
            room.await;
            drop(outbox);
            assert!(printing.join().unwrap());
            assert!(reading.join().unwrap().len() > MAX_WAITING);
        });
    }

    #[test]
    fn where_nobody_reads_the_conversation_goes_on() {
        let (outbox, printer) = Outbox::new();
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        outbox.put(&status("lost"));
        outbox.put(&status(&"x".repeat(MAX_WAITING)));
        drop(outbox);
        assert!(!printer.print(writer));
    }
}
