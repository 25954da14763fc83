//! Owner, mode, times and extended attributes of what is there.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{Mode, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use super::places::open_held;
use super::rights::CAPABILITY;
use crate::ckpt::FileKind;
use crate::ckpt::format::{Meta, Timestamp};
use crate::disk::Disk;
use crate::fs::{Stat, stat, stat_fd};
use crate::path::Name;

/// A file whose metadata is set.
#[derive(Clone, Copy)]
pub(super) enum Thing<'a> {
    /// An open regular file or directory.
    Open(BorrowedFd<'a>),
    /// Anything, by its name in a directory; a link itself, not what it points to.
    Named(BorrowedFd<'a>, &'a Name),
}

/// An extended attribute: name, value.
pub(super) type Xattr = (Box<[u8]>, Box<[u8]>);

/// Gives a file exactly `wanted`, whatever of it is there already. `had` are the attributes it may have now beside
/// those wanted. Returns whether something could not be given: an owner, or what only root may give.
///
/// Order matters: changing the owner takes set-id bits and capabilities away, an ACL changes the mode, and the time
/// of modification comes last.
pub(super) fn apply(disk: &Disk, thing: Thing<'_>, had: &[Xattr], wanted: &Meta) -> io::Result<bool> {
    let now = thing.stat()?;
    let mut less = false;
    let mut chown = (now.uid, now.gid) != (wanted.uid, wanted.gid);
    if chown && let Err(error) = thing.chown(disk, wanted.uid, wanted.gid) {
        if !refused(&error) {
            return Err(error);
        }
        (chown, less) = (false, true);
    }
    let mode = if less { wanted.mode & !0o6000 } else { wanted.mode };
    let mut chmod = chown || now.mode != mode;
    for (name, _) in had.iter().filter(|(name, _)| value(&wanted.xattrs, name).is_none()) {
        match writable(disk, thing, mode, &mut chmod, |thing| thing.remove_xattr(disk, name)) {
            Ok(()) => chmod = true,
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NODATA) => {}
            Err(error) if refused(&error) => less = true,
            Err(error) => return Err(error),
        }
    }
    for (name, new) in &wanted.xattrs {
        let capability = **name == *CAPABILITY;
        if (value(had, name) == Some(&**new) && !(capability && chown)) || (capability && less) {
            continue;
        }
        match writable(disk, thing, mode, &mut chmod, |thing| thing.set_xattr(disk, name, new)) {
            Ok(()) => chmod = true,
            Err(error) if refused(&error) => less = true,
            Err(error) => return Err(error),
        }
    }
    if chmod && now.kind != FileKind::Symlink {
        thing.chmod(disk, mode)?;
    }
    if now.mtime != wanted.mtime {
        thing.set_mtime(disk, wanted.mtime)?;
    }
    Ok(less)
}

/// Runs `change`; if a file of our own forbids it, once more with the file made writable.
fn writable(
    disk: &Disk,
    thing: Thing<'_>,
    mode: u32,
    chmod: &mut bool,
    change: impl Fn(Thing<'_>) -> io::Result<()>,
) -> io::Result<()> {
    match change(thing) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            if thing.chmod(disk, mode | 0o600).is_err() {
                return Err(error);
            }
            *chmod = true;
            change(thing)
        }
        done => done,
    }
}

/// Whether the system says that we may not, or that there is no such thing here.
fn refused(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::PERM | Errno::ACCESS | Errno::INVAL | Errno::NOTSUP))
}

fn value<'a>(xattrs: &'a [Xattr], name: &[u8]) -> Option<&'a [u8]> {
    xattrs.iter().find(|(there, _)| **there == *name).map(|(_, value)| &**value)
}

/// The modification time alone.
pub(super) fn mtime(time: Timestamp) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: time.secs, tv_nsec: time.nanos.into() },
    }
}

impl Thing<'_> {
    pub(super) fn stat(self) -> io::Result<Stat> {
        match self {
            Self::Open(fd) => stat_fd(fd),
            Self::Named(dir, name) => stat(dir, name.as_bytes()),
        }
    }

    fn chown(self, disk: &Disk, uid: u32, gid: u32) -> io::Result<()> {
        match self {
            Self::Open(fd) => disk.fchown(fd, uid, gid),
            Self::Named(dir, name) => disk.chown(dir, name.as_bytes(), uid, gid),
        }
    }

    pub(super) fn chmod(self, disk: &Disk, mode: u32) -> io::Result<()> {
        let mode = Mode::from_raw_mode(mode);
        match self {
            Self::Open(fd) => disk.fchmod(fd, mode),
            Self::Named(dir, name) => disk.chmod_held(open_held(dir, name)?, mode),
        }
    }

    pub(super) fn set_mtime(self, disk: &Disk, time: Timestamp) -> io::Result<()> {
        match self {
            Self::Open(fd) => disk.fset_times(fd, &mtime(time)),
            Self::Named(dir, name) => disk.set_times(dir, name.as_bytes(), &mtime(time)),
        }
    }

    fn set_xattr(self, disk: &Disk, name: &[u8], value: &[u8]) -> io::Result<()> {
        let name = CString::new(name)?;
        match self {
            Self::Open(fd) => disk.fsetxattr(fd, &name, value),
            Self::Named(dir, file) => disk.lsetxattr(path(dir, file), &name, value),
        }
    }

    fn remove_xattr(self, disk: &Disk, name: &[u8]) -> io::Result<()> {
        let name = CString::new(name)?;
        match self {
            Self::Open(fd) => disk.fremovexattr(fd, &name),
            Self::Named(dir, file) => disk.lremovexattr(path(dir, file), &name),
        }
    }
}

/// There are no calls for attributes of a name in a directory (until Linux 6.13).
fn path(dir: BorrowedFd<'_>, name: &Name) -> Vec<u8> {
    let mut path = format!("/proc/self/fd/{}/", dir.as_raw_fd()).into_bytes();
    path.extend_from_slice(name.as_bytes());
    path
}
