//! A disk that fails where a test wants it to.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rustix::io::Errno;

use super::{Disk, FaultHook, Op};

/// Fails the operation number `nth`, counted from 0, or everything from it on, as for a process that is dead by then.
/// Named steps count, too.
#[derive(Debug)]
pub(crate) struct Faults {
    nth: u64,
    dies: bool,
    errno: Errno,
    seen: AtomicU64,
}

impl Faults {
    pub(crate) fn new(nth: u64, errno: Errno, dies: bool) -> Arc<Self> {
        Arc::new(Self { nth, dies, errno, seen: AtomicU64::new(0) })
    }

    /// Whether anything failed.
    pub(crate) fn happened(&self) -> bool {
        self.seen.load(Ordering::Relaxed) > self.nth
    }
}

impl FaultHook for Faults {
    fn before(&self, _: Op) -> io::Result<()> {
        let seen = self.seen.fetch_add(1, Ordering::Relaxed);
        let fails = if self.dies { seen >= self.nth } else { seen == self.nth };
        if fails { Err(self.errno.into()) } else { Ok(()) }
    }

    fn step(&self, _: &str) -> io::Result<()> {
        self.before(Op::Commit)
    }
}

/// Remembers what was done.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Vec<Op>>);

impl Recorder {
    pub(crate) fn disk() -> (Arc<Self>, Disk) {
        let recorder = Arc::new(Self::default());
        (recorder.clone(), Disk::with_faults(recorder))
    }

    /// What was done since this was asked last.
    pub(crate) fn take(&self) -> Vec<Op> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl FaultHook for Recorder {
    fn before(&self, op: Op) -> io::Result<()> {
        self.0.lock().unwrap().push(op);
        Ok(())
    }

    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}
