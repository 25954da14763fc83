//! Where no export may write, whatever leads there.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::ground::{Place, place};
use crate::path::Name;

/// What follows the name of a file of the sidecar in the names of those beside it: SQLite's, and the lock's.
const BESIDE: [&str; 5] = ["", "-wal", "-shm", "-journal", ".lock"];

/// Directories that may not be entered, and names that may not be made.
#[derive(Clone, Debug, Default)]
pub(super) struct Forbidden {
    dirs: HashSet<Place>,
    /// The program's own among them.
    own_dirs: HashSet<Place>,
    /// The sidecar's own files, each with the directory that it is in.
    own: Vec<(Place, Vec<u8>)>,
}

impl Forbidden {
    /// The directories that are there, by what they are and not by what they are called, and the places of `own` files.
    pub(super) fn new<'a>(
        dirs: impl IntoIterator<Item = &'a PathBuf>,
        own_dirs: &[PathBuf],
        own: &[PathBuf],
    ) -> Self {
        let own = own.iter().filter_map(|file| {
            let name = file.file_name()?.as_bytes().to_owned();
            Some((identity(file.parent()?)?, name))
        });
        Self {
            dirs: dirs.into_iter().filter_map(|dir| identity(dir)).collect(),
            own_dirs: own_dirs.iter().filter_map(|dir| identity(dir)).collect(),
            own: own.collect(),
        }
    }

    /// Whether a path leads to one of the directories.
    pub(super) fn is(&self, dir: &Path) -> bool {
        identity(dir).is_some_and(|place| self.dirs.contains(&place))
    }

    /// Whether a path leads to one in which the program keeps files of its own.
    pub(super) fn is_own(&self, dir: &Path) -> bool {
        identity(dir).is_some_and(|place| self.own_dirs.contains(&place))
    }

    /// Fails for a directory that may not be entered.
    pub(super) fn enter(&self, dir: impl AsFd) -> io::Result<()> {
        match place(dir) {
            Some(place) if self.dirs.contains(&place) => {
                Err(io::Error::other("it would lie in the sandbox or among the backups"))
            }
            Some(place) if self.own_dirs.contains(&place) => {
                Err(io::Error::other("it would lie where Cofferdam keeps its own files"))
            }
            _ => Ok(()),
        }
    }

    /// Fails for a name that may not be made.
    pub(super) fn make(&self, dir: impl AsFd, name: &Name) -> io::Result<()> {
        let is_own =
            |(own, file): &(Place, Vec<u8>)| is_beside(name, file) && place(dir.as_fd()) == Some(*own);
        match self.own.iter().any(is_own) {
            true => Err(io::Error::other("the sidecar keeps its own database and log under this name")),
            false => Ok(()),
        }
    }
}

/// Whether a name is that of a file, of what lies beside it, or of one that the log became as it rotated. On a
/// filesystem that folds case two names can be one.
fn is_beside(name: &Name, file: &[u8]) -> bool {
    let Some((start, rest)) = name.as_bytes().split_at_checked(file.len()) else { return false };
    let is_number = |rest: &[u8]| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit);
    start.eq_ignore_ascii_case(file)
        && (BESIDE.iter().any(|beside| rest.eq_ignore_ascii_case(beside.as_bytes()))
            || rest.strip_prefix(b".").is_some_and(is_number))
}

/// Device and inode of what a path leads to.
fn identity(path: &Path) -> Option<Place> {
    let found = std::fs::metadata(path).ok()?;
    Some(((rustix::fs::major(found.dev()), rustix::fs::minor(found.dev())), found.ino()))
}
