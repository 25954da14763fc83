//! What every database here has in common: how its file is found, opened and checked, and how a transaction ends.
//!
//! One process has a database at a time, and one connection, which holds it exclusively: so SQLite keeps the index of
//! its log in memory instead of in a mapped file, and a full disk can neither keep a program from starting nor kill
//! it in a page fault. Nobody else can read, so the log cannot grow for somebody's sake either.
//!
//! One row that a key names is asked for with `get_result`, not with `first`: that binds a LIMIT, for which SQLite plans
//! the statement anew each time.

use std::fmt::Write;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::prelude::*;
use diesel::result::Error as DatabaseError;
use diesel::sql_types::{Integer, Text};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness};
use rustix::fs::{Mode, OFlags};

use crate::disk::Disk;

/// What has to be said before the file is looked at; none of it changes the file.
///
/// - `locking_mode` before the first access: then there is no shared-memory file.
/// - `temp_store`: nothing is written elsewhere.
/// - `trusted_schema`: the file cannot have functions run that it has no business with.
const SESSION: &str = "
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA foreign_keys = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA trusted_schema = OFF;
";

/// How long an administrator's shell that looks at the file as the program starts is waited for, in milliseconds.
pub(crate) const PATIENCE_MS: u32 = 5000;

/// How it is written. `journal_size_limit`: a large transaction leaves no large log behind.
pub(crate) const JOURNAL: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA journal_size_limit = 8388608;
";

/// What SQLite says when it cannot lengthen a file. It says so before the commit is written, never after.
pub(crate) const DISK_IS_FULL: &str = "database or disk is full";

/// A path as SQLite's URI, which can hold every byte.
fn url(file: &Path) -> io::Result<String> {
    let absolute = std::path::absolute(file)?;
    let mut url = "file:".to_owned();
    for byte in absolute.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                url.push(char::from(*byte))
            }
            // Writing to a string cannot fail.
            _ => drop(write!(url, "%{byte:02x}")),
        }
    }
    url.push_str("?mode=rw");
    Ok(url)
}

/// Opens a database that is there and says what has to be said before it is looked at.
pub(crate) fn connect(file: &Path, patience_ms: u32) -> Result<SqliteConnection, String> {
    let shown = |error: String| format!("{}: {error}", file.display());
    let url = url(file).map_err(|error| shown(error.to_string()))?;
    let mut database = SqliteConnection::establish(&url).map_err(|error| shown(error.to_string()))?;
    database
        .batch_execute(&format!("PRAGMA busy_timeout = {patience_ms};{SESSION}"))
        .map_err(|error| shown(error.to_string()))?;
    Ok(database)
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = Integer)]
    value: i32,
}

/// What a pragma says that is a number.
pub(crate) fn pragma(database: &mut SqliteConnection, name: &str) -> QueryResult<u32> {
    let query = format!("SELECT {name} AS value FROM pragma_{name}");
    let found: Number = diesel::sql_query(query).get_result(database)?;
    Ok(found.value as u32)
}

/// What SQLite finds wrong with a table and its indexes, reading all of them; at most some lines, none if all is sound.
pub(crate) fn damage(database: &mut SqliteConnection, table: &str) -> QueryResult<Vec<String>> {
    let query = diesel::sql_query("SELECT integrity_check AS line FROM pragma_integrity_check(?) LIMIT 10");
    let lines: Vec<Line> = query.bind::<Text, _>(table).load(database)?;
    Ok(lines.into_iter().map(|found| found.line).filter(|line| line != "ok").collect())
}

/// Brings the schema up to date. The error is a text, as the harness gives nothing else.
pub(crate) fn migrate(database: &mut SqliteConnection, migrations: EmbeddedMigrations) -> Result<(), String> {
    database.run_pending_migrations(migrations).map(drop).map_err(|error| error.to_string())
}

/// Opens a file of the program's own, following no link; made with mode 0600 if it is missing: SQLite itself would
/// use the umask.
pub(crate) fn open_private(disk: &Disk, dir: &Path, name: impl AsRef<Path>) -> io::Result<File> {
    let name = name.as_ref();
    // What is no file, such as a FIFO, must not be waited for.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(dir.join(name), flags, Mode::empty()) {
        Ok(file) => Ok(file.into()),
        Err(rustix::io::Errno::NOENT) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir = rustix::fs::open(dir, flags, Mode::empty())?;
            let file = disk.create(&dir, name, OFlags::RDWR, Mode::from_raw_mode(0o600))?;
            disk.fsync(&dir)?;
            Ok(file.into())
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Why a transaction is not known to be done.
pub(crate) enum NotDone<E> {
    /// Its work failed so; nothing of it is there now or will be after a restart.
    Refused(E),
    /// SQLite failed so, perhaps after the commit had reached the disk: then only the next start knows.
    Failed(DatabaseError),
}

/// Runs one IMMEDIATE transaction.
pub(crate) fn transaction<T, E>(
    database: &mut SqliteConnection,
    work: impl FnOnce(&mut SqliteConnection) -> Result<T, E>,
) -> Result<T, NotDone<E>> {
    let mut failure = None;
    let result = database.immediate_transaction(|database| {
        // Kept apart: SQLite may have rolled back on its own, and then rolling back is an error that hides it.
        work(database).map_err(|error| {
            failure = Some(error);
            DatabaseError::RollbackTransaction
        })
    });
    result.map_err(|error| match (failure, error) {
        (Some(failure), _) => NotDone::Refused(failure),
        (None, DatabaseError::RollbackErrorOnCommit { commit_error, .. }) => NotDone::Failed(*commit_error),
        (None, error) => NotDone::Failed(error),
    })
}

/// Whether a connection can only be given up.
pub(crate) fn is_broken(database: &mut SqliteConnection) -> bool {
    AnsiTransactionManager::is_broken_transaction_manager(database)
}

/// Moves the log's content to where it belongs and gives its space back, if that can be done now.
pub(crate) fn truncate_log(database: &mut SqliteConnection) {
    if let Err(error) = database.batch_execute("PRAGMA wal_checkpoint(TRUNCATE)") {
        tracing::debug!(%error, "the database's log stays");
    }
}
