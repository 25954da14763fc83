//! What a program has for itself besides the task's directory: a home, a place for temporary files, a place at run time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FlockOperation, Mode};

use super::copies::{Copied, forget, take_away};
use super::failure::{Doing, Result};
use super::furnish::{DIRECTORY, Furnisher, name_of};
use super::hand_over::hand_over;
use super::limits::Cgroup;
use super::order::PodUser;
use super::outside;
use crate::disk::Disk;
use crate::fs::remove_tree;
use crate::path::Name;

/// The directory of one sandbox's own. While it is locked its sandbox lives.
#[derive(Debug)]
pub(super) struct PrivateDir {
    parent: OwnedFd,
    name: Name,
    path: PathBuf,
    /// The home in it, or the one that is kept.
    home: PathBuf,
    home_held: OwnedFd,
    /// Whether it is one that is kept.
    kept: bool,
    /// Holds the lock.
    _held: OwnedFd,
    furnisher: Furnisher,
}

/// The directories in it, besides its home.
const DIRS: &[&str] = &["tmp", "run"];
/// Those in a home.
const HOME_DIRS: &[&str] = &[".config", ".cache", ".local/share", ".local/state"];

impl PrivateDir {
    /// Makes one of that name below `parent`, which is made if it is missing, and gives it to `user`. Removes those of sandboxes
    /// that are no more. The home is `kept`, or in the directory.
    pub(super) fn make(
        disk: Disk,
        name: &str,
        parent: &Path,
        user: Option<PodUser>,
        kept: Option<&Path>,
    ) -> Result<Self> {
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
        let furnisher = Furnisher { disk, user };
        let filled = DIRS.iter().try_for_each(|dir| furnisher.enter(&held, Path::new(dir)).map(drop));
        filled.and_then(|()| furnisher.give(&parent, &name)).doing(what)?;
        let (home, home_held) = match kept {
            Some(kept) => keep(&furnisher, kept)?,
            None => (path.join("home"), furnisher.enter(&held, Path::new("home")).doing(what)?),
        };
        let filled =
            HOME_DIRS.iter().try_for_each(|dir| furnisher.enter(&home_held, Path::new(dir)).map(drop));
        filled.doing(format_args!("{} cannot be made a home", home.display()))?;
        let kept = kept.is_some();
        Ok(Self { parent, name, path, home, home_held, kept, _held: held, furnisher })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the program's home is.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// The same, held.
    pub(super) fn home_held(&self) -> BorrowedFd<'_> {
        self.home_held.as_fd()
    }

    /// What tells programs so.
    pub(super) fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        let home = self.home.clone();
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
    /// The paths of copies are added to `copied`, also after an error.
    pub(super) fn show(&self, real_home: &Path, relative: &Path, copied: &mut Copied) -> Result<()> {
        let what = format_args!("{} cannot be shown in the private home", relative.display());
        let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if !plain || relative.as_os_str().is_empty() {
            return Err(io::Error::other("it must be a path below the home, without `..`")).doing(what);
        }
        let source = real_home.join(relative);
        if source.symlink_metadata().is_err() {
            return Ok(());
        }
        if self.kept && self.furnisher.user.is_some() {
            let written = copied.write_down(&self.furnisher.disk, &self.parent, &self.name, &self.home);
            written.doing(format_args!("what is copied into the kept home cannot be written down"))?;
        }
        self.furnisher.show(&source, &self.home_held, relative, copied).doing(what)
    }

    /// Removes copies of what is the user's own: a home that is kept, and what is kept of it, holds none.
    pub(super) fn take_away(&self, copied: &Copied) -> Result<()> {
        let taken = copied.paths.iter().map(|copied| {
            let taken = self.furnisher.take_away(&self.home_held, copied);
            taken.doing(format_args!("{} cannot be removed from the kept home", copied.display()))
        });
        // One that cannot be removed keeps no other.
        taken.fold(Ok(()), Result::and)?;
        forget(&self.furnisher.disk, &self.parent, &self.name)
            .doing(format_args!("what was copied into the kept home stays written down"))
    }

    /// Writes down what is going to be made elsewhere, until it is removed from there.
    pub(super) fn record_outside(&self, made: &[PathBuf]) -> Result<()> {
        let record = outside::record_of(&self.name);
        let recorded =
            record.and_then(|name| outside::record(&self.furnisher.disk, &self.parent, &name, made));
        recorded.doing(format_args!("{} cannot be written beside", self.path.display()))
    }

    /// Removes that.
    pub(super) fn remove_outside(&self) -> Result<()> {
        let record = outside::record_of(&self.name);
        let removed =
            record.and_then(|name| outside::remove_recorded(&self.furnisher.disk, &self.parent, &name));
        removed.doing("what the test of the sandbox has made outside cannot be removed")
    }

    /// Removes it and all that is in it; a home that is kept is elsewhere.
    pub(super) fn remove(&self) -> Result<()> {
        remove_tree(&self.furnisher.disk, &self.parent, &self.name)
            .doing(format_args!("the private directory {} cannot be removed", self.path.display()))
    }
}

/// The home that is kept, by its path without links, and held: made if it is missing, and the user's, whoever brought back what is
/// in it. The directory that it is in is ours, and there.
fn keep(furnisher: &Furnisher, kept: &Path) -> Result<(PathBuf, OwnedFd)> {
    let what = format_args!("the home {} cannot be kept", kept.display());
    let (Some(above), Some(name)) = (kept.parent(), kept.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidFilename)).doing(what);
    };
    let above = std::fs::canonicalize(above).doing(what)?;
    let dir = open_dir(&above).doing(what)?;
    let held = furnisher.step(&dir, &name_of(name).doing(what)?).doing(what)?;
    let path = above.join(name);
    if let Some(user) = furnisher.user {
        hand_over(&furnisher.disk, &held, &path, user)?;
    }
    Ok((path, held))
}

/// Removes the private directories of sandboxes that were killed, their cgroups, what their tests have made elsewhere, and what they
/// have copied into homes that are kept. Called by a daemon when it starts, and by every supervisor.
pub fn sweep(disk: &Disk, parent: &Path) {
    let Ok(dir) = open_dir(parent) else { return };
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let Ok(name) = Name::new(entry.file_name().as_encoded_bytes()) else { continue };
        if let Some(sandbox) = outside::recorded(&name) {
            match claim(&dir, &sandbox) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {}
                // It is no more.
                _ => drop(outside::remove_recorded(disk, &dir, &name)),
            }
            continue;
        }
        if let Ok(_held) = claim(&dir, &name) {
            // The next start tries again; what still runs, and what is written down, is found by its name.
            let forgotten = Cgroup::forget(&entry.file_name());
            let taken = forgotten.and_then(|()| take_away(disk, &dir, &name, None));
            let _ = taken.and_then(|()| remove_tree(disk, &dir, &name));
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

fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, DIRECTORY, Mode::empty())?)
}
