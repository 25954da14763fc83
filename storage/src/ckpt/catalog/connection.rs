//! Opening the database file.

use std::fmt::Write;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Integer;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use rustix::fs::{FlockOperation, Mode, OFlags};

use super::{Attempt, Failure};
use crate::ckpt::error::{Error, Result};
use crate::disk::Disk;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations/ckpt");

/// How many migrations there are: the newest `user_version` this program knows.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// What `application_id` is.
const APPLICATION_ID: u32 = 0x436f_6664;

/// - `locking_mode` before the first access: then there is no shared-memory file.
/// - `busy_timeout` for an administrator's shell that looks at the file as the daemon starts.
/// - `journal_size_limit`: a large transaction leaves no large log behind.
/// - `temp_store`: nothing is written elsewhere.
const SETTINGS: &str = "
    PRAGMA busy_timeout = 5000;
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA journal_size_limit = 8388608;
    PRAGMA temp_store = MEMORY;
    PRAGMA trusted_schema = OFF;
";

/// Opens the database and brings its schema up to date.
pub(super) fn establish(file: &Path) -> Attempt<SqliteConnection> {
    let mut database = SqliteConnection::establish(&url(file)?)
        .map_err(|error| Error::Catalog(format!("{}: {error}", file.display())))?;
    database.batch_execute(SETTINGS)?;
    let version = pragma(&mut database, "user_version")?;
    if version > SCHEMA_VERSION {
        let what = file.display().to_string();
        return Err(Error::NewerFormat { what, found: version, known: SCHEMA_VERSION }.into());
    }
    if version > 0 && pragma(&mut database, "application_id")? != APPLICATION_ID {
        return Err(Error::Corrupt(format!("{} is another program's database", file.display())).into());
    }
    if version < SCHEMA_VERSION {
        database.run_pending_migrations(MIGRATIONS).map_err(migration_failure)?;
    }
    Ok(database)
}

/// The harness gives a text only.
fn migration_failure(error: Box<dyn std::error::Error + Send + Sync>) -> Failure {
    let text = error.to_string();
    Failure::Engine(match text.contains("database or disk is full") {
        true => Error::NoSpace { what: "making the catalog".to_owned() },
        false => Error::Catalog(text),
    })
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = Integer)]
    value: i32,
}

fn pragma(database: &mut SqliteConnection, name: &str) -> Attempt<u32> {
    let query = format!("SELECT {name} AS value FROM pragma_{name}");
    let found: Number = diesel::sql_query(query).get_result(database)?;
    Ok(found.value as u32)
}

/// A path as SQLite's URI, which can hold every byte.
fn url(file: &Path) -> Result<String> {
    let absolute = std::path::absolute(file).map_err(|error| Error::io("opening the catalog", error))?;
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

/// Opens a file of the store's own, made with mode 0600 if it is missing: SQLite itself would use the umask.
pub(super) fn open_private(disk: &Disk, dir: &Path, name: &str) -> Result<File> {
    let attempt = || -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(dir.join(name), flags, Mode::empty()) {
            Ok(file) => Ok(file.into()),
            Err(rustix::io::Errno::NOENT) => {
                let dir = rustix::fs::open(
                    dir,
                    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                    Mode::empty(),
                )?;
                let file = disk.create(&dir, name, OFlags::RDWR, Mode::from_raw_mode(0o600))?;
                disk.fsync(&dir)?;
                Ok(file.into())
            }
            Err(errno) => Err(errno.into()),
        }
    };
    attempt().map_err(|error| Error::io(format!("opening {}", dir.join(name).display()), error))
}

/// Holds a file's lock.
pub(super) struct Flock<'a>(BorrowedFd<'a>);

/// Waits for a file's lock; who holds it copies the catalog and is done in a moment.
pub(super) fn flock(file: &File) -> Result<Flock<'_>> {
    loop {
        match rustix::fs::flock(file, FlockOperation::LockExclusive) {
            Ok(()) => return Ok(Flock(file.as_fd())),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(Error::io("locking the catalog", errno.into())),
        }
    }
}

impl Drop for Flock<'_> {
    fn drop(&mut self) {
        // Closing the file would release it too.
        let _ = rustix::fs::flock(self.0, FlockOperation::Unlock);
    }
}
