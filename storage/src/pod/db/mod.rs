//! The pod database: one SQLite file, one process, one connection that writes.

use std::path::Path;

use cofferdam_protocol::pod::{Diagnostic, ExportRecord, LegacyLogEntry};

use super::error::Result;
use super::model::{Change, ExportPage, Loaded};
use super::sandbox::Protected;
use crate::disk::Disk;

/// The newest schema this program knows.
pub const SCHEMA_VERSION: i64 = 1;

/// The open database, locked against other processes until it is dropped.
#[derive(Debug)]
pub struct PodDb {}

/// A database that is ready for work.
#[derive(Debug)]
pub struct Opened {
    /// It.
    pub db: PodDb,
    /// What it holds.
    pub loaded: Loaded,
    /// What happened on the way that a person should know.
    pub diagnostics: Vec<Diagnostic>,
}

impl PodDb {
    /// Opens the database, making it and the directories above it if it is missing, and takes up work: locks it, brings
    /// its schema up to date, marks what a former process left behind as interrupted, imports the predecessor's file
    /// once, prunes. Each step is one transaction; killed anywhere, the next start ends in the same state. A file that
    /// is no database of ours is left as it is. `now` is in milliseconds since the epoch.
    pub fn open(
        disk: &Disk,
        file: &Path,
        legacy: Option<&Path>,
        protected: &Protected,
        now: i64,
    ) -> Result<Opened> {
        let _ = (disk, file, legacy, protected, now);
        todo!()
    }

    /// Makes all changes durable, or none.
    pub fn commit(&mut self, changes: &[Change]) -> Result<()> {
        let _ = changes;
        todo!()
    }

    /// What is durable.
    pub fn load(&mut self) -> Result<Loaded> {
        todo!()
    }

    /// The transcript of a migrated task; empty for another one.
    pub fn legacy_log(&mut self, task: &str) -> Result<Vec<LegacyLogEntry>> {
        let _ = task;
        todo!()
    }

    /// Export records, newest first.
    pub fn exports(&mut self, page: &ExportPage) -> Result<Vec<ExportRecord>> {
        let _ = page;
        todo!()
    }

    /// How many export records there are.
    pub fn export_count(&mut self) -> Result<usize> {
        todo!()
    }

    /// Bytes of the database and its log.
    pub fn size(&self) -> u64 {
        todo!()
    }

    /// Empties the write-ahead log into the database and closes it.
    pub fn close(self) -> Result<()> {
        todo!()
    }
}
