//! Which processes run in the sandboxes of this process, so that nothing it serves is served to them.
//!
//! A program in a sandbox cannot leave its supervisor's descendants: its orphans go to the keeper. So whoever descends from a
//! supervisor is one. While there is none, nothing is looked at.
//!
//! It is the process that counts, not which of several daemons in it has started a supervisor: they have the same rights, so that
//! what one refuses to its tasks must not be had from another.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::processes::{all, below, descends_from};

/// What such a program is told.
pub const NOT_SERVED: &str = "programs in a task's sandbox are not served by the daemon that runs the task";

/// The supervisors that this process has started, each with what says whether it has ended.
static SUPERVISORS: Mutex<Vec<(u32, OwnedFd)>> = Mutex::new(Vec::new());

/// Counts a process that was just started as a supervisor until it has ended.
pub(super) fn count(supervisor: &Child) -> io::Result<()> {
    let ended = pidfd_open(Pid::from_child(supervisor), PidfdFlags::empty())?;
    living().push((supervisor.id(), ended));
    Ok(())
}

/// The supervisors that have not ended.
fn living() -> MutexGuard<'static, Vec<(u32, OwnedFd)>> {
    let mut all = SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    all.retain(|(_, ended)| !matches!(poll(&mut [PollFd::new(ended, PollFlags::IN)], Some(&now)), Ok(1)));
    all
}

fn supervisors() -> Vec<u32> {
    living().iter().map(|(pid, _)| *pid).collect()
}

/// Whether a program in one of this process's sandboxes is at the other end of a connected unix socket; also if that cannot
/// be told, since whoever connected has ended. Logs it.
///
/// Who connected counts: one that hands the connection on to others is not seen to do so.
pub fn is_peer(socket: impl AsFd) -> io::Result<bool> {
    let is_theirs = is_peer_below(socket, &supervisors())?;
    if is_theirs {
        tracing::info!("refusing a connection to a unix socket from a task's sandbox, or from a test of one");
    }
    Ok(is_theirs)
}

fn is_peer_below(socket: impl AsFd, supervisors: &[u32]) -> io::Result<bool> {
    if supervisors.is_empty() {
        return Ok(false);
    }
    match u32::try_from(getsockopt(&socket, PeerCredentials)?.pid()) {
        // Not of this process's namespace of processes, nor of one below it, where all its sandboxes are.
        Ok(0) | Err(_) => Ok(false),
        Ok(pid) => Ok(descends_from(pid, supervisors).unwrap_or(true)),
    }
}

/// The sandboxes of this process at some moment.
#[derive(Clone, Debug)]
pub struct Sandboxes(Vec<u32>);

impl Sandboxes {
    /// Those there are now, if there is any.
    pub fn now() -> Option<Self> {
        Some(Self(supervisors())).filter(|now| !now.0.is_empty())
    }

    /// Whether a program in one of them, or in one that was made since, has a socket open: see [`hold_socket`].
    pub fn hold_socket(&self, inode: u64) -> bool {
        let mut all = supervisors();
        all.extend(&self.0);
        hold_socket(inode, &all)
    }
}

/// Whether a program in one of these sandboxes has a socket open, named by its inode; logs it. While there is a sandbox
/// it is theirs unless a program outside is seen to have it: their own descriptors may be hidden or many, they start others
/// faster than one can look, and one that is under way in a message is open in nobody. A program outside that hides its
/// descriptors from this user counts as one of theirs.
///
/// Takes as long as it takes to look at the descriptors of everything outside, whatever those inside do.
fn hold_socket(inode: u64, supervisors: &[u32]) -> bool {
    let is_theirs = hold_socket_below(inode, supervisors);
    if is_theirs {
        tracing::warn!("refusing a connection to a port from a task's sandbox");
    }
    is_theirs
}

fn hold_socket_below(inode: u64, supervisors: &[u32]) -> bool {
    if supervisors.is_empty() {
        return false;
    }
    let socket = format!("socket:[{inode}]");
    let inside: HashSet<i32> = below(supervisors).into_iter().collect();
    let is_outside =
        |pid: i32| u32::try_from(pid).is_ok_and(|pid| descends_from(pid, supervisors) == Some(false));
    // What was started inside since then is not searched either, and what was asked about one that has ended since is not
    // believed of whoever has its number now.
    !all()
        .filter(|pid| !inside.contains(pid))
        .any(|pid| is_outside(pid) && holds(pid, &socket) && is_outside(pid))
}

