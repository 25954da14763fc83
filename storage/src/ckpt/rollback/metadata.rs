//! Owner, mode, times and extended attributes of what is there.

use std::ffi::CString;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use super::rights::CAPABILITY;
use crate::ckpt::FileKind;
use crate::ckpt::format::{Meta, Timestamp};
use crate::disk::Disk;
use crate::fs::stat_fd;

/// A file whose metadata is set. Always a descriptor, never a name: whoever may write to the directory can give the name
/// to another file between a look at it and the change.
#[derive(Clone, Copy)]
pub(super) enum Thing<'a> {
    /// An open regular file or directory.
    Open(BorrowedFd<'a>),
    /// Anything, held by an `O_PATH` descriptor; a link itself, not what it points to.
    Held(BorrowedFd<'a>),
}

/// An extended attribute: name, value.
pub(super) type Xattr = (Box<[u8]>, Box<[u8]>);

/// Gives a file exactly `wanted`, whatever of it is there already. `had` are the attributes it may have now beside
/// those wanted. Returns whether something could not be given: an owner, or what only root may give.
///
/// Order matters: changing the owner takes set-id bits and capabilities away, an ACL changes the mode, and the time
/// of modification comes last.
pub(super) fn apply(disk: &Disk, thing: Thing<'_>, had: &[Xattr], wanted: &Meta) -> io::Result<bool> {
    let now = stat_fd(thing.fd())?;
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

impl<'a> Thing<'a> {
    fn fd(self) -> BorrowedFd<'a> {
        match self {
            Self::Open(fd) | Self::Held(fd) => fd,
        }
    }

    fn chown(self, disk: &Disk, uid: u32, gid: u32) -> io::Result<()> {
        disk.chown_held(self.fd(), uid, gid)
    }

    fn chmod(self, disk: &Disk, mode: u32) -> io::Result<()> {
        let mode = Mode::from_raw_mode(mode);
        match self {
            Self::Open(fd) => disk.fchmod(fd, mode),
            Self::Held(fd) => disk.chmod_held(fd, mode),
        }
    }

    fn set_mtime(self, disk: &Disk, time: Timestamp) -> io::Result<()> {
        disk.set_times_held(self.fd(), &mtime(time))
    }

    fn set_xattr(self, disk: &Disk, name: &[u8], value: &[u8]) -> io::Result<()> {
        let name = CString::new(name)?;
        match self {
            Self::Open(fd) => disk.fsetxattr(fd, &name, value),
            Self::Held(fd) => disk.setxattr_held(fd, &name, value),
        }
    }

    fn remove_xattr(self, disk: &Disk, name: &[u8]) -> io::Result<()> {
        let name = CString::new(name)?;
        match self {
            Self::Open(fd) => disk.fremovexattr(fd, &name),
            Self::Held(fd) => disk.removexattr_held(fd, &name),
        }
    }
}
