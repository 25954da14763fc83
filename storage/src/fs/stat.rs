//! What statx says.

use std::io;
use std::os::fd::AsFd;

use rustix::path::Arg;

use crate::ckpt::FileKind;
use crate::ckpt::format::Timestamp;

/// A file's attributes as the kernel reports them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What it is; [`FileKind::MountPoint`] if something is mounted on it.
    pub kind: FileKind,
    /// Permission bits with set-id and sticky: `0o7777`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// 512-byte blocks in use.
    pub blocks: u64,
    /// Names.
    pub nlink: u32,
    /// Inode number.
    pub ino: u64,
    /// Device of the filesystem: tells nested filesystems apart within one mount, means nothing across remounts.
    pub dev: (u32, u32),
    /// Major and minor number of a device node.
    pub rdev: (u32, u32),
    /// Last modification.
    pub mtime: Timestamp,
    /// Last change of inode.
    pub ctime: Timestamp,
    /// Birth, where the filesystem keeps it.
    pub btime: Option<Timestamp>,
    /// The mount it is on.
    pub mount: u64,
    /// Flags that forbid changes.
    pub attributes: Attributes,
}

/// Flags that forbid changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// chattr +i.
    pub immutable: bool,
    /// chattr +a.
    pub append: bool,
}

/// The attributes of a name in a directory, following no link and triggering no automount.
pub fn stat(_dir: impl AsFd, _name: impl Arg) -> io::Result<Stat> {
    todo!()
}

/// The attributes of an open (or `O_PATH`) descriptor.
pub fn stat_fd(_file: impl AsFd) -> io::Result<Stat> {
    todo!()
}
