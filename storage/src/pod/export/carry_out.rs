//! Carries an export out, batch after batch.

use std::collections::HashSet;
use std::path::PathBuf;

use cofferdam_protocol::pod::{ExportItemStatus, ExportRecord, ExportStatus};

use super::ExportLog;
use super::batch::Work;
use super::forbidden::Forbidden;
use super::ground::Ground;
use super::notes::{Dirs, Notes};
use super::plan::{ExportPlan, PlannedFile};
use crate::disk::Disk;
use crate::path::RelPath;
use crate::pod::error::Result;
use crate::pod::model::Change;

/// The most files of a batch.
const BATCH_FILES: usize = 1000;
/// The most directories of a batch: they are held open.
const BATCH_DIRS: usize = 250;
/// The most bytes of a batch that has more than one file.
const BATCH_BYTES: u64 = 64 << 20;

impl ExportPlan {
    /// Carries the export out: the record with what is intended is durable before the first byte is written, and the
    /// items of each batch once the batch is. `progress` is told how many of how many files are copied.
    ///
    /// What cannot be written is said in its item. An error means that the record could not be saved; what was written
    /// then is found out by [`super::reconcile`].
    pub fn carry_out(
        self,
        disk: &Disk,
        log: &mut dyn ExportLog,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<ExportRecord> {
        let Self { mut record, files, emptied, mut notes, names, source, base, target, forbidden } = self;
        let id = record.id.clone();
        // Where that cannot be done its identity may change with the first file.
        notes.identity = base.settle(disk).ok().and_then(|()| Notes::identity_of(&base));
        log.save(vec![
            Change::PutExport(Box::new(record.clone())),
            Change::PutExportNotes { export: id.clone(), notes: notes.text() },
        ])?;
        let (base_path, task_dir) = (PathBuf::from(&notes.base), PathBuf::from(&notes.task_dir));
        let mut work = Work {
            disk,
            id: id.clone(),
            mode: record.mode,
            names: &names,
            target,
            base: Ground::new(disk, base, base_path, notes.target.clone(), forbidden),
            source: Ground::new(disk, source, task_dir, Dirs::new(), Forbidden::default()),
            notes,
            items: std::mem::take(&mut record.items),
            written: HashSet::new(),
            unsaved: Vec::new(),
            bytes: 0,
        };
        work.step("export.planned")?;
        let (mut done, total) = (0, files.len());
        progress(done, total);
        for batch in batches(&files) {
            work.batch(batch, log, &mut || {
                done += 1;
                progress(done, total);
            })?;
        }
        work.tidy(&emptied);
        let mut changes = work.changes();
        record.items = work.items;
        let failed = record.items.iter().any(|item| item.status == ExportItemStatus::Fail);
        record.status = if failed { ExportStatus::Failed } else { ExportStatus::Completed };
        changes.push(Change::SettleExport { export: id, status: record.status, undone_at: 0 });
        log.save(changes)?;
        Ok(record)
    }
}

impl Work<'_> {
    /// Removes directories that turned out not to be needed, and those that a move has emptied.
    fn tidy(&mut self, emptied: &[RelPath]) {
        self.base.sweep(&mut self.notes.left);
        self.base.remove_made();
        emptied.iter().rev().for_each(|dir| self.source.remove_emptied(dir));
        self.base.settle();
        self.source.settle();
        self.notes.unfinished = !self.notes.left.is_empty();
    }
}

/// Files that are written together.
fn batches(files: &[PlannedFile]) -> impl Iterator<Item = &[PlannedFile]> {
    let mut rest = files;
    std::iter::from_fn(move || {
        let (mut count, mut bytes, mut dirs) = (0, 0_u64, 0);
        while let Some(file) = rest.get(count).filter(|_| count < BATCH_FILES) {
            bytes = bytes.saturating_add(file.size);
            // Files come in the order of their directories.
            dirs += usize::from(count == 0 || rest[count - 1].dir != file.dir);
            if count > 0 && (bytes > BATCH_BYTES || dirs > BATCH_DIRS) {
                break;
            }
            count += 1;
        }
        let (batch, later) = rest.split_at(count);
        rest = later;
        (count > 0).then_some(batch)
    })
}
