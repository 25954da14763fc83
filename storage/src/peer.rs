//! Whose rights an operation runs with.
//!
//! A root daemon serves everybody, but a step that touches a path a peer named must not be able to do more than
//! that peer could: it runs on a thread that has taken the peer's supplementary groups, fsgid and fsuid. These
//! are per-thread in Linux; the rest of the daemon keeps its own. A thread that such a thread starts begins with the
//! same rights.

use std::io;
use std::marker::PhantomData;
use std::os::fd::AsFd;

use nix::unistd::{Gid, Uid};

/// Who asks: the credentials of the process at the other end of a socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Its effective user id.
    pub uid: u32,
    /// Its effective group id.
    pub gid: u32,
    /// Its supplementary groups.
    pub groups: Vec<u32>,
}

impl Peer {
    /// The daemon itself, or whoever embeds it.
    pub fn own() -> Self {
        Self {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            groups: thread_groups().unwrap_or_default(),
        }
    }

    /// The process at the other end of a connected unix socket, as it was when it connected.
    pub fn of_socket(socket: impl AsFd) -> io::Result<Self> {
        let credentials = rustix::net::sockopt::socket_peercred(&socket)?;
        Ok(Self {
            uid: credentials.uid.as_raw(),
            gid: credentials.gid.as_raw(),
            groups: crate::sys::socket_peer_groups(&socket)?,
        })
    }

    /// Whether this peer may see and do everything: root, or the daemon's own user.
    pub fn is_privileged(&self) -> bool {
        self.uid == 0 || self.uid == rustix::process::geteuid().as_raw()
    }

    /// Runs this thread's path steps with the peer's rights until the guard is dropped. Does nothing for a
    /// privileged peer.
    pub fn enter(&self) -> io::Result<PeerRights> {
        let rights = if self.is_privileged() {
            None
        } else {
            let saved = Rights::current()?;
            let wanted = Rights { groups: Some(sorted(self.groups.clone())), gid: self.gid, uid: self.uid };
            if let Err(error) = wanted.assume() {
                saved.restore();
                return Err(error);
            }
            Some(saved)
        };
        Ok(PeerRights { saved: rights, thread_bound: PhantomData })
    }
}

/// While it lives, this thread has a peer's rights over files.
#[must_use]
pub struct PeerRights {
    saved: Option<Rights>,
    thread_bound: PhantomData<*const ()>,
}

impl Drop for PeerRights {
    fn drop(&mut self) {
        if let Some(saved) = &self.saved {
            saved.restore();
        }
    }
}

/// Runs `body` with the daemon's own user and group, whatever peer's rights this thread has taken: for the store's own
/// files, which no peer may open.
pub fn as_daemon<T>(body: impl FnOnce() -> T) -> T {
    let own = Rights {
        groups: None,
        gid: rustix::process::getegid().as_raw(),
        uid: rustix::process::geteuid().as_raw(),
    };
    let saved = Rights { groups: None, gid: fsgid(), uid: fsuid() };
    if saved == own {
        return body();
    }
    let _guard = PeerRights { saved: Some(saved), thread_bound: PhantomData };
    // If this should fail, `body` is refused what it may not do.
    let _ = own.assume();
    body()
}

/// What this thread may do to files.
#[derive(PartialEq, Eq)]
struct Rights {
    /// Sorted; `None` leaves them as they are.
    groups: Option<Vec<u32>>,
    gid: u32,
    uid: u32,
}

impl Rights {
    fn current() -> io::Result<Self> {
        Ok(Self { groups: Some(sorted(thread_groups()?)), gid: fsgid(), uid: fsuid() })
    }

