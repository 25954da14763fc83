//! What an export's undo must know and the wire does not show.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ckpt::format::Timestamp;

/// Kept with the record, as JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Notes {
    /// The directory beneath which everything of the target lies; it was there before the export.
    pub base: String,
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
    /// Items whose undo was begun.
    pub undoing: BTreeSet<usize>,
}

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

/// What is known of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Backup {
    /// BLAKE3, as in the record.
    pub hash: String,
    /// Inode number of the file in the backup's place.
    pub ino: u64,
}

impl Notes {
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
