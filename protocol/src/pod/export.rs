//! An export as the wire shows it.

use serde::{Deserialize, Serialize};

/// Whether the source stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the words are the contract's own")]
pub enum ExportMode {
    Copy,
    Move,
}

/// What happens to a file that is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the words are the contract's own")]
pub enum ConflictMode {
    Overwrite,
    Skip,
    Rename,
}

/// How an export stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the words are the contract's own")]
pub enum ExportStatus {
    Running,
    Completed,
    Failed,
    Interrupted,
}

/// How one file of an export stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the words are the contract's own")]
pub enum ExportItemStatus {
    Ok,
    Skip,
    Fail,
    Undo,
    UndoConflict,
}

/// One file of an export (spec §8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportItem {
    /// How it stands.
    pub status: ExportItemStatus,
    /// Where it came from.
    pub src: String,
    /// Where it went.
    pub dst: String,
    /// Its size.
    pub bytes: u64,
    /// BLAKE3 of what was written, 64 lower-case hexadecimal digits; empty if it is not known.
    pub hash: String,
    /// Whether a file was there before.
    pub existed: bool,
    /// Where that file was kept; empty if there is none.
    pub backup_path: String,
    /// What went wrong, or differently from what was asked.
    pub message: String,
}

/// An export (spec §8). Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportRecord {
    /// The record's id.
    pub id: String,
    /// Whose files they were.
    pub task_id: String,
    /// That task's label at the time.
    pub label: String,
    /// When it began.
    pub at: i64,
    /// Where it went.
    pub target_dir: String,
    /// Whether the source stays.
    pub mode: ExportMode,
    /// What was to happen to files in the way.
    pub conflict: ConflictMode,
    /// How it stands.
    pub status: ExportStatus,
    /// When something of it was undone; 0 if nothing was.
    pub undone_at: i64,
    /// Whether it was migrated from the predecessor's file.
    pub legacy: bool,
    /// Its files, in the order in which they were written; in a list, the first 200.
    pub items: Vec<ExportItem>,
    /// How many files it has in all, where `items` does not hold them all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items_total: Option<usize>,
    /// `true` where `items` does not hold them all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub items_truncated: bool,
}

impl ExportRecord {
    /// Says that the record has `total` files, of which `items` may be a part only.
    pub(super) fn show_part_of(&mut self, total: usize) {
        self.items_truncated = self.items.len() < total;
        self.items_total = self.items_truncated.then_some(total);
    }
}