    /// Takes them and proves that they took: setfsuid and setfsgid report no errors.
    fn assume(&self) -> io::Result<()> {
        // Who may not set groups can still be given back those it has.
        if let Some(groups) = &self.groups
            && sorted(thread_groups()?) != *groups
        {
            let gids: Vec<rustix::process::Gid> =
                groups.iter().map(|gid| rustix::process::Gid::from_raw(*gid)).collect();
            rustix::thread::set_thread_groups(&gids)?;
            if sorted(thread_groups()?) != *groups {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
        }
        nix::unistd::setfsgid(Gid::from_raw(self.gid));
        nix::unistd::setfsuid(Uid::from_raw(self.uid));
        if fsgid() != self.gid || fsuid() != self.uid {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(())
    }

    fn restore(&self) {
        if self.assume().is_err() {
            // A pooled thread that kept somebody else's rights would serve the next peer with them.
            std::process::abort();
        }
    }
}

/// An id that does not exist changes nothing and returns what is in force.
fn fsuid() -> u32 {
    nix::unistd::setfsuid(Uid::from_raw(u32::MAX)).as_raw()
}

fn fsgid() -> u32 {
    nix::unistd::setfsgid(Gid::from_raw(u32::MAX)).as_raw()
}

fn thread_groups() -> io::Result<Vec<u32>> {
    Ok(rustix::process::getgroups()?.into_iter().map(|gid| gid.as_raw()).collect())
}

fn sorted(mut groups: Vec<u32>) -> Vec<u32> {
    groups.sort_unstable();
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::net::UnixStream;

    const STRANGER: u32 = 54321;

    fn stranger() -> Peer {
        Peer { uid: STRANGER, gid: STRANGER, groups: vec![STRANGER + 1] }
    }

    fn is_root() -> bool {
        let root = Peer::own().uid == 0;
        if !root {
            cofferdam_tests::skipped(format_args!("only root may take another user's rights"));
        }
        root
    }

    #[test]
    fn the_peer_of_a_socket_is_the_process_that_connected() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = Peer::of_socket(&one).unwrap();
        let own = Peer::own();
        assert_eq!((peer.uid, peer.gid), (own.uid, own.gid));
        assert_eq!(sorted(peer.groups), sorted(own.groups));
    }

    #[test]
    fn a_stranger_may_not_read_what_only_the_daemon_may() {
        if !is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let secret = dir.path().join("secret");
        std::fs::write(&secret, "x").unwrap();
        std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
        {
            let _rights = stranger().enter().unwrap();
            assert_eq!(std::fs::read(&secret).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            assert_eq!(as_daemon(|| std::fs::read(&secret)).unwrap(), b"x");
            assert_eq!(std::fs::read(&secret).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        assert_eq!(std::fs::read(&secret).unwrap(), b"x");
    }

    #[test]
    fn files_a_thread_makes_for_a_peer_are_the_peers() {
        if !is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let made = dir.path().join("made");
        let rights = stranger().enter().unwrap();
        std::fs::write(&made, "x").unwrap();
        drop(rights);
        let meta = std::fs::metadata(&made).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (STRANGER, STRANGER));
    }

    #[test]
    fn rights_taken_twice_are_given_back_one_at_a_time() {
        if !is_root() {
            return;
        }
        let before = (fsuid(), fsgid(), thread_groups().unwrap());
        let outer = stranger().enter().unwrap();
        {
            let other = Peer { uid: STRANGER + 7, gid: STRANGER + 7, groups: Vec::new() };
            let _inner = other.enter().unwrap();
            assert_eq!(fsuid(), STRANGER + 7);
            assert!(thread_groups().unwrap().is_empty());
        }
        assert_eq!((fsuid(), fsgid()), (STRANGER, STRANGER));
        assert_eq!(thread_groups().unwrap(), [STRANGER + 1]);
        drop(outer);
        assert_eq!((fsuid(), fsgid(), thread_groups().unwrap()), before);
    }

    #[test]
    fn other_threads_keep_their_rights() {
        if !is_root() {
            return;
        }
        let (entered, wait_entered) = std::sync::mpsc::channel();
        let (leave, wait_leave) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _rights = stranger().enter().unwrap();
            entered.send(()).unwrap();
            let _ = wait_leave.recv();
        });
        wait_entered.recv().unwrap();
        assert_eq!(fsuid(), 0);
        drop(leave);
        thread.join().unwrap();
    }

    #[test]
    fn who_may_not_become_another_user_is_told_so() {
        if Peer::own().uid == 0 {
            cofferdam_tests::skipped(format_args!("root may"));
            return;
        }
        assert!(stranger().enter().is_err());
        assert_eq!(fsuid(), Peer::own().uid);
    }
}
