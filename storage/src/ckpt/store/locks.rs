//! Operations on one directory, or on directories of which one lies in the other, take turns.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::ckpt::error::{Error, Result};

/// How long an operation waits for its turn: the clients of the wire wait a second longer.
const PATIENCE: Duration = Duration::from_secs(4);

/// How often another process's lock is asked for. Nothing announces its end.
const POLL: Duration = Duration::from_millis(20);

/// The directories operations of this process work on.
#[derive(Debug)]
pub(super) struct Locks {
    held: Mutex<Vec<PathBuf>>,
    released: Condvar,
    patience: Duration,
}

/// While it lives, no other operation works on that directory, in it, or around it.
#[derive(Debug)]
pub(super) struct PathLock<'a> {
    locks: &'a Locks,
    path: PathBuf,
}

impl Locks {
    pub(super) fn new() -> Self {
        Self { held: Mutex::default(), released: Condvar::new(), patience: PATIENCE }
    }

    /// Locks for which nobody waits.
    #[cfg(test)]
    pub(super) fn impatient() -> Self {
        Self { patience: Duration::ZERO, ..Self::new() }
    }

    /// Waits for its turn; `Busy` if that takes too long.
    pub(super) fn acquire(&self, path: &Path) -> Result<PathLock<'_>> {
        let overlaps = |held: &mut Vec<PathBuf>| {
            held.iter().any(|other| other.starts_with(path) || path.starts_with(other))
        };
        let (mut held, waited) = self
            .released
            .wait_timeout_while(self.held(), self.patience, overlaps)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return Err(Error::Busy);
        }
        held.push(path.to_owned());
        Ok(PathLock { locks: self, path: path.to_owned() })
    }

    /// Takes the lock that other processes see, until the descriptor is closed; `Busy` if another process keeps it.
    /// `waited`: what is spent already of the operation's patience.
    pub(super) fn flock(&self, root: impl AsFd, waited: Duration) -> Result<()> {
        let mut left = self.patience.saturating_sub(waited);
        loop {
            match rustix::fs::flock(&root, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(Errno::WOULDBLOCK) if left.is_zero() => return Err(Error::Busy),
                Err(Errno::WOULDBLOCK) => {
                    // A pause: whether something of this process is released meanwhile does not matter.
                    let pause = POLL.min(left);
                    drop(self.released.wait_timeout_while(self.held(), pause, |_| true));
                    left -= pause;
                }
                Err(Errno::INTR) => {}
                // Some network filesystems have no such locks.
                Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                Err(errno) => return Err(Error::io("locking the workspace", errno.into())),
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        // The list is whole between any two statements.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PathLock<'_> {
    fn drop(&mut self) {
        let mut held = self.locks.held();
        if let Some(at) = held.iter().position(|path| *path == self.path) {
            held.swap_remove(at);
        }
        drop(held);
        self.locks.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_around_and_inside_are_excluded_and_siblings_are_not() {
        let locks = Locks::impatient();
        let _held = locks.acquire(Path::new("/a/b")).unwrap();
        for busy in ["/a/b", "/a", "/", "/a/b/c"] {
            assert!(matches!(locks.acquire(Path::new(busy)), Err(Error::Busy)), "{busy}");
        }
        for free in ["/a/bc", "/a/c", "/x"] {
            locks.acquire(Path::new(free)).unwrap();
        }
    }

    #[test]
    fn a_turn_ends_when_its_guard_is_dropped() {
        let locks = Locks::impatient();
        drop(locks.acquire(Path::new("/a")).unwrap());
        locks.acquire(Path::new("/a")).unwrap();
    }

    #[test]
    fn who_waits_gets_the_turn_when_it_is_free() {
        let locks = Locks::new();
        let held = locks.acquire(Path::new("/a")).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| locks.acquire(Path::new("/a/b")).map(drop));
            drop(held);
            waiting.join().unwrap().unwrap();
        });
    }

    #[test]
    fn another_holder_of_the_file_lock_makes_it_busy_until_its_descriptor_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let open = || std::fs::File::open(dir.path()).unwrap();
        let other = open();
        rustix::fs::flock(&other, FlockOperation::LockExclusive).unwrap();
        let locks = Locks::impatient();
        assert!(matches!(locks.flock(open(), Duration::ZERO), Err(Error::Busy)));
        drop(other);
        locks.flock(open(), Duration::ZERO).unwrap();
    }
}