/// Whether a process is seen to have that open.
fn holds(pid: i32, socket: &str) -> bool {
    let is_it = |entry: fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str() == socket);
    fs::read_dir(format!("/proc/{pid}/fd")).is_ok_and(|open| open.flatten().any(is_it))
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::{Command, Stdio};

    use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

    use super::*;

    /// The process that connects is this one again, with this set: where to, one path and one address.
    const CONNECT: &str = "COFFERDAM_TEST_CONNECT";

    #[test]
    fn a_process_that_connects() {
        let Ok(to) = std::env::var(CONNECT) else { return };
        let (path, address) = to.split_once(' ').unwrap();
        let _one = UnixStream::connect(path).unwrap();
        let mut other = TcpStream::connect(address).unwrap();
        // Until the test has seen enough.
        let _ = other.read(&mut [0]);
    }

    /// A shell that has a child, which has connected.
    struct Tree {
        shell: Child,
        unix: UnixStream,
        tcp: TcpStream,
        _dir: tempfile::TempDir,
    }

    fn tree() -> Tree {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let unix = UnixListener::bind(&path).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = "sandbox::pods::tests::a_process_that_connects";
        let script = format!("{:?} --exact {name}; :", std::env::current_exe().unwrap());
        let to = format!("{} {}", path.display(), tcp.local_addr().unwrap());
        let shell = Command::new("sh").args(["-c", &script]).env(CONNECT, to).stdout(Stdio::null()).spawn();
        let (unix, tcp) = (unix.accept().unwrap().0, tcp.accept().unwrap().0);
        Tree { shell: shell.unwrap(), unix, tcp, _dir: dir }
    }

    impl Tree {
        /// The inode of the socket at the other end.
        fn inode(&self) -> u64 {
            let ends = [self.tcp.peer_addr().unwrap(), self.tcp.local_addr().unwrap()].map(|end| end.port());
            let table = fs::read_to_string("/proc/net/tcp").unwrap();
            let ports = |line: &str| {
                let mut words = line.split_ascii_whitespace().skip(1);
                let mut port = || u16::from_str_radix(words.next()?.split_once(':')?.1, 16).ok();
                Some([port()?, port()?])
            };
            let line = table.lines().find(|line| ports(line) == Some(ends)).unwrap();
            line.split_ascii_whitespace().nth(9).unwrap().parse().unwrap()
        }

        fn end(&mut self) {
            self.tcp.write_all(b"x").unwrap();
            self.shell.wait().unwrap();
        }
    }

    #[test]
    fn who_connects_from_below_a_supervisor_is_known_and_others_are_not() {
        let mut tree = tree();
        let (supervisor, own, inode) = ([tree.shell.id()], [std::process::id()], tree.inode());
        let other = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let elsewhere = [other.id()];
        for (supervisors, known) in [(&supervisor[..], true), (&own, true), (&elsewhere, false), (&[], false)]
        {
            assert_eq!(is_peer_below(&tree.unix, supervisors).unwrap(), known, "{supervisors:?}");
            assert_eq!(hold_socket_below(inode, supervisors), known, "{supervisors:?}");
        }
        tree.end();
        // Who that was cannot be told any more; without a sandbox it was nobody in one.
        assert!(is_peer_below(&tree.unix, &elsewhere).unwrap());
        assert!(!is_peer_below(&tree.unix, &[]).unwrap());
        assert!(hold_socket_below(inode, &elsewhere));
        assert!(!hold_socket_below(inode, &[]));
        let mut other = other;
        drop(other.stdin.take());
        other.wait().unwrap();
    }

    #[test]
    fn a_socket_that_is_under_way_in_a_message_counts_as_theirs_and_one_of_this_process_does_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let inode = rustix::fs::fstat(&client).unwrap().st_ino;
        let mut other = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let supervisors = [other.id()];
        assert!(!hold_socket_below(inode, &supervisors), "this process has it");
        let (_reads, writes) = UnixStream::pair().unwrap();
        let passed = [client.as_raw_fd()];
        let message = [ControlMessage::ScmRights(&passed)];
        let part = [IoSlice::new(b"x")];
        sendmsg::<()>(writes.as_raw_fd(), &part, &message, MsgFlags::empty(), None).unwrap();
        drop(client);
        assert!(hold_socket_below(inode, &supervisors), "nobody has it open");
        drop(other.stdin.take());
        other.wait().unwrap();
    }

    #[test]
    fn what_those_inside_have_open_is_not_searched_if_somebody_outside_is_seen_to_have_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let inode = rustix::fs::fstat(&client).unwrap().st_ino;
        let both = OwnedFd::from(client.try_clone().unwrap());
        let mut inside = Command::new("cat").stdin(both).stdout(Stdio::null()).spawn().unwrap();
        assert!(!hold_socket_below(inode, &[inside.id()]));
        assert!(hold_socket_below(inode, &[inside.id(), std::process::id()]));
        drop((listener, client));
        inside.wait().unwrap();
    }

    #[test]
    fn a_supervisor_counts_until_it_has_ended() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        count(&child).unwrap();
        assert!(supervisors().contains(&child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!supervisors().contains(&child.id()));
    }
}
