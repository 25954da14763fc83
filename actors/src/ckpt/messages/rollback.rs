//! Going back, and taking that back.

use std::path::PathBuf;

use actix::Message;
use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};
use cofferdam_storage::ckpt::RolledBack;
use cofferdam_storage::peer::Peer;

use crate::ckpt::Failure;

/// Gives the directory exactly a snapshot's tree. What it held before is kept for [`UndoRollback`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<RollbackDone, Failure>")]
pub struct Rollback {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace.
    pub workspace: String,
    /// Which snapshot.
    pub to: String,
}

/// A rollback that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollbackDone {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The snapshot's full name.
    pub to: SnapshotId,
    /// What it changed and what the user should know.
    pub outcome: RolledBack,
}

/// Takes the newest rollback of a workspace back; sent again, takes that back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<UndoDone, Failure>")]
pub struct UndoRollback {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace.
    pub workspace: String,
}

/// A rollback that was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoDone {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Its path.
    pub path: PathBuf,
    /// What it changed and what the user should know.
    pub outcome: RolledBack,
}
