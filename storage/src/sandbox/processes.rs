//! Ends what a process has started, however it hid: a program that left its group and its parent still is a descendant of the
//! nearest subreaper.

use std::collections::{HashMap, HashSet};
use std::fs;

use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, pidfd_open, pidfd_send_signal,
    test_kill_process, wait,
};

use super::at_once::AtOnce;

/// Every process that can be seen.
pub(super) fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
}

/// These processes and every descendant of theirs that can be seen.
pub(super) fn below(roots: &[u32]) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for pid in all() {
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found: Vec<i32> = roots.iter().filter_map(|pid| i32::try_from(*pid).ok()).collect();
    let mut seen: HashSet<i32> = found.iter().copied().collect();
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        at += 1;
        found.extend(children.get(pid).into_iter().flatten().filter(|child| seen.insert(**child)));
    }
    found
}

/// Every descendant of this process that can be seen.
fn descendants() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero().get();
    let below = below(&[own.unsigned_abs()]).into_iter();
    below.filter(|pid| *pid != own).filter_map(Pid::from_raw).collect()
}

/// The parent of a process that has not ended.
pub(super) fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything; the fields begin behind its last bracket.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?);
    // A program whose first thread has ended goes on in its others.
    let mut threads = || fields.nth(15).and_then(|threads| threads.parse::<u32>().ok());
    let has_ended = state == "X" || (state == "Z" && threads().is_none_or(|threads| threads < 2));
    (!has_ended).then(|| parent.parse().ok())?
}

/// Whether a process is, or descends from, one of `ancestors`, which are this user's, as far as /proc shows. Nothing if it has
/// ended, or its ancestors come and go faster than one can look.
pub(super) fn descends_from(pid: u32, ancestors: &[u32]) -> Option<bool> {
    const TRIES: usize = 16;
    (0..TRIES).find_map(|_| {
        let mut at = pid;
        loop {
            if ancestors.contains(&at) {
                return Some(true);
            }
            // One that ends on the way has given its children to another, perhaps to one of those.
            let number = i32::try_from(at).ok()?;
            match parent_of(number) {
                Some(0) => return Some(false),
                Some(parent) => at = u32::try_from(parent).ok()?,
                None if is_strangers(number) => return Some(false),
                None => return None,
            }
        }
    })
}

/// Whether there is such a process and this one must not send it a signal: it is another user's. /proc may be mounted so that it
/// does not show those.
fn is_strangers(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid) == Err(Errno::PERM))
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

/// What children there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Children {
    /// None at all.
    None,
    /// Some, all of which live.
    Living,
    /// More that may have ended.
    More,
}

/// Reaps children that have ended: so many that there is room for others, and no more, since in a storm of processes there is no
/// end of them.
pub(super) fn reap(mut ended: impl FnMut(Pid, WaitStatus)) -> Children {
    const MOST: usize = 1000;
    for _ in 0..MOST {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => ended(pid, status),
            Ok(None) => return Children::Living,
            Err(Errno::INTR) => {}
            Err(_) => return Children::None,
        }
    }
    Children::More
}

/// Kills descendants until none is left: all at one moment, where that can be done. Elsewhere what is forked meanwhile is found in
/// the next round: first all are stopped, so that a round finds less and less of that. `signals` gets SIGCHLD.
pub(super) fn end_descendants(
    signals: &SignalFd,
    at_once: AtOnce<'_>,
    mut ended: impl FnMut(Pid, WaitStatus),
) {
    const ROUND: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    loop {
        let children = reap(&mut ended);
        if children == Children::None {
            return;
        }
        at_once.kill();
        signal_descendants(Signal::STOP);
        signal_descendants(Signal::KILL);
        if children == Children::Living {
            // A process that hangs in the kernel ends when it comes back.
            let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&ROUND));
        }
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
        for (pid, ancestors, expected) in
            [(theirs, &[own][..], true), (own, &[own], true), (own, &[theirs], false), (own, &[], false)]
        {
            assert_eq!(descends_from(pid, ancestors), Some(expected), "{pid} {ancestors:?}");
        }
        assert!(descendants().iter().any(|pid| pid.as_raw_nonzero().get() as u32 == theirs));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(descends_from(theirs, &[own]), None, "it has ended");
    }

    /// Set for this test once more, where /proc shows no process of anybody else.
    const HIDDEN: &str = "COFFERDAM_TEST_HIDDEN";

    #[test]
    fn where_proc_hides_the_processes_of_others_none_of_those_is_an_ancestor() {
        if std::env::var_os(HIDDEN).is_some() {
            assert!(fs::read("/proc/1/stat").is_err());
            assert_eq!(descends_from(std::process::id(), &[u32::MAX]), Some(false));
            return;
        }
        let test = "sandbox::processes::tests::where_proc_hides_the_processes_of_others_none_of_those_is_an_ancestor";
        let mount = "mount -t proc -o hidepid=2 proc /proc || exit 77\n";
        let user = "setpriv --reuid=65534 --regid=65534 --clear-groups";
        // Its parent, the shell, is root's and hidden.
        let script =
            format!("{mount}{user} test -x \"$0\" || exit 77\n{user} \"$0\" --exact {test}\nexit $?");
        let own = std::env::current_exe().unwrap();
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-c", &script]).arg(own).env(HIDDEN, "").stdout(Stdio::null());
        match shell.status().map(|status| status.code()) {
            Ok(Some(0)) => {}
            Ok(Some(101)) => panic!("see above"),
            other => cofferdam_tests::skipped(format_args!(
                "this machine makes no /proc anew, or only for root: {other:?}"
            )),
        }
    }

    #[test]
    fn a_program_whose_first_thread_has_ended_has_not_ended() {
        let script = "import ctypes, sys, threading\n\
                      threading.Thread(target=sys.stdin.read).start()\n\
                      print('ready', flush=True)\n\
                      ctypes.CDLL(None).syscall(ctypes.c_long(int(sys.argv[1])), 0)";
        let exit = libc::SYS_exit.to_string();
        let mut python = Command::new("python3");
        let Ok(mut child) =
            python.args(["-c", script, &exit]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
        else {
            return cofferdam_tests::skipped(format_args!("there is no python3"));
        };
        let state = || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        while !state().contains(") Z ") {
            std::thread::yield_now();
        }
        assert_eq!(descends_from(child.id(), &[std::process::id()]), Some(true));
        assert!(below(&[std::process::id()]).contains(&(child.id() as i32)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
