//! What was removed and is kept for a while.

use actix::Message;
use cofferdam_protocol::ckpt::SnapshotId;
use cofferdam_storage::ckpt::Trashed;
use cofferdam_storage::peer::Peer;

use crate::ckpt::Failure;

/// Lists the trash: snapshots of forgotten workspaces and those deleted by force, and the trees before rollbacks that
/// undo does not reach any more. In the order in which they were captured.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<Vec<Trashed>, Failure>")]
pub struct ListTrash {
    /// Who asks.
    pub peer: Peer,
}

/// Brings something back from the trash as a snapshot of a workspace, and answers its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<SnapshotId, Failure>")]
pub struct RestoreTrashed {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace it becomes a snapshot of: one of whose it was.
    pub workspace: String,
    /// Its number in the trash.
    pub item: u64,
    /// What to call it; its own name if not said.
    pub id: Option<String>,
    /// Whether from then on only a forced delete removes it.
    pub pin: bool,
}
