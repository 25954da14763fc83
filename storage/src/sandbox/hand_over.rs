//! Gives a task's directory to the user that works in it, where that is not root.
//!
//! Only what root owns is given, and only what has this one name: a second name could be of a file outside. Root itself can
//! still read, keep and remove everything. Set-id bits go with the old owner.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use super::failure::{Doing, Result};
use super::order::PodUser;
use super::places::Places;
use crate::disk::Disk;

/// How deep it goes. What lies deeper stays root's.
const DEEPEST: usize = 128;

/// Gives the directory that is held, called `path`, and what is in it, following no link. Nothing of the sandbox runs yet.
pub(super) fn hand_over(disk: &Disk, dir: impl AsFd, path: &Path, user: PodUser) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let held = rustix::fs::openat(dir, ".", flags, Mode::empty()).map_err(io::Error::from);
    let given = held.and_then(|held| {
        let device = rustix::fs::fstat(&held)?.st_dev;
        give(disk, &held, user)?;
        give_entries(disk, held, device, user, DEEPEST)
    });
    given.doing(format_args!("{} cannot be given to user {}", path.display(), user.uid))
}

fn give_entries(disk: &Disk, dir: OwnedFd, device: u64, user: PodUser, deeper: usize) -> io::Result<()> {
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::openat(&dir, entry.file_name(), flags, Mode::empty())?;
        let found = rustix::fs::fstat(&held)?;
        if found.st_dev != device {
            continue;
        }
        let is_dir = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if found.st_uid == 0 && (is_dir || found.st_nlink == 1) {
            give(disk, &held, user)?;
        }
        if is_dir && deeper > 0 {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let below = rustix::fs::openat(&dir, entry.file_name(), flags, Mode::empty())?;
            give_entries(disk, below, device, user, deeper - 1)?;
        }
    }
    Ok(())
}

fn give(disk: &Disk, held: impl AsFd, PodUser { uid, gid }: PodUser) -> io::Result<()> {
    disk.chown_held(held, uid, gid)
}

/// Lets others pass through the sandbox root, and what leads from there to the task's directory, where those are root's; and
/// through the two directories that a kept home is in, the task's own and the one for all tasks. They cannot list them, and every
/// task's own directory is closed to everybody but its user. For a sandbox that has no view of files of its own.
pub(super) fn open_way(disk: &Disk, Places { task, private, home, .. }: &Places) -> Result<()> {
    for dir in task.above() {
        open_to_others(disk, dir)
            .doing("the way to the task's directory cannot be opened to the task's user")?;
    }
    for dir in home.ancestors().skip(1).take(if home.starts_with(private) { 0 } else { 2 }) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::open(dir, flags, Mode::empty()).map_err(io::Error::from);
        held.and_then(|held| open_to_others(disk, &held))
            .doing(format_args!("{} cannot be opened to the task's user", dir.display()))?;
    }
    Ok(())
}

fn open_to_others(disk: &Disk, held: &OwnedFd) -> io::Result<()> {
    let found = rustix::fs::fstat(held)?;
    let mode = Mode::from_raw_mode(found.st_mode);
    let closed = found.st_uid == 0 && !mode.contains(Mode::XOTH);
    if closed { disk.chmod_held(held, mode | Mode::XOTH) } else { Ok(()) }
}

/// Whether the user that this process is can work in a directory, by its path.
pub(super) fn reaches(path: &Path, write: bool) -> io::Result<()> {
    use rustix::fs::{Access, CWD, accessat};
    let wanted = if write {
        Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK
    } else {
        Access::READ_OK | Access::EXEC_OK
    };
    Ok(accessat(CWD, path, wanted, AtFlags::EACCESS)?)
}
