//! What a program has for itself besides the task's directory: a home, a place for temporary files, a place at run time.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};

use super::failure::{Doing, Result};
use super::limits::Cgroup;
use super::order::PodUser;
use crate::disk::Disk;
use crate::fs::remove_tree;
use crate::path::Name;

/// The most of the user's own files that is copied for another user, in bytes and in files.
const COPIED_BYTES: u64 = 16 << 20;
const COPIED_FILES: usize = 1000;

/// The directory of one sandbox's own. While it is locked its sandbox lives.
#[derive(Debug)]
pub(super) struct PrivateDir {
    parent: OwnedFd,
    name: Name,
    path: PathBuf,
    /// Holds the lock.
    _held: OwnedFd,
    disk: Disk,
    user: Option<PodUser>,
}

/// The directories in it.
const DIRS: &[&str] = &[
    "home",
    "tmp",
    "run",
    "home/.config",
    "home/.cache",
    "home/.local",
    "home/.local/share",
    "home/.local/state",
];

impl PrivateDir {
    /// Makes one of that name below `parent`, which is made if it is missing, and gives it to `user`. Removes those of sandboxes
    /// that are no more.
    pub(super) fn make(disk: Disk, name: &str, parent: &Path, user: Option<PodUser>) -> Result<Self> {
        let what = format_args!("a private directory cannot be made in {}", parent.display());
        if let (Err(io::ErrorKind::NotFound), Some(above), Some(name)) =
            (parent.symlink_metadata().map_err(|error| error.kind()), parent.parent(), parent.file_name())
        {
            let above = open_dir(above).doing(what)?;
            match disk.mkdir(&above, name, Mode::RWXU) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error).doing(what),
                _ => {}
            }
        }
        sweep(&disk, parent);
        let path = std::fs::canonicalize(parent).doing(what)?;
        let parent = open_dir(&path).doing(what)?;
        if user.is_some() {
            // For others to pass through; names are not listed.
            disk.fchmod(&parent, Mode::RWXU | Mode::XGRP | Mode::XOTH).doing(what)?;
        }
        let name = Name::new(name.as_bytes()).map_err(io::Error::other).doing(what)?;
        let path = path.join(name.as_os_str());
        // Shared with other makers; a sweep takes nothing meanwhile.
        rustix::fs::flock(&parent, FlockOperation::LockShared).doing(what)?;
        disk.mkdir(&parent, name.as_bytes(), Mode::RWXU).doing(what)?;
        let held = open_dir(&path).doing(what)?;
        rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive).doing(what)?;
        rustix::fs::flock(&parent, FlockOperation::Unlock).doing(what)?;
        let made = Self { parent, name, path, _held: held, disk, user };
        let filled = DIRS.iter().try_for_each(|dir| made.make_dir(Path::new(dir)));
        filled.and_then(|()| made.give(&made.path)).doing(what)?;
        Ok(made)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the program's home is.
    pub(super) fn home(&self) -> PathBuf {
        self.path.join("home")
    }

    /// What tells programs so.
    pub(super) fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        let home = self.home();
        vec![
            ("XDG_CONFIG_HOME", home.join(".config")),
            ("XDG_CACHE_HOME", home.join(".cache")),
            ("XDG_DATA_HOME", home.join(".local/share")),
            ("XDG_STATE_HOME", home.join(".local/state")),
            ("XDG_RUNTIME_DIR", self.path.join("run")),
            ("TMPDIR", self.path.join("tmp")),
            ("HOME", home),
        ]
    }

    /// Shows something of the user's own home in this one: as a link; to another user, who could not read it, as a copy.
    pub(super) fn show(&self, real_home: &Path, relative: &Path) -> Result<()> {
        let what = format_args!("{} cannot be shown in the private home", relative.display());
        let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if !plain || relative.as_os_str().is_empty() {
            return Err(io::Error::other("it must be a path below the home, without `..`")).doing(what);
        }
        let source = real_home.join(relative);
        if source.symlink_metadata().is_err() {
            return Ok(());
        }
        let target = Path::new("home").join(relative);
        let ways: Vec<_> = relative.ancestors().skip(1).filter(|way| !way.as_os_str().is_empty()).collect();
        for way in ways.into_iter().rev() {
            self.make_dir(&Path::new("home").join(way)).doing(what)?;
        }
        let target = self.path.join(target);
        if self.user.is_some() {
            let mut left = (COPIED_BYTES, COPIED_FILES);
            return self.copy(&source, &target, &mut left).doing(what);
        }
        let (dir, name) = place(&target).doing(what)?;
        match self.disk.symlink(&source, &dir, name.as_bytes()) {
            // A directory of the standard ones, such as .config, is there already, and is not hidden behind a link.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && source.is_dir() => {
                self.link_entries(&source, &target).doing(what)
            }
            linked => linked.doing(what),
        }
    }

    fn link_entries(&self, source: &Path, target: &Path) -> io::Result<()> {
        let dir = open_dir(target)?;
        for entry in std::fs::read_dir(source)? {
            let entry = entry?;
            match self.disk.symlink(entry.path(), &dir, entry.file_name()) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                linked => linked?,
            }
        }
        Ok(())
    }

    fn copy(&self, source: &Path, target: &Path, left: &mut (u64, usize)) -> io::Result<()> {
        let found = std::fs::metadata(source)?;
        let too_much = || io::Error::other("there is too much in it to be copied; name less");
        left.1 = left.1.checked_sub(1).ok_or_else(too_much)?;
        if found.is_dir() {
            self.make_dir(target.strip_prefix(&self.path).unwrap_or(target))?;
            for entry in std::fs::read_dir(source)? {
                let entry = entry?;
                self.copy(&entry.path(), &target.join(entry.file_name()), left)?;
            }
            return Ok(());
        }
        if !found.is_file() {
            return Ok(());
        }
        left.0 = left.0.checked_sub(found.len()).ok_or_else(too_much)?;
        let bytes = std::fs::read(source)?;
        let (dir, name) = place(target)?;
        let mode = if found.permissions().mode() & 0o100 == 0 { Mode::RUSR } else { Mode::RUSR | Mode::XUSR };
        let file = File::from(self.disk.create(&dir, name.as_bytes(), OFlags::WRONLY, mode)?);
        self.disk.write_all_at(&file, &bytes, 0)?;
        self.give(target)
    }

    fn make_dir(&self, relative: &Path) -> io::Result<()> {
        let path = self.path.join(relative);
        let (dir, name) = place(&path)?;
        match self.disk.mkdir(&dir, name.as_bytes(), Mode::RWXU) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.and_then(|()| self.give(&path)),
        }
    }

    fn give(&self, path: &Path) -> io::Result<()> {
        let Some(PodUser { uid, gid }) = self.user else { return Ok(()) };
        let held = rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        self.disk.chown_held(held, uid, gid)
    }

    /// Removes it and all that is in it.
    pub(super) fn remove(&self) -> Result<()> {
        remove_tree(&self.disk, &self.parent, &self.name)
            .doing(format_args!("the private directory {} cannot be removed", self.path.display()))
    }
}

