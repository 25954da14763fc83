//! Ends what a process has started, however it hid: a program that left its group and its parent still is a descendant of the
//! nearest subreaper.

use std::collections::{HashMap, HashSet};
use std::fs;

use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, pidfd_open, pidfd_send_signal, wait,
};

/// Every descendant of this process that can be seen.
fn descendants() -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut ahead = vec![getpid().as_raw_nonzero().get()];
    let mut seen = HashSet::new();
    while let Some(pid) = ahead.pop() {
        for child in children.get(&pid).into_iter().flatten().filter(|child| seen.insert(**child)) {
            ahead.push(*child);
            found.extend(Pid::from_raw(*child));
        }
    }
    found
}

/// The parent of a process that has not ended.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything; the fields begin behind its last bracket.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?);
    (!matches!(state, "Z" | "X")).then(|| parent.parse().ok())?
}

/// Whether a process is, or descends from, one of `ancestors`, as far as /proc shows.
pub fn descends_from(pid: u32, ancestors: &[u32]) -> bool {
    let mut at = pid;
    // Every process has fewer ancestors than that.
    for _ in 0..4096 {
        if ancestors.contains(&at) {
            return true;
        }
        match i32::try_from(at).ok().and_then(parent_of).and_then(|parent| u32::try_from(parent).ok()) {
            Some(parent) if parent != 0 => at = parent,
            _ => return false,
        }
    }
    false
}

/// Sends a signal to every descendant, once.
pub(super) fn signal_descendants(signal: Signal) {
    for pid in descendants() {
        // Held before it is looked at again, so that the number cannot have gone to somebody else.
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if parent_of(pid.as_raw_nonzero().get()).is_some() {
            let _ = pidfd_send_signal(&held, signal);
        }
    }
}

/// Reaps every child that has ended; `false` once there is no child at all.
pub(super) fn reap(mut ended: impl FnMut(Pid, WaitStatus)) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => ended(pid, status),
            Ok(None) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Kills descendants until none is left. What is forked meanwhile is found in the next round: first all are stopped, so that a
/// round finds less and less of that. `signals` gets SIGCHLD.
pub(super) fn end_descendants(signals: &SignalFd, mut ended: impl FnMut(Pid, WaitStatus)) {
    const ROUND: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    while reap(&mut ended) {
        signal_descendants(Signal::STOP);
        signal_descendants(Signal::KILL);
        // A process that hangs in the kernel ends when it comes back.
        let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&ROUND));
        while let Ok(Some(_)) = signals.read_signal() {}
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_descends_from_its_parent_and_from_itself_but_not_from_its_child() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let (own, theirs) = (std::process::id(), child.id());
        assert!(descends_from(theirs, &[own]) && descends_from(own, &[own]));
        assert!(!descends_from(own, &[theirs]) && !descends_from(own, &[]));
        assert!(descendants().iter().any(|pid| pid.as_raw_nonzero().get() as u32 == theirs));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
