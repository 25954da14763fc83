//! Exports: files leave the sandbox verified, and so that it can be undone.

use std::path::PathBuf;

use cofferdam_protocol::pod::{ConflictMode, ExportMode, ExportRecord, ExportUndone};

use super::error::Result;
use super::model::Change;
use super::place::TaskPlace;
use crate::disk::Disk;

/// Keeps the records of exports: whoever owns the database.
pub trait ExportLog {
    /// Makes changes durable before it returns.
    fn save(&mut self, changes: Vec<Change>) -> Result<()>;
}

/// What is to be exported.
#[derive(Clone, Debug)]
pub struct ExportRequest {
    /// The record's id.
    pub id: String,
    /// Whose files.
    pub task: String,
    /// That task's label.
    pub label: String,
    /// When, in milliseconds since the epoch.
    pub at: i64,
    /// Where they are; `None` if they are on another system.
    pub place: Option<TaskPlace>,
    /// The sandbox root of the configuration, which no export may write to either.
    pub current_root: Option<PathBuf>,
    /// Which, below the task's directory.
    pub entries: Vec<String>,
    /// Where to.
    pub target_dir: PathBuf,
    /// Whether the sources stay.
    pub mode: ExportMode,
    /// What to do about files in the way.
    pub conflict: ConflictMode,
}

/// An export of which everything was checked and nothing written.
#[derive(Debug)]
pub struct ExportPlan {}

/// Checks a request: entries, target, caps.
pub fn plan(disk: &Disk, request: ExportRequest) -> Result<ExportPlan> {
    let _ = (disk, request);
    todo!()
}

impl ExportPlan {
    /// Carries the export out: the record with what is intended is durable before the first byte is written, and the
    /// items of each batch once the batch is. `progress` is told how many of how many files are done.
    pub fn carry_out(
        self,
        disk: &Disk,
        log: &mut dyn ExportLog,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<ExportRecord> {
        let _ = (disk, log, progress);
        todo!()
    }
}

/// Undoes what can be undone of a record that is complete with all of its items (spec §8). `notes` are those that were
/// saved with it. Unless `verify`, files are removed whatever they hold.
pub fn undo(
    disk: &Disk,
    record: ExportRecord,
    notes: &str,
    verify: bool,
    at: i64,
    log: &mut dyn ExportLog,
) -> Result<ExportUndone> {
    let _ = (disk, record, notes, verify, at, log);
    todo!()
}

/// Finds out what became of an export that a crash ended, removes its temporary files, and says what is so.
/// The notes stay as they are.
pub fn reconcile(disk: &Disk, record: ExportRecord, notes: &str) -> ExportRecord {
    let _ = (disk, notes);
    record
}

/// Removes an export's backups; no exported file. The error says what is left.
pub fn discard(disk: &Disk, record: &ExportRecord) -> Result<()> {
    let _ = (disk, record);
    todo!()
}
