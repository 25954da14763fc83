//! What can go wrong with a pod's disk.

use std::io;

use cofferdam_protocol::pod::FileType;

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
    /// What was asked makes no sense, whatever the disk holds.
    #[error("{0}")]
    BadRequest(String),
    /// There is no such file.
    #[error("{0}")]
    FileNotFound(String),
    /// A file that only a text can be read from is something else.
    #[error("{path} is {what} and not a file; only a file can be read")]
    NotAFile {
        /// Its path below the task's directory.
        path: String,
        /// What it is, as a list shows it.
        kind: FileType,
        /// What it is, for people.
        what: &'static str,
    },
    /// A file has more bytes than a preview may have.
    #[error("the file has {size} bytes, a preview {limit} at most; export it to read it elsewhere")]
    FileTooLarge {
        /// Its bytes.
        size: u64,
        /// The most a preview may have.
        limit: u64,
    },
    /// A file is no text.
    #[error("the file is neither UTF-8 nor UTF-16 with a byte order mark; export it to open it elsewhere")]
    Binary {
        /// Its bytes.
        size: u64,
    },
    /// Somebody wants a directory removed that is no task's.
    #[error("{0}")]
    RootProtected(String),
    /// The system refused something about a task's files.
    #[error("{what}: {source}")]
    Files {
        /// What was being done.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// An export would write into a sandbox.
    #[error("{0}")]
    TargetInsideSandbox(String),
    /// An export is too large.
    #[error("the export has more than {value} {}; select less", limit.unit())]
    ExportLimit {
        /// Which limit it exceeds.
        limit: ExportLimit,
        /// What it may have at most.
        value: u64,
    },
    /// There is nothing to undo.
    #[error("{message}")]
    UndoConflict {
        /// Why: a word for programs.
        reason: &'static str,
        /// For people.
        message: String,
    },
}

/// What an export may have only so much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportLimit {
    /// Files.
    Files,
    /// Bytes in all.
    Bytes,
    /// Bytes of one file.
    FileBytes,
    /// Directories, one in the other.
    Depth,
}

impl ExportLimit {
    /// The word that the wire has for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Bytes => "bytes",
            Self::FileBytes => "fileBytes",
            Self::Depth => "depth",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Bytes => "bytes in all",
            Self::FileBytes => "bytes in one file",
            Self::Depth => "directories one in the other",
        }
    }
}

/// What most things here return.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(super) fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Io { what: what.into(), source }
    }

    pub(super) fn files(what: impl Into<String>, source: io::Error) -> Self {
        Self::Files { what: what.into(), source }
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
