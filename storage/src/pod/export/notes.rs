//! What an export's undo must know and the wire does not show.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::left::Left;
use crate::ckpt::format::Timestamp;
use crate::fs::{Root, Stat};

/// Kept with the record, as JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Notes {
    /// The directory beneath which everything of the target lies; it was there before the export.
    pub base: String,
    /// What tells that directory from every other that is ever at its path, in hexadecimal digits: a mount point whose
    /// drive is away is another one.
    pub identity: Option<String>,
    /// The sandbox root above the task's directory, where it is known.
    pub root: Option<String>,
    /// The task's directory.
    pub task_dir: String,
    /// Directories of the target that were changed, by path below the base.
    pub target: Dirs,
    /// Directories of the source that were changed, by path below the task's directory.
    pub source: Dirs,
    /// What was kept of files that were in the way, by item.
    pub backups: BTreeMap<usize, Backup>,
    /// Inode numbers of the new files of a batch, so that after a crash they are told from what they replace.
    pub written: BTreeMap<usize, u64>,
    /// What is about to get into its place, by item: of a batch one text here costs next to nothing, a row for each much.
    pub intended: BTreeMap<usize, Intent>,
    /// Items whose undo was begun.
    pub undoing: BTreeSet<usize>,
    /// Files of its own that are still to be removed.
    pub left: Vec<Left>,
    /// Whether the next start has to look: at what is left, or at files of which nobody could say what became of them.
    pub unfinished: bool,
}

/// What notes look like, for SQL's `LIKE`, that say of themselves that they are [`Notes::unfinished`]. Quotation marks in
/// what they quote have a backslash before them.
pub(in crate::pod) const UNFINISHED: &str = "%\"unfinished\":true%";

/// Directories, by path.
pub(super) type Dirs = BTreeMap<String, DirNote>;

/// A directory that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DirNote {
    /// What it was before.
    pub was: Was,
    /// When it was modified last by us; unknown until what was done there is complete.
    pub after: Option<Time>,
}

/// What a directory was before it was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Was {
    /// Not there: the export made it.
    Missing,
    /// There, and last modified then.
    There(Time),
    /// There, and the export removed it.
    Removed {
        /// Permission bits.
        mode: u32,
        /// Last modified.
        mtime: Time,
    },
    /// Somebody else changed it since, so that its time is not ours to put back.
    Changed,
}

/// Seconds and nanoseconds since the epoch.
pub(super) type Time = (i64, u32);

/// What the record of an item that is about to get into its place does not say yet, so that after a crash the item is
/// settled by its hash. What was in the way is among the [`Notes::backups`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Intent {
    /// BLAKE3, as in the record.
    pub hash: String,
    /// Its bytes.
    pub bytes: u64,
    /// Where to; it may have got another name than was planned.
    pub dst: String,
}

/// What is known of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Backup {
    /// BLAKE3, as in the record.
    pub hash: String,
    /// Inode number of the file in the backup's place.
    pub ino: u64,
    /// Its bytes and when it was last modified, so that it is known again without being read.
    pub size_and_time: Option<(u64, Time)>,
}

impl Backup {
    /// Of a file that was kept under the inode number `ino`, as it was before.
    pub(super) fn new(hash: String, ino: u64, was: &Stat) -> Self {
        Self { hash, ino, size_and_time: Some((was.size, time(was.mtime))) }
    }

    /// Whether a file is the one that was kept, as far as its attributes say.
    pub(super) fn is(&self, found: &Stat) -> bool {
        self.ino == found.ino && self.size_and_time == Some((found.size, time(found.mtime)))
    }
}

impl Notes {
    /// What tells a directory from every other that is ever at its path; `None` where the system cannot tell.
    pub(super) fn identity_of(base: &Root) -> Option<String> {
        let identity = base.identity().ok()?;
        Some(identity.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Whether a directory at the base's path is another one than the export wrote to.
    pub(super) fn is_elsewhere(&self, base: &Root) -> bool {
        self.identity.is_some() && self.identity != Self::identity_of(base)
    }

    /// From where it was kept; what cannot be read is as good as lost.
    pub(super) fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// As it is kept.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A time as notes have it.
pub(super) fn time(at: Timestamp) -> Time {
    (at.secs, at.nanos)
}
