//! A directory held open, and what lies beneath it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use super::identity::FileIdentity;
use crate::path::{Name, RelPath};

/// A directory held open. Everything beneath it is reached through the descriptor: following no link, entering no
/// mount, whatever happens to the path meanwhile.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
}

impl Root {
    /// Opens the directory at an absolute path; the last component may not be a symbolic link.
    pub fn open(_path: &Path) -> io::Result<Self> {
        todo!()
    }

    /// What tells this directory from any other that ever stood at its path.
    pub fn identity(&self) -> io::Result<FileIdentity> {
        FileIdentity::of(&self.fd)
    }

    /// Opens a directory beneath (the root itself for [`RelPath::ROOT`]) for reading.
    pub fn open_dir(&self, _path: &RelPath) -> io::Result<OwnedFd> {
        todo!()
    }

    /// Opens the directory that holds `path` and returns it with the last name. `None` for the root.
    pub fn open_parent(&self, _path: &RelPath) -> io::Result<Option<(OwnedFd, Name)>> {
        todo!()
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
