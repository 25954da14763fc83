//! How the sidecar ends: what ends it, and that it is gone in time whatever hangs.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use cofferdam_actors::pod::{Pod, Reply};
use cofferdam_protocol::pod::Shutdown;
use nix::sys::signal::Signal;
use rustix::event::PollFlags;
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

use super::outbox::Outbox;
use crate::stdio::{Signals, wait};

/// How long the database may take to close, and the host to read what is left. A host waits 2 s.
pub(super) const PATIENCE: Duration = Duration::from_millis(1800);

/// The signals that are heard.
pub(super) const SIGNALS: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// Why the sidecar ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The host has asked for it.
    Shutdown,
    /// The host sends nothing more.
    EndOfInput,
    /// The host sends nothing more, and does not read either, so that what it has sent cannot be taken.
    HungUp,
    /// The host reads nothing more.
    OutputBroken,
    /// The host is gone.
    ParentGone,
    /// A signal has asked for it.
    Signal(Signal),
    /// The actors have ended by themselves, which is a bug.
    ActorsGone,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shutdown => "the host asked for it",
            Self::EndOfInput => "stdin ended",
            Self::HungUp => "the host closed stdin and does not read",
            Self::OutputBroken => "stdout is broken",
            Self::ParentGone => "the host is gone",
            Self::Signal(signal) => signal.as_str(),
            Self::ActorsGone => "the actors ended unexpectedly",
        })
    }
}

/// Takes causes to end; the first one counts.
#[derive(Clone)]
pub(super) struct Lifetime {
    causes: Sender<Cause>,
    watching: Arc<AtomicBool>,
}

impl Lifetime {
    /// The causes go to [`end_in_time`].
    pub(super) fn new(causes: Sender<Cause>) -> Self {
        Self { causes, watching: Arc::default() }
    }

    /// Ends the sidecar.
    pub(super) fn end(&self, cause: Cause) {
        // Before anything is logged: the log may hang.
        let _ = self.causes.send(cause);
        tracing::info!(%cause, "ending");
    }

    /// Waits until nobody can write to `input` any more, then for its reader, but for that no longer than half of
    /// `patience`: a host that does not read is not read from, so the end of what it has sent would never be seen.
    pub(super) fn watch_input(&self, input: impl AsFd, read: &Receiver<Infallible>, patience: Duration) {
        match wait(input, PollFlags::RDHUP, None) {
            Ok(_) => match read.recv_timeout(patience / 2) {
                Err(RecvTimeoutError::Timeout) => self.end(Cause::HungUp),
                Err(RecvTimeoutError::Disconnected) => {}
                Ok(never) => match never {},
            },
            Err(error) => tracing::warn!(%error, "stdin is not watched"),
        }
    }

    /// The host says which process it is. If that is the parent, its death ends the sidecar, even while somebody else
    /// holds the other end of stdin.
    pub(super) fn watch_host(&self, pid: u32) {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
        if getppid() != Some(pid) || self.watching.swap(true, Ordering::Relaxed) {
            return;
        }
        let watched = pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from);
        // If it is the parent still, the descriptor is the parent's, and not that of another process with its number.
        if getppid() != Some(pid) {
            return self.end(Cause::ParentGone);
        }
        if let Err(error) = watched.and_then(|process| self.end_with(process)) {
            tracing::warn!(%error, "the host cannot be watched; only the end of stdin will tell");
        }
    }

    /// SIGTERM and SIGINT end the sidecar; SIGHUP does nothing, so a terminal that closes does not.
    pub(super) fn hear(&self, signals: &Signals) {
        loop {
            match signals.next() {
                Ok(Signal::SIGHUP) => {}
                Ok(signal) => self.end(Cause::Signal(signal)),
                Err(error) => return tracing::warn!(%error, "signals are not heard any more"),
            }
        }
    }

    /// A process's end is the sidecar's.
    fn end_with(&self, process: OwnedFd) -> io::Result<()> {
        let lifetime = self.clone();
        let watch = move || match wait(process, PollFlags::IN, None) {
            Ok(_) => lifetime.end(Cause::ParentGone),
            Err(error) => tracing::warn!(%error, "the host is not watched any more"),
        };
        thread::Builder::new().name("host".to_owned()).spawn(watch).map(drop)
    }
}

/// Waits for a cause to end, then for the actors to finish what was read and to close the database, then for the
/// printer to end; but for the last two no longer than `patience`. Returns what the sidecar ended for.
pub(super) fn end_in_time(
    causes: &Receiver<Cause>,
    printed: &Receiver<Infallible>,
    pod: &Pod,
    outbox: &Arc<Outbox>,
    patience: Duration,
) -> Cause {
    // There is always a sender: this thread's caller keeps one.
    let cause = causes.recv().unwrap_or(Cause::ActorsGone);
    // Half of the time has gone by since the host hung up.
    let patience = if cause == Cause::HungUp { patience / 2 } else { patience };
    outbox.stop_admitting();
    let closing = Arc::clone(outbox);
    pod.call(Shutdown {}, Reply::new(move |_| closing.close()));
    // It ends with an error in any case: late, or because the printer has gone and its sender with it.
    let _ = printed.recv_timeout(patience);
    cause
}

#[cfg(test)]
mod tests;
