//! The pod database: one SQLite file, one process, one connection, which holds it exclusively.
//!
//! Every change is one IMMEDIATE transaction, synced before it is acknowledged. After an error nothing of it is there,
//! and the database can be used again.

mod commit;
mod config;
mod connection;
mod exports;
mod import;
mod load;
mod planned;
mod prune;
mod remembered;
mod schema;
mod start;
mod task;
#[cfg(test)]
mod tests;

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_protocol::pod::{Diagnostic, LogLevel};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;

use connection::Lock;
pub use prune::discard_backups;

use super::error::{Error, Result};
use super::model::Loaded;
use super::sandbox::Protected;
use crate::disk::Disk;
use crate::sqlite::{self, NotDone};

/// The newest schema this program knows.
pub const SCHEMA_VERSION: i64 = 1;

/// The open database, locked against other processes until it is dropped.
pub struct PodDb {
    disk: Disk,
    file: PathBuf,
    /// Which file that was when it was opened first.
    opened: Option<WhichFile>,
    /// `None` after SQLite has given it up, or after a panic; it is opened again when it is next needed.
    database: Option<SqliteConnection>,
    /// How long another program's lock is waited for.
    patience_ms: u32,
    /// In milliseconds since the epoch.
    opened_at: i64,
    /// Dropped after the connection, which writes as it closes.
    lock: Arc<Lock>,
}

/// Keeps the database locked against other processes, for work that goes on after it is closed.
#[derive(Clone)]
pub struct StillLocked {
    _lock: Arc<Lock>,
}

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
        Self::open_waiting(disk, file, legacy, protected, now, sqlite::PATIENCE_MS)
    }

    fn open_waiting(
        disk: &Disk,
        file: &Path,
        legacy: Option<&Path>,
        protected: &Protected,
        now: i64,
        patience_ms: u32,
    ) -> Result<Opened> {
        let lock = connection::lock(disk, file)?;
        let (disk, file) = (disk.clone(), file.to_owned());
        let database = connection::establish(&disk, &file, patience_ms)?;
        let opened = WhichFile::of(&file);
        let mut db = Self {
            disk,
            file,
            opened,
            database: Some(database),
            patience_ms,
            opened_at: now,
            lock: Arc::new(lock),
        };
        start::reached(&db, "pod.start.opened")?;
        let diagnostics = start::take_up(&mut db, legacy, protected, now)?;
        let loaded = db.load()?;
        Ok(Opened { db, loaded, diagnostics })
    }

    /// Bytes of the database and its log.
    pub fn size(&self) -> u64 {
        connection::len(&self.file) + connection::len(&connection::log_of(&self.file))
    }

    /// Keeps other processes away until the answer is dropped, even if the database is closed before.
    pub fn keep_locked(&self) -> StillLocked {
        StillLocked { _lock: Arc::clone(&self.lock) }
    }

    /// Empties the write-ahead log into the database and closes it.
    pub fn close(mut self) -> Result<()> {
        Ok(self.take()?.batch_execute("PRAGMA wal_checkpoint(TRUNCATE)")?)
    }

    /// The connection. Whoever takes it puts it back; a panic drops it, and so ends its transaction.
    fn take(&mut self) -> Result<SqliteConnection> {
        match self.database.take() {
            Some(database) => Ok(database),
            None => {
                self.check_place()?;
                connection::establish(&self.disk, &self.file, self.patience_ms)
            }
        }
    }

    /// Fails if somebody has removed or replaced the file: SQLite would go on with what no next start finds.
    fn check_place(&self) -> Result<()> {
        match WhichFile::of(&self.file) == self.opened {
            true => Ok(()),
            false => Err(Error::Database(format!(
                "{} was removed or replaced while it was in use; end this program and start it again",
                self.file.display()
            ))),
        }
    }

    /// Runs queries.
    fn read<T>(&mut self, work: impl FnOnce(&mut SqliteConnection) -> Result<T>) -> Result<T> {
        let mut database = self.take()?;
        let found = work(&mut database);
        self.database = Some(database);
        found
    }

    /// Runs one transaction.
    fn write<T>(&mut self, work: impl FnOnce(&mut SqliteConnection) -> Result<T>) -> Result<T> {
        self.check_place()?;
        let mut database = self.take()?;
        let done = sqlite::transaction(&mut database, |database| {
            let done = work(database)?;
            self.disk.before_commit().map_err(|error| Error::io("committing to the database", error))?;
            Ok(done)
        });
        let done = done.map_err(|error| match error {
            NotDone::Refused(error) => error,
            NotDone::Failed(error) => error.into(),
        });
        if sqlite::is_broken(&mut database) {
            return done;
        }
        if done.as_ref().is_err_and(|error| error.to_string().contains(sqlite::DISK_IS_FULL)) {
            // It has taken the last space for its part of the log.
            sqlite::truncate_log(&mut database);
        }
        self.database = Some(database);
        done
    }
}

impl fmt::Debug for StillLocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StillLocked")
    }
}

/// Device and inode: another file cannot have the same ones while this one is open.
#[derive(PartialEq, Eq)]
struct WhichFile(u64, u64);

impl WhichFile {
    fn of(file: &Path) -> Option<Self> {
        let metadata = std::fs::symlink_metadata(file).ok()?;
        Some(Self(metadata.dev(), metadata.ino()))
    }
}

impl fmt::Debug for PodDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PodDb").field("file", &self.file).finish_non_exhaustive()
    }
}

fn diagnostic(at: i64, level: LogLevel, message: String) -> Diagnostic {
    Diagnostic { at, level, message }
}
