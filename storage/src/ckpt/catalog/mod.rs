//! The database that says which workspaces, snapshots, packs and objects there are.
//!
//! One connection, which holds the database exclusively: so SQLite keeps its WAL index in memory instead of in a
//! mapped file, and a full disk can neither keep the daemon from starting nor kill it in a page fault. Other
//! processes read a [copy]. Every change is one IMMEDIATE transaction, synced before it is acknowledged.

mod connection;
mod copy;
mod packs;
mod schema;
mod snapshots;
mod spare;
#[cfg(test)]
mod tests;
mod trash;
mod workspaces;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error as DatabaseError};

use super::error::{Error, Result};
use crate::ckpt::format::ObjectId;
use crate::ckpt::pack::PackId;
use crate::disk::Disk;
use crate::peer::as_daemon;
use crate::sqlite::{self, DISK_IS_FULL, NotDone, truncate_log};
use spare::Spare;

pub(crate) use copy::CatalogCopy;
pub(crate) use packs::{ObjectRow, PACKS_AT_ONCE, PackRow, PackState, Publication, Target};
pub(crate) use snapshots::{KnownTree, NewRow, SafetyRow, SnapshotRow};
pub(crate) use workspaces::{Registered, WorkspaceRow};

/// The file's name in the store's directory.
pub(crate) const FILE: &str = "catalog.sqlite3";
/// Held for each write, and while a copy is made.
const LOCK_FILE: &str = "catalog.lock";

/// The catalog of one store.
pub(crate) struct Catalog {
    dir: PathBuf,
    disk: Disk,
    connection: Mutex<Open>,
    /// Flocked for each write; a process that copies the files holds it meanwhile.
    lock: File,
    /// What a removal on a full disk is written with.
    spare: Spare,
    /// Names for packs to come. The database has them as pending, so that a file of such a name is provably a
    /// leftover.
    pool: Mutex<Vec<PackId>>,
}

/// What the mutex around the connection guards.
struct Open {
    /// `None` after SQLite has given it up; it is opened again when it is next needed.
    database: Option<SqliteConnection>,
    /// Counts commits after which other objects may be needed than before.
    generation: u64,
    /// The generation in which a publication last relied on objects of an older pack.
    reused: HashMap<PackId, u64>,
}

impl Open {
    /// Whether something published after `generation` relies on a pack.
    fn is_reused(&self, pack: &PackId, generation: u64) -> bool {
        self.reused.get(pack).is_some_and(|since| *since > generation)
    }

    fn forget_reuse(&mut self, packs: &HashSet<PackId>) {
        self.reused.retain(|id, _| !packs.contains(id));
    }
}

/// What went wrong inside a transaction.
pub(crate) enum Failure {
    /// SQLite said so.
    Database(DatabaseError),
    /// A rule of the engine.
    Engine(Error),
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// A transaction that failed.
struct NotCommitted {
    error: Error,
    /// Nothing of it is there now or will be after a restart. Otherwise its commit may have reached the disk, and only
    /// the next start knows.
    is_certain: bool,
}

impl From<NotCommitted> for Error {
    fn from(failed: NotCommitted) -> Self {
        failed.error
    }
}

/// The result of work inside a transaction.
pub(crate) type Attempt<T> = std::result::Result<T, Failure>;

impl Catalog {
    /// Opens or makes the catalog in the store's directory. Fails if another process has it open.
    pub(crate) fn open(disk: &Disk, dir: &Path) -> Result<Self> {
        let lock = connection::open_private(disk, dir, LOCK_FILE)?;
        drop(connection::open_private(disk, dir, FILE)?);
        let catalog = Self {
            dir: dir.to_owned(),
            disk: disk.clone(),
            connection: Mutex::new(Open { database: None, generation: 0, reused: HashMap::new() }),
            lock,
            spare: Spare::new(disk, dir),
            pool: Mutex::new(Vec::new()),
        };
        catalog.database(&mut catalog.open_connection())?;
        Ok(catalog)
    }

