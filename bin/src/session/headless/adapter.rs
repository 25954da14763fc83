//! The program's life: sets up its threads, holds the conversation, and ends.

use std::convert::Infallible;
use std::io;
use std::ops::ControlFlow;
use std::process::exit;
use std::sync::Arc;
use std::sync::mpsc::channel;

use cofferdam_actors::session::conversation::{self, Ended, LineSource, Options, Processes};
use cofferdam_actors::session::{self, Parts};
use cofferdam_protocol::pod::Line;
use cofferdam_protocol::session::headless::{Input, MalformedLine};
use cofferdam_protocol::session::limits;
use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::outbox::Outbox;
use crate::stdio::{Inherited, Signals, read_lines, spawn};

/// The longest line that is read. A conversation that holds more cannot be kept, however its characters are escaped.
const LONGEST_LINE: usize = 6 * limits::SESSION_FILE as usize;

/// Holds a conversation on stdin and stdout. Returns only if that cannot begin: its end is the process's end.
pub(crate) fn run(parts: Parts, options: Options) -> io::Result<Infallible> {
    let signals = Signals::block(&[Signal::SIGINT, Signal::SIGTERM])?;
    let processes = Processes::default();
    let ending = processes.clone();
    spawn("signals", move || end_by_signal(&signals, &ending))?;
    let (outbox, printer) = Outbox::new();
    let (printed, whole) = channel();
    spawn("stdout", move || {
        // Somebody waits for it.
        let _ = printed.send(printer.print(Inherited(io::stdout())));
    })?;

    let source = lines();
    // Without its I/O driver, which would make sockets and an epoll descriptor that nothing here needs.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let ended = actix::System::with_tokio_rt(|| runtime).block_on(async {
        let parts = conversation::Parts {
            clock: Arc::clone(&parts.clock),
            ids: Arc::clone(&parts.ids),
            sessions: session::start(parts),
            sink: Arc::new(outbox),
            processes: processes.clone(),
        };
        conversation::hold(parts, options, source).await
    });
    processes.end();
    let whole = whole.recv().unwrap_or(false);
    exit(match ended {
        Ended::Done => i32::from(!whole),
        Ended::Malformed => 1,
        Ended::UnknownTools => 2,
    })
}

/// The lines of stdin, which is not touched before the first is wanted.
fn lines() -> LineSource {
    let (sender, lines) = mpsc::channel(1);
    let read = move || {
        let take = |line: Line| {
            let line = match line {
                Line::Whole(bytes) => conversation::Line { input: Input::parse(&bytes), bytes: bytes.len() },
                Line::TooLong => conversation::Line { input: Err(MalformedLine), bytes: 0 },
            };
            match sender.blocking_send(line) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        };
        if let Err(error) = read_lines(Inherited(io::stdin()), LONGEST_LINE, take) {
            tracing::warn!(%error, "stdin cannot be read");
        }
    };
    let begin = move || {
        if let Err(error) = spawn("stdin", read) {
            tracing::warn!(%error, "stdin is not read");
        }
    };
    LineSource { lines, begin: Box::new(begin) }
}

/// A person who interrupts the program wants it to end, with nothing said or kept of the turn. SIGTERM does what it
/// always does. Neither leaves a program running.
fn end_by_signal(signals: &Signals, processes: &Processes) {
    loop {
        match signals.next() {
            Ok(Signal::SIGINT) => {
                processes.end();
                exit(0);
            }
            Ok(signal) => {
                processes.end();
                if let Err(error) = signals.yield_to(signal) {
                    tracing::warn!(%error, "ending without the signal");
                    exit(1);
                }
            }
            Err(error) => return tracing::warn!(%error, "signals are not heard any more"),
        }
    }
}
