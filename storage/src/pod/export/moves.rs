//! Renames that overwrite nothing, also where the filesystem has no such renames.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::content::{Opened, dress};
use super::notes::time;
use crate::disk::Disk;
use crate::fs::{Stat, stat};

/// What stands at a name, if anything does.
pub(super) fn look(dir: impl AsFd, name: &[u8]) -> io::Result<Option<Stat>> {
    match stat(dir, name) {
        Ok(stat) => Ok(Some(stat)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Moves a name; `AlreadyExists` if something stands at the target.
pub(super) fn rename_exclusive(
    disk: &Disk,
    from: (impl AsFd, &[u8]),
    to: (impl AsFd, &[u8]),
) -> io::Result<()> {
    let (from, to) = ((from.0.as_fd(), from.1), (to.0.as_fd(), to.1));
    match disk.rename_exclusive(from, to) {
        Err(error) if is_unknown(&error) => {}
        done => return done,
    }
    match disk.link(from, to) {
        Ok(()) => return disk.unlink(from.0, from.1),
        Err(error) if has_no_links(&error) => {}
        Err(error) => return Err(error),
    }
    match look(to.0, to.1)? {
        Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
        None => disk.rename(from, to),
    }
}

/// Copies a file with its mode, owner and time to a new name; the BLAKE3 of what was written, and the inode number.
pub(super) fn copy_whole(
    disk: &Disk,
    from: &Opened,
    dir: impl AsFd,
    name: &[u8],
) -> io::Result<(String, u64)> {
    let dir = dir.as_fd();
    let new = std::fs::File::from(disk.create(dir, name, OFlags::WRONLY, Mode::RUSR | Mode::WUSR)?);
    let copied = from.copy_to(disk, &new).and_then(|hash| {
        let made = crate::fs::stat_fd(&new)?;
        if (made.uid, made.gid) != (from.stat.uid, from.stat.gid) {
            // Only root can give files away; others keep what they could read.
            let _ = disk.chown_held(&new, from.stat.uid, from.stat.gid);
        }
        dress(disk, &new, from.stat.mode, time(from.stat.mtime))?;
        Ok((hash, made.ino))
    });
    if copied.is_err() {
        let _ = disk.unlink(dir, name);
    }
    copied
}

/// Whether the filesystem does not know this kind of rename.
pub(super) fn is_unknown(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP))
}

/// Whether a file cannot get another name there.
pub(super) fn has_no_links(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    is_unknown(error) || matches!(errno, Some(Errno::PERM | Errno::MLINK | Errno::XDEV | Errno::ACCESS))
}