    fn database<'a>(&self, open: &'a mut Open) -> Result<&'a mut SqliteConnection> {
        match &mut open.database {
            Some(database) => Ok(database),
            none => {
                let _no_copy = connection::flock(&self.lock)?;
                // Also when a thread with a peer's rights is the first to miss it.
                let database = as_daemon(|| connection::establish(&self.disk, &self.dir.join(FILE)));
                Ok(none.insert(database.map_err(|failure| failure.explain(&self.dir))?))
            }
        }
    }

    /// Runs queries.
    fn read<T>(&self, work: impl FnOnce(&mut SqliteConnection) -> Attempt<T>) -> Result<T> {
        let mut open = self.open_connection();
        work(self.database(&mut open)?).map_err(|failure| failure.explain(&self.dir))
    }

    /// Runs one transaction that makes no object needed or unneeded.
    fn write<T>(&self, work: impl FnOnce(&mut SqliteConnection) -> Attempt<T>) -> Result<T> {
        Ok(self.commit(&mut self.open_connection(), work)?)
    }

    /// Runs one transaction after which fewer objects may be needed than before.
    fn write_roots<T>(&self, work: impl FnOnce(&mut SqliteConnection) -> Attempt<T>) -> Result<T> {
        Ok(self.publishing(|database, _| work(database))?)
    }

    /// Does something that gives space back or ends what others wait for; on a full disk once more, with the spare.
    fn with_spare<T>(&self, write: impl Fn() -> Result<T>) -> Result<T> {
        match write() {
            Err(Error::NoSpace { .. }) if self.give_up_spare() => write(),
            done => done,
        }
    }

    /// Gives back the space that is kept for removals on a full disk. False if there was none.
    pub(crate) fn give_up_spare(&self) -> bool {
        as_daemon(|| self.spare.give_up())
    }

    /// Has some space ready again for removals on a full disk, if it can be had. The catalog of a store that this
    /// process owns wants that; a copy does not.
    pub(crate) fn keep_spare(&self) {
        as_daemon(|| self.spare.keep());
    }

    /// Runs one transaction after which other objects are needed than before. It says which packs of earlier ones
    /// it relies on.
    fn publishing<T>(
        &self,
        work: impl FnOnce(&mut SqliteConnection, &mut BTreeSet<PackId>) -> Attempt<T>,
    ) -> std::result::Result<T, NotCommitted> {
        let mut open = self.open_connection();
        open.generation += 1;
        let generation = open.generation;
        let mut relied_on = BTreeSet::new();
        let result = self.commit(&mut open, |database| work(database, &mut relied_on));
        // After an error too: it may come after the commit took effect.
        open.reused.extend(relied_on.into_iter().map(|pack| (pack, generation)));
        result
    }

    fn commit<T>(
        &self,
        open: &mut Open,
        work: impl FnOnce(&mut SqliteConnection) -> Attempt<T>,
    ) -> std::result::Result<T, NotCommitted> {
        let certain = |error| NotCommitted { error, is_certain: true };
        let database = self.database(open).map_err(certain)?;
        let _no_copy = connection::flock(&self.lock).map_err(certain)?;
        let result = sqlite::transaction(database, |database| {
            let done = work(database)?;
            self.disk.before_commit().map_err(|error| Error::io("committing to the catalog", error))?;
            Ok(done)
        });
        let (failure, is_certain) = match result {
            Ok(done) => return Ok(done),
            Err(NotDone::Refused(failure)) => (failure, true),
            Err(NotDone::Failed(error)) => {
                let is_certain = error.to_string().contains(DISK_IS_FULL);
                (Failure::Database(error), is_certain)
            }
        };
        if sqlite::is_broken(database) {
            open.database = None;
        }
        let error = failure.explain(&self.dir);
        if matches!(error, Error::NoSpace { .. }) {
            // It has taken the last space for its part of the log.
            open.database.as_mut().map(truncate_log);
        }
        Err(NotCommitted { error, is_certain })
    }

    /// Empties the log, if that can be done now.
    fn empty_log(&self) -> Result<()> {
        let mut open = self.open_connection();
        let database = self.database(&mut open)?;
        let _no_copy = connection::flock(&self.lock)?;
        truncate_log(database);
        Ok(())
    }

    fn open_connection(&self) -> MutexGuard<'_, Open> {
        self.connection.lock().unwrap_or_else(|poisoned| {
            self.connection.clear_poison();
            let mut open = poisoned.into_inner();
            // Whatever panicked may have left its transaction open; closing the connection ends it. If a copy is being
            // made that cannot be waited for, it is of a state as it is after a crash.
            let _no_copy = connection::flock(&self.lock).ok();
            open.database = None;
            open
        })
    }

    fn pool(&self) -> MutexGuard<'_, Vec<PackId>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number that every change of what is needed raises.
    pub(crate) fn generation(&self) -> u64 {
        self.open_connection().generation
    }

    /// What is wrong with the tables that are small. That of the objects is not looked at: it would keep everybody
    /// waiting, and whoever compares it with the packs finds as much.
    pub(crate) fn damage(&self) -> Result<Vec<String>> {
        let mut damage = Vec::new();
        for table in ["workspaces", "snapshots", "packs"] {
            damage.extend(self.read(|database| Ok(sqlite::damage(database, table)?))?);
        }
        Ok(damage)
    }

    /// Bytes of the database's files.
    pub(crate) fn bytes(&self) -> u64 {
        let len = |suffix: &str| std::fs::metadata(self.dir.join(format!("{FILE}{suffix}"))).map(|m| m.len());
        len("").unwrap_or(0) + len("-wal").unwrap_or(0)
    }
}