/// Removes the private directories of sandboxes that were killed, and their cgroups. Called by a daemon when it starts, and by every supervisor.
pub fn sweep(disk: &Disk, parent: &Path) {
    let Ok(dir) = open_dir(parent) else { return };
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let Ok(name) = Name::new(entry.file_name().as_encoded_bytes()) else { continue };
        if let Ok(_held) = claim(&dir, &name) {
            Cgroup::forget(&entry.file_name());
            // The next start tries again.
            let _ = remove_tree(disk, &dir, &name);
        }
    }
}

/// Takes the lock of a private directory, unless its sandbox lives or is just being made.
fn claim(parent: &OwnedFd, name: &Name) -> io::Result<OwnedFd> {
    rustix::fs::flock(parent, FlockOperation::LockExclusive)?;
    let held = rustix::fs::openat(parent, name.as_bytes(), DIRECTORY, Mode::empty());
    let claimed = held
        .and_then(|held| rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive).map(|()| held));
    rustix::fs::flock(parent, FlockOperation::Unlock)?;
    Ok(claimed?)
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, DIRECTORY, Mode::empty())?)
}

/// The directory that a path is in, held, and its name there.
fn place(path: &Path) -> io::Result<(OwnedFd, Name)> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    Ok((open_dir(parent)?, Name::new(name.as_encoded_bytes()).map_err(|_| io::ErrorKind::InvalidFilename)?))
}
