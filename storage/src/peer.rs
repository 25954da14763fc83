//! Whose rights an operation runs with.
//!
//! A root daemon serves everybody, but a step that touches a path a peer named must not be able to do more than
//! that peer could: it runs on a thread that has taken the peer's supplementary groups, fsgid and fsuid. These
//! are per-thread in Linux; the rest of the daemon keeps its own.

use std::io;
use std::marker::PhantomData;

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
        let groups = rustix::process::getgroups().unwrap_or_default();
        Self {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            groups: groups.into_iter().map(|gid| gid.as_raw()).collect(),
        }
    }

    /// Whether this peer may see and do everything: root, or the daemon's own user.
    pub fn is_privileged(&self) -> bool {
        self.uid == 0 || self.uid == rustix::process::geteuid().as_raw()
    }

    /// Runs this thread's path steps with the peer's rights until the guard is dropped. Does nothing for a
    /// privileged peer.
    pub fn enter(&self) -> io::Result<PeerRights> {
        if self.is_privileged() {
            return Ok(PeerRights { saved: None, thread_bound: PhantomData });
        }
        let saved = Self::own();
        assume(&self.groups, self.gid, self.uid)?;
        Ok(PeerRights { saved: Some(saved), thread_bound: PhantomData })
    }
}

/// While it lives, this thread has a peer's rights over files.
#[must_use]
pub struct PeerRights {
    saved: Option<Peer>,
    thread_bound: PhantomData<*const ()>,
}

impl Drop for PeerRights {
    fn drop(&mut self) {
        if let Some(own) = &self.saved
            && assume(&own.groups, own.gid, own.uid).is_err()
        {
            // A pooled thread that kept somebody else's rights would serve the next peer with them.
            std::process::abort();
        }
    }
}

fn assume(_groups: &[u32], _gid: u32, _uid: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
