//! What can go wrong with a pod's disk.

use std::io;

/// Why something was not done. What it names is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another sidecar holds the database.
    #[error("the database is in use by another process; close that one first: {0}")]
    Locked(String),
    /// The database was made by a newer program.
    #[error("the database has schema version {found}, this program knows {known}; use the newer program")]
    NewerSchema {
        /// Its schema version.
        found: i64,
        /// The newest this program knows.
        known: i64,
    },
    /// It is no database of ours, or it is damaged, or SQLite failed.
    #[error("the database cannot be used: {0}")]
    Database(String),
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The sandbox root cannot be made or opened.
    #[error("{what}: {source}")]
    BadRoot {
        /// Which directory, and what to do.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A path leads out of the sandbox root.
    #[error("{0}")]
    PathOutside(String),
}

/// What most things here return.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(super) fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Io { what: what.into(), source }
    }
}

/// What to do about a database that is damaged.
pub(super) const INSTEAD: &str =
    "move it away with all files whose names begin like its own, and start anew or put a copy in its place";

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        let text = error.to_string();
        Self::Database(match text.as_str() {
            "database is locked" => format!("{text}; close the other program that has it open"),
            "database disk image is malformed" => format!("{text}; {INSTEAD}"),
            "database or disk is full" => format!("{text}; make room there"),
            _ => text,
        })
    }
}
