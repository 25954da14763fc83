//! What tasks and configuration say of an export before it begins.

use std::path::{Path, PathBuf};

use cofferdam_protocol::pod::{ConflictMode, ExportCreate, ExportMode, ExportRecord, TaskId};
use cofferdam_storage::pod::TaskPlace;
use cofferdam_storage::pod::export::ExportRequest;

use super::{Queue, Refusal};
use crate::pod::queue::FileUse;

/// The most entries of an export (spec §8).
const MAX_ENTRIES: usize = 5000;

impl Queue {
    /// What is to be exported, and whose files are held from now on; or why nothing is. The refusals come in the order
    /// of the contract.
    pub(in crate::pod) fn admit_export(
        &mut self,
        id: String,
        request: ExportCreate,
        at: i64,
    ) -> Result<(ExportRequest, TaskId), Refusal> {
        let config = self.config();
        if !config.enable_export {
            return Err(Refusal::ExportDisabled);
        }
        let ExportCreate { task_id: task, entries, target_dir, mode, conflict, remember: _ } = request;
        let bad = |what: &str| Err(Refusal::BadRequest(what.to_owned()));
        if entries.is_empty() || entries.len() > MAX_ENTRIES {
            return bad("entries: name 1 to 5000 files or directories");
        }
        if !Path::new(&target_dir).is_absolute() {
            return bad("targetDir: an absolute path is needed");
        }
        let current_root = Some(PathBuf::from(&config.sandbox_root)).filter(|root| root.is_absolute());
        let mode = mode.unwrap_or(ExportMode::Copy);
        let summary = &self.task(&task)?.summary;
        if mode == ExportMode::Move && !summary.status.is_terminal() {
            return Err(Refusal::Running(summary.status));
        }
        self.check_unused(&task)?;
        let request = ExportRequest {
            id,
            label: summary.label.clone(),
            at,
            place: TaskPlace::of(summary),
            current_root,
            own_files: Vec::new(),
            own_dirs: Vec::new(),
            entries,
            target_dir: target_dir.into(),
            mode,
            conflict: conflict.unwrap_or(ConflictMode::Overwrite),
            task,
        };
        let usage = match mode {
            ExportMode::Copy => FileUse::Copied,
            ExportMode::Move => FileUse::Moved,
        };
        let held = self.hold(&request.task, usage)?;
        Ok((request, held))
    }

    /// Whose files are held from now on because they come back as an export is undone, if they do and the task is there
    /// still.
    pub(in crate::pod) fn admit_undo(&mut self, record: &ExportRecord) -> Result<Option<TaskId>, Refusal> {
        if record.mode == ExportMode::Copy || self.task(&record.task_id).is_err() {
            return Ok(None);
        }
        self.check_unused(&record.task_id)?;
        self.hold(&record.task_id, FileUse::Copied).map(Some)
    }
}
