//! What can go wrong, told apart as finely as a caller can act on.

use std::io;
use std::path::PathBuf;

use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};

use crate::path::RelPath;

/// The result of an engine operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an engine operation did not happen. Unless a variant says otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such workspace, or not this peer's.
    #[error("workspace not found: {0}")]
    WorkspaceNotFound(WorkspaceId),
    /// No such snapshot in that workspace.
    #[error("snapshot not found: {0}")]
    SnapshotNotFound(SnapshotId),
    /// The workspace has a snapshot of that name.
    #[error("snapshot id '{0}' already exists in workspace")]
    SnapshotExists(SnapshotId),
    /// The directory lies inside a registered workspace of the same owner.
    #[error("already inside workspace {workspace} ({})", path.display())]
    InsideWorkspace {
        /// That workspace.
        workspace: WorkspaceId,
        /// Its path.
        path: PathBuf,
    },
    /// The path cannot be a workspace.
    #[error("{0}")]
    InvalidPath(String),
    /// The directory at the workspace's path is not the one that was registered.
    #[error("{} is no longer the directory that was registered; run init to take it over and keep its snapshots", .0.display())]
    WorkspaceReplaced(PathBuf),
    /// The workspace's directory is gone.
    #[error("{} does not exist any more; put it back, or run recover to forget it", .0.display())]
    WorkspaceGone(PathBuf),
    /// Data of the snapshot is damaged or gone.
    #[error("Snapshot '{0}' subvolume is missing (data lost). Delete it with --force.")]
    SnapshotMissing(SnapshotId),
    /// There is no rollback to take back.
    #[error("nothing to undo: no rollback of this workspace is on record")]
    NothingToUndo,
    /// Nothing in the trash has that number and is this peer's.
    #[error("nothing in the trash has the number {0}; trash list shows what there is")]
    NotInTrash(u64),
    /// The metadata is not a JSON object or value that can be kept.
    #[error("metadata: {0}")]
    InvalidMetadata(String),
    /// Another operation, of this or another process, holds the workspace.
    #[error("Workspace has active write operations. Please wait and retry.")]
    Busy,
    /// A rollback that cannot be carried out completely is not begun.
    #[error("rollback not begun, nothing was changed: {}", list(.0))]
    Preflight(Vec<Obstacle>),
    /// The filesystem is full or the quota is spent.
    #[error("no space left: {what}; free some and try again")]
    NoSpace {
        /// While doing what.
        what: String,
    },
    /// An operation on a path failed.
    #[error("{what}: {source}")]
    Io {
        /// While doing what to what.
        what: String,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// A store file does not hold what it should.
    #[error("store is damaged: {0}; run check --read-data")]
    Corrupt(String),
    /// The database failed.
    #[error("catalog: {0}")]
    Catalog(String),
    /// Another daemon uses this state directory.
    #[error("state directory {} is in use by {holder}; stop that one or choose another state directory", dir.display())]
    Locked {
        /// The state directory.
        dir: PathBuf,
        /// Who holds it, such as `process 4711`.
        holder: String,
    },
    /// The store was written by a newer version.
    #[error("{what} has format {found}, this program knows {known}; use a newer cofferdam")]
    NewerFormat {
        /// Which file.
        what: String,
        /// The version found.
        found: u32,
        /// The newest version this program reads.
        known: u32,
    },
}

/// One reason why a rollback cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Where.
    pub path: RelPath,
    /// Why, such as `the directory is immutable`.
    pub why: String,
}

impl Error {
    /// Wraps a system error, telling a full disk apart from everything else.
    pub fn io(what: impl Into<String>, source: io::Error) -> Self {
        let what = what.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace { what },
            _ => Self::Io { what, source },
        }
    }
}

/// Adds what was being done to a system error.
pub(crate) trait Context<T> {
    /// Wraps the error with what was being done.
    fn context(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::io(what(), source))
    }
}

impl<T> Context<T> for std::result::Result<T, rustix::io::Errno> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|errno| Error::io(what(), errno.into()))
    }
}

/// At most five obstacles by name; a tree can have a hundred thousand.
fn list(obstacles: &[Obstacle]) -> String {
    const SHOWN: usize = 5;
    let mut text: Vec<String> =
        obstacles.iter().take(SHOWN).map(|o| format!("{}: {}", o.path, o.why)).collect();
    if obstacles.len() > SHOWN {
        text.push(format!("and {} more", obstacles.len() - SHOWN));
    }
    text.join("; ")
}
