//! Signals that a thread waits for.

use std::io;

use nix::sys::signal::{SigSet, Signal, raise};

/// Signals that do not do what they would by themselves.
pub(crate) struct Signals(SigSet);

impl Signals {
    /// Keeps these signals from this thread and from all that are started from now on. A file that outgrows the user's
    /// limit is an error to whoever writes it, not the end of the process.
    pub(crate) fn block(heard: &[Signal]) -> io::Result<Self> {
        let heard: SigSet = heard.iter().copied().collect();
        let mut blocked = heard;
        blocked.add(Signal::SIGXFSZ);
        blocked.thread_block()?;
        Ok(Self(heard))
    }

    /// Waits for the next one.
    pub(crate) fn next(&self) -> io::Result<Signal> {
        Ok(self.0.wait()?)
    }

    /// Lets a signal do to this process what it would have done by itself.
    pub(crate) fn yield_to(&self, signal: Signal) -> io::Result<()> {
        SigSet::from(signal).thread_unblock()?;
        Ok(raise(signal)?)
    }
}
