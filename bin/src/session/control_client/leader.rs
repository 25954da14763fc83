//! A running program that leads a process group, and the end of all of them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, test_kill_process_group};

use crate::deadline::Deadline;

/// How long a program may take to end by itself when it is asked to.
const GRACE: Duration = Duration::from_millis(250);
/// How long the processes of a group may take to be gone once they were killed. They are not ours to wait for.
const PASSING: Duration = Duration::from_millis(250);
/// How long to wait between two looks.
const STEP: Duration = Duration::from_millis(2);

/// The leader of a process group. Dropping it ends the whole group: it is asked to end, then made to.
pub(super) struct Leader {
    child: Child,
    /// Readable from the moment it has ended.
    ended: OwnedFd,
    /// The group's id, which is its own. No other group can have it until the leader was waited for.
    group: Pid,
    reaped: bool,
}

impl Leader {
    /// Takes a program that was started in a session of its own.
    pub(super) fn new(mut child: Child) -> io::Result<Self> {
        let group = Pid::from_child(&child);
        match pidfd_open(group, PidfdFlags::empty()) {
            Ok(ended) => Ok(Self { child, ended, group, reaped: false }),
            Err(error) => {
                let _ = kill_process_group(group, Signal::KILL);
                let _ = child.wait();
                Err(error.into())
            }
        }
    }

    /// What is readable once the leader has ended.
    pub(super) fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// Kills what is left of the group and waits for the leader, which has ended or is killed here.
    pub(super) fn reap(&mut self) {
        // While the leader was not waited for, its group is certainly the one that is meant.
        let _ = kill_process_group(self.group, Signal::KILL);
        let _ = self.child.wait();
        self.reaped = true;
        let mut waited = Duration::ZERO;
        while waited < PASSING && test_kill_process_group(self.group).is_ok() {
            pause(STEP);
            waited += STEP;
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = kill_process_group(self.group, Signal::TERM);
            let grace = Deadline::after(Some(GRACE));
            while let Ok(rest) = grace.remaining() {
                if wait_for(&mut [PollFd::new(&self.ended, PollFlags::IN)], rest).unwrap_or(true) {
                    break;
                }
            }
            self.reap();
        }
    }
}

/// Waits until one of these is ready, no longer than `limit`; says whether one is. A signal ends the wait, too.
pub(super) fn wait_for(ready: &mut [PollFd<'_>], limit: Option<Duration>) -> io::Result<bool> {
    // A time that the system cannot count is for ever.
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    match poll(ready, limit.as_ref()) {
        Err(Errno::INTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

/// Waits for nothing.
pub(super) fn pause(time: Duration) {
    let _ = wait_for(&mut [], Some(time));
}
