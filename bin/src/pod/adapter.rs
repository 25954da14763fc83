//! The sidecar's life: sets up its threads and ends when one of them says so.

use std::convert::Infallible;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use cofferdam_actors::pod::{Parts, Pod};
use cofferdam_protocol::pod::{CORE_VERSION, Health, Line, MAX_REQUEST_LINE};
use cofferdam_storage::clock::{Clock, RandomIds};
use cofferdam_storage::disk::Disk;
use cofferdam_storage::pod::Surroundings;

use super::lifetime::{Cause, Lifetime, PATIENCE, SIGNALS, end_in_time};
use super::logs::Logs;
use super::outbox::Outbox;
use super::translate::Translator;
use crate::stdio::{Inherited, Signals, read_lines, spawn};

/// What the sidecar gets from outside.
pub(crate) struct Machine {
    /// The way to the disk.
    pub(crate) disk: Disk,
    /// What time it is.
    pub(crate) clock: Arc<dyn Clock>,
    /// How often deadlines are looked at.
    pub(crate) tick: Duration,
    /// Where the process finds itself.
    pub(crate) surroundings: Surroundings,
}

/// Serves the host on stdin and stdout until it goes. Returns only if that cannot begin: the end is the process's end,
/// since whatever hangs then does not count.
pub(crate) fn run(machine: Machine) -> io::Result<Infallible> {
    let signals = Signals::block(&SIGNALS)?;
    let logs = Logs::start(machine.disk.clone());
    tracing::info!(version = CORE_VERSION, "starting");
    let outbox = Arc::new(Outbox::default());
    let parts = Parts {
        disk: machine.disk,
        clock: machine.clock,
        ids: Arc::new(RandomIds),
        tick: machine.tick,
        events: Arc::clone(&outbox) as _,
        surroundings: machine.surroundings,
        logs,
    };
    // Without its I/O driver, which would make sockets and an epoll descriptor that nothing here needs.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    actix::System::with_tokio_rt(|| runtime).block_on(async {
        let pod = cofferdam_actors::pod::start(parts);
        // The actor makes its mailbox as large as it has to be when it starts.
        let _ = pod.ask(Health {}).await;
        serve(&pod, &outbox, signals)?;
        std::future::pending().await
    })
}

/// Starts the threads.
fn serve(pod: &Pod, outbox: &Arc<Outbox>, signals: Signals) -> io::Result<()> {
    let (causes, first_cause) = channel();
    let lifetime = Lifetime::new(causes);
    let hearing = lifetime.clone();
    spawn("signals", move || hearing.hear(&signals))?;

    let (printing, printed) = channel();
    let (printer, broken) = (Arc::clone(outbox), lifetime.clone());
    spawn("stdout", move || {
        printer.print(Inherited(io::stdout()), |error| {
            tracing::debug!(%error, "stdout");
            broken.end(Cause::OutputBroken);
        });
        drop(printing);
    })?;

    let (closer, last) = (pod.clone(), Arc::clone(outbox));
    spawn("lifetime", move || {
        let cause = end_in_time(&first_cause, &printed, &closer, &last, PATIENCE);
        std::process::exit(i32::from(cause == Cause::ActorsGone));
    })?;

    let (reading, read) = channel();
    let hanging = lifetime.clone();
    spawn("hangup", move || hanging.watch_input(io::stdin(), &read, PATIENCE))?;

    let (outbox, translator) = (Arc::clone(outbox), Translator { pod: pod.clone(), lifetime });
    spawn("stdin", move || {
        // Gone when everything was read.
        let _reading: Sender<Infallible> = reading;
        let take = |line: Line| {
            let bytes = match &line {
                Line::Whole(bytes) => bytes.len(),
                Line::TooLong => 0,
            };
            match outbox.admit(bytes) {
                Some(ticket) => translator.line(line, ticket),
                None => ControlFlow::Break(()),
            }
        };
        match read_lines(Inherited(io::stdin()), MAX_REQUEST_LINE, take) {
            Ok(ControlFlow::Break(())) => {}
            Ok(ControlFlow::Continue(())) => translator.lifetime.end(Cause::EndOfInput),
            Err(error) => {
                tracing::warn!(%error, "stdin cannot be read");
                translator.lifetime.end(Cause::EndOfInput);
            }
        }
    })
}
