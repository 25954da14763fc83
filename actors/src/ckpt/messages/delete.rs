//! Removing snapshots.

use actix::Message;
use cofferdam_protocol::ckpt::SnapshotId;
use cofferdam_storage::peer::Peer;

use crate::ckpt::Failure;

/// Removes one snapshot and answers its full name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<SnapshotId, Failure>")]
pub struct DeleteSnapshot {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace; without it, the one workspace in which the snapshot is found.
    pub workspace: Option<String>,
    /// Which snapshot: its name, or a unique prefix of it unless it is `exact`.
    pub snapshot: String,
    /// Whether `snapshot` is a full name: one that is gone then names no other.
    pub exact: bool,
    /// Also if it is pinned.
    pub force: bool,
}

/// Removes the oldest snapshots that are not pinned, and answers their names, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<Vec<SnapshotId>, Failure>")]
pub struct Cleanup {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace.
    pub workspace: String,
    /// How many to keep beside the pinned ones; 20 if not said.
    pub keep: Option<u32>,
}
