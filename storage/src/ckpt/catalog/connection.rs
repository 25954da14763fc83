//! Opening the database file.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use rustix::fs::FlockOperation;

use super::{Attempt, Failure};
use crate::ckpt::error::{Error, Result};
use crate::disk::Disk;
use crate::sqlite;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations/ckpt");

/// How many migrations there are: the newest `user_version` this program knows.
pub(super) const SCHEMA_VERSION: u32 = 2;

/// What `application_id` is.
const APPLICATION_ID: u32 = 0x436f_6664;

/// Opens the database and brings its schema up to date.
pub(super) fn establish(disk: &Disk, file: &Path) -> Attempt<SqliteConnection> {
    let mut database = sqlite::connect(file, sqlite::PATIENCE_MS).map_err(Error::Catalog)?;
    database.batch_execute(sqlite::JOURNAL)?;
    let version = sqlite::pragma(&mut database, "user_version")?;
    if version > SCHEMA_VERSION {
        let what = file.display().to_string();
        return Err(Error::NewerFormat { what, found: version, known: SCHEMA_VERSION }.into());
    }
    if version > 0 && sqlite::pragma(&mut database, "application_id")? != APPLICATION_ID {
        return Err(Error::Corrupt(format!("{} is another program's database", file.display())).into());
    }
    if version < SCHEMA_VERSION {
        disk.before_commit().map_err(|error| Error::io("making the catalog", error))?;
        sqlite::migrate(&mut database, MIGRATIONS).map_err(migration_failure)?;
    }
    Ok(database)
}

fn migration_failure(text: String) -> Failure {
    Failure::Engine(match text.contains(sqlite::DISK_IS_FULL) {
        true => Error::NoSpace { what: "making the catalog".to_owned() },
        false => Error::Catalog(text),
    })
}

/// Opens a file of the store's own, made if it is missing.
pub(super) fn open_private(disk: &Disk, dir: &Path, name: &str) -> Result<File> {
    sqlite::open_private(disk, dir, name)
        .map_err(|error| Error::io(format!("opening {}", dir.join(name).display()), error))
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
