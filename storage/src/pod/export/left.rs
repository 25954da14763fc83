//! Files of an export's own that could not be removed when they should have been.

use serde::{Deserialize, Serialize};

use super::content::in_words;
use super::ground::{Dir, Ground};
use super::moves::look;
use crate::ckpt::FileKind;
use crate::path::RelPath;

/// Such a file: a copy that did not get into its place, or a second name of one that was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Left {
    /// Its path below the base. The name is one that only this export gives.
    path: String,
    /// Its inode number.
    ino: u64,
}

impl Left {
    /// The file of a directory.
    pub(super) fn new(dir: &RelPath, name: &str, ino: u64) -> Self {
        Self { path: dir.as_path().join(name).to_string_lossy().into_owned(), ino }
    }

    /// The file at a path.
    pub(super) fn at(path: &RelPath, ino: u64) -> Self {
        Self { path: path.as_path().to_string_lossy().into_owned(), ino }
    }

    /// Whether it is this file.
    pub(super) fn is(&self, path: &RelPath, ino: u64) -> bool {
        self.path.as_bytes() == path.as_bytes() && self.ino == ino
    }
}

impl Ground<'_> {
    /// Removes a file of our own. If it cannot be, it is noted, and the answer says so for people.
    pub(super) fn throw_away(
        &mut self,
        left: &mut Vec<Left>,
        (at, dir): (&RelPath, &Dir),
        name: &str,
        ino: u64,
    ) -> Option<String> {
        let disk = self.disk();
        let error = self.quietly(dir, || disk.unlink(dir, name)).err()?;
        left.push(Left::new(at, name, ino));
        Some(format!("a copy of it is left as {name}, to be removed later: {}", in_words(&error)))
    }

    /// Removes what could not be removed before, as far as it is still the same.
    pub(super) fn sweep(&mut self, left: &mut Vec<Left>) {
        left.retain(|one| self.try_again(one).is_none());
    }

    /// `Some` once it is gone.
    fn try_again(&mut self, Left { path, ino }: &Left) -> Option<()> {
        // What cannot be a path was none of ours.
        let Ok(path) = RelPath::new(path.as_bytes()) else { return Some(()) };
        let (dir, _, name) = match self.open_parent(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(()),
            found => found.ok()?,
        };
        match look(&dir, name.as_bytes()).ok()? {
            Some(found) if found.kind == FileKind::File && found.ino == *ino => {
                let disk = self.disk();
                self.quietly(&dir, || disk.unlink(&dir, name.as_bytes())).ok()
            }
            // Somebody removed it, or has put something else there.
            _ => Some(()),
        }
    }
}
