//! The predecessor's file, `isolation-pod.json`, read leniently: one bad element costs that element at most.

use std::path::Path;

use cofferdam_protocol::pod::{Config, Diagnostic, ExportRecord, LegacyLogEntry, TaskSummary};

use super::sandbox::Protected;

/// What the file held.
#[derive(Debug)]
pub(super) struct Legacy {
    /// BLAKE3 of its bytes, to tell that it was imported.
    pub(super) hash: String,
    /// The configuration that its nine keys make of the defaults.
    pub(super) config: Config,
    /// Its tasks in the file's order.
    pub(super) tasks: Vec<LegacyTask>,
    /// Its exports in the file's order.
    pub(super) exports: Vec<ExportRecord>,
    /// What was dropped or replaced.
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// One of its tasks.
#[derive(Debug)]
pub(super) struct LegacyTask {
    /// As the wire shows it.
    pub(super) summary: TaskSummary,
    /// What the wire has no place for, as a JSON object.
    pub(super) side: String,
    /// Its transcript.
    pub(super) log: Vec<LegacyLogEntry>,
}

/// Reads the file; `None` if there is none. The error says why nothing of it can be used.
pub(super) fn read(path: &Path, protected: &Protected, now: i64) -> Result<Option<Legacy>, String> {
    let _ = (path, protected, now);
    todo!()
}
