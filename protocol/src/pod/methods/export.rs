//! `export.create`, `export.list`, `export.undo`, `export.deleteRecord`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient;
use super::{Answer, drop_last};
use crate::pod::{ConflictMode, ExportMode, ExportRecord};

/// Exports files of a task (spec §8).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportCreate {
    /// Whose.
    pub task_id: String,
    /// Which, below the task's directory.
    pub entries: Vec<String>,
    /// Where to, an absolute path outside of the sandbox.
    pub target_dir: String,
    /// Whether the sources stay; copy unless said otherwise.
    #[serde(default)]
    pub mode: Option<ExportMode>,
    /// What to do about files in the way; overwrite unless said otherwise.
    #[serde(default)]
    pub conflict: Option<ConflictMode>,
    /// Whether the target is to be remembered.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub remember: bool,
}

/// A finished export.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportCreated {
    /// Its record.
    pub export: ExportRecord,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Asks for the export records, or for a part of one record's files.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportList {
    /// One record only.
    #[serde(default)]
    pub export_id: Option<String>,
    /// Leave out that many of its files.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub item_offset: Option<i64>,
    /// Give that many at most.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub item_limit: Option<i64>,
}

/// The export records.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportRows {
    /// Newest first.
    pub exports: Vec<ExportRecord>,
    /// The target that each main session wanted remembered; not with a single record.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remembered: BTreeMap<String, String>,
    /// `true` if older ones were left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Undoes an export.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportUndo {
    /// Which one.
    pub export_id: String,
}

/// What was undone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportUndone {
    /// The record afterwards.
    pub export: ExportRecord,
    /// Files that were removed.
    pub removed: Vec<String>,
    /// Files that are as they were before the export.
    pub restored: Vec<String>,
    /// Files that were left alone.
    pub conflicts: Vec<UndoConflict>,
}

/// A file that was left alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UndoConflict {
    /// Which.
    pub path: String,
    /// Why.
    pub message: String,
}

/// Deletes an export's record and its backups; no exported file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportDeleteRecord {
    /// Which one.
    pub export_id: String,
}

impl Answer for ExportCreated {
    fn shorten(&mut self, excess: usize) -> bool {
        drop_files(&mut self.export, excess)
    }
}

impl Answer for ExportRows {
    fn shorten(&mut self, excess: usize) -> bool {
        match self.exports.as_mut_slice() {
            [] => false,
            // A page of one record's files.
            [record] => drop_files(record, excess),
            // The newest stays: of that, files can be left out.
            [_, ..] => {
                self.truncated = true;
                let mut older = self.exports.split_off(1);
                let dropped = drop_last(&mut older, excess);
                self.exports.append(&mut older);
                dropped
            }
        }
    }
}

impl Answer for ExportUndone {
    fn shorten(&mut self, excess: usize) -> bool {
        drop_files(&mut self.export, excess)
    }
}

/// Drops the last files of a record.
fn drop_files(record: &mut ExportRecord, excess: usize) -> bool {
    let total = record.items_total.unwrap_or(record.items.len());
    let dropped = drop_last(&mut record.items, excess);
    record.show_part_of(total);
    dropped
}