impl Drop for Catalog {
    fn drop(&mut self) {
        // SQLite writes as it closes. Closing the lock's file, after the connection, ends this.
        if let Ok(no_copy) = connection::flock(&self.lock) {
            std::mem::forget(no_copy);
        }
    }
}

impl Failure {
    /// The engine's error for it.
    fn explain(self, dir: &Path) -> Error {
        let error = match self {
            Self::Engine(error) => return error,
            Self::Database(error) => error,
        };
        let what = || "writing the catalog".to_owned();
        match &error {
            // SQLite's own fixed texts; diesel passes no code on.
            DatabaseError::DatabaseError(DatabaseErrorKind::Unknown, info) => match info.message() {
                DISK_IS_FULL => Error::NoSpace { what: what() },
                "disk I/O error" if is_full(dir) => Error::NoSpace { what: what() },
                "disk I/O error" | "unable to open database file" => {
                    Error::Io { what: "catalog".to_owned(), source: std::io::Error::other(info.message()) }
                }
                "database disk image is malformed" | "file is not a database" => Error::Corrupt(format!(
                    "catalog: {}; put {FILE} of the state directory back from a backup",
                    info.message()
                )),
                message => Error::Catalog(message.to_owned()),
            },
            other => Error::Catalog(other.to_string()),
        }
    }
}

/// Whether the filesystem has nothing left: some of SQLite's errors do not say.
fn is_full(dir: &Path) -> bool {
    const NEXT_TO_NOTHING: u64 = 1 << 16;
    rustix::fs::statvfs(dir).is_ok_and(|fs| fs.f_bavail.saturating_mul(fs.f_frsize) < NEXT_TO_NOTHING)
}

/// The key of the row that was inserted last.
fn last_key(database: &mut SqliteConnection) -> Attempt<i64> {
    let query = diesel::dsl::sql::<diesel::sql_types::BigInt>("SELECT last_insert_rowid()");
    Ok(query.get_result(database)?)
}

/// An object id from its column.
fn object_id(bytes: &[u8]) -> Attempt<ObjectId> {
    bytes.try_into().map(ObjectId).map_err(|_| damaged("an object id"))
}

/// A pack id from its column.
fn pack_id(bytes: &[u8]) -> Attempt<PackId> {
    bytes.try_into().map(PackId).map_err(|_| damaged("a pack id"))
}

/// A row that no code of ours has written.
fn damaged(what: &str) -> Failure {
    Failure::Engine(Error::Corrupt(format!("catalog: {what} is not what it should be")))
}
