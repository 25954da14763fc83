//! Finding, locking, checking and opening the database file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use rustix::fs::{FlockOperation, Mode};
use rustix::io::Errno;

use super::SCHEMA_VERSION;
use crate::disk::Disk;
use crate::durable;
use crate::pod::error::{Error, INSTEAD, Result};
use crate::sqlite;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations/pod");

/// What `application_id` is.
const APPLICATION_ID: i64 = 0x436f_6670;

/// What a SQLite file begins with.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Holds a database's lock.
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file would not do, while a process that was just forked off has it too.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Makes the directories above the database and takes its lock: `flock` on a file beside it, which is never removed.
/// The system releases it when the process is gone, however it went.
pub(super) fn lock(disk: &Disk, file: &Path) -> Result<Lock> {
    let (dir, name) = split(file)?;
    durable::make_dirs(disk, dir, Mode::from_raw_mode(0o700)).map_err(|error| {
        Error::io(format!("{} cannot be made; mend that or name another dbPath", dir.display()), error)
    })?;
    let mut lock_name = name.as_os_str().to_owned();
    lock_name.push(".lock");
    let path = dir.join(&lock_name);
    let lock = sqlite::open_private(disk, dir, lock_name).map_err(|error| opening(&path, error))?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Lock(lock)),
        Err(Errno::WOULDBLOCK) => Err(Error::Locked(file.display().to_string())),
        Err(errno) => Err(Error::io(format!("locking {}", path.display()), errno.into())),
    }
}

/// Opens the locked database, or makes it, and brings its schema up to date. A file that is not ours, or is damaged,
/// is left as it is. Another program's lock is waited for so long.
pub(super) fn establish(disk: &Disk, file: &Path, patience_ms: u32) -> Result<SqliteConnection> {
    let (dir, name) = split(file)?;
    let raw = sqlite::open_private(disk, dir, name).map_err(|error| opening(file, error))?;
    check_header(file, &raw)?;
    let log = log_of(file);
    if len(file) == 0 && len(&log) > 0 {
        // SQLite would delete the log.
        let (file, log) = (file.display(), log.display());
        return Err(Error::Database(format!(
            "{file} is empty, but {log} is not; put the database back that it belongs to, or move it away"
        )));
    }
    // Before SQLite opens it: closing any descriptor of a file ends SQLite's locks on it.
    drop(raw);
    let mut database = sqlite::connect(file, patience_ms).map_err(Error::Database)?;
    check_content(file, &mut database)?;
    database.batch_execute(sqlite::JOURNAL)?;
    if number(&mut database, "user_version")? < SCHEMA_VERSION {
        sqlite::migrate(&mut database, MIGRATIONS).map_err(Error::Database)?;
        // Now the file itself says what it is, also to a program that does not look into the log.
        sqlite::truncate_log(&mut database);
    }
    Ok(database)
}

/// SQLite's write-ahead log of a database.
pub(super) fn log_of(file: &Path) -> PathBuf {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

/// Bytes of a file; 0 if it is not there.
pub(super) fn len(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Directory and name.
fn split(file: &Path) -> Result<(&Path, PathBuf)> {
    match (file.parent(), file.file_name()) {
        (Some(dir), Some(name)) => Ok((dir, name.into())),
        _ => Err(Error::Database(format!("{} cannot be a file; name another dbPath", file.display()))),
    }
}

fn opening(path: &Path, error: io::Error) -> Error {
    let shown = path.display();
    match Errno::from_io_error(&error) {
        // The lock would be beside the link, and not beside the file.
        Some(Errno::LOOP) => Error::Database(format!("{shown} is a link; name the file that it leads to")),
        Some(Errno::ISDIR) => Error::Database(format!("{shown} is a directory; name a file in it")),
        _ => Error::io(format!("{shown} cannot be opened; mend that or name another dbPath"), error),
    }
}

/// Refuses what cannot be ours by its first bytes, without SQLite, which would write as it opens it.
fn check_header(file: &Path, raw: &File) -> Result<()> {
    let shown = file.display();
    let metadata = raw.metadata().map_err(|error| opening(file, error))?;
    if !metadata.is_file() {
        return Err(Error::Database(format!("{shown} is not a regular file; name another dbPath")));
    }
    if metadata.len() == 0 {
        return Ok(());
    }
    let mut header = [0; 100];
    match raw.read_exact_at(&mut header, 0) {
        Ok(()) if header.starts_with(MAGIC) => {}
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(opening(file, error)),
        _ => {
            return Err(Error::Database(format!(
                "{shown} is not an SQLite database; it is left as it is, name another dbPath"
            )));
        }
    }
    let number = |at: usize| {
        i64::from(i32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]))
    };
    check_owner(file, number(68), number(60))
}

/// The same by what SQLite reads, and whether it is whole.
fn check_content(file: &Path, database: &mut SqliteConnection) -> Result<()> {
    let (application, version) = (number(database, "application_id")?, number(database, "user_version")?);
    check_owner(file, application, version)?;
    // A first start that was cut short has at most the table of migrations.
    let theirs = "SELECT count(*) AS value FROM sqlite_schema WHERE tbl_name <> '__diesel_schema_migrations'";
    let theirs: Number = diesel::sql_query(theirs).get_result(database)?;
    if version == 0 && theirs.value > 0 {
        return Err(foreign(file));
    }
    let lines = diesel::sql_query("SELECT quick_check AS line FROM pragma_quick_check LIMIT 1");
    let Line { line } = lines.get_result(database)?;
    match line.as_str() {
        "ok" => Ok(()),
        damage => Err(Error::Database(format!("{} is damaged: {damage}; {INSTEAD}", file.display()))),
    }
}

fn check_owner(file: &Path, application: i64, version: i64) -> Result<()> {
    match (application, version) {
        (APPLICATION_ID | 0, found) if found > SCHEMA_VERSION => {
            Err(Error::NewerSchema { found, known: SCHEMA_VERSION })
        }
        (APPLICATION_ID, _) | (0, 0) => Ok(()),
        _ => Err(foreign(file)),
    }
}

fn foreign(file: &Path) -> Error {
    Error::Database(format!(
        "{} is another program's database; it is left as it is, name another dbPath",
        file.display()
    ))
}

fn number(database: &mut SqliteConnection, name: &str) -> Result<i64> {
    Ok(i64::from(sqlite::pragma(database, name)?.cast_signed()))
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    value: i64,
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}
