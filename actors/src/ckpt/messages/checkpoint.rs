//! Taking a snapshot.

use actix::Message;
use cofferdam_protocol::ckpt::SnapshotId;
use cofferdam_storage::peer::Peer;

use crate::ckpt::Failure;

/// Takes a snapshot; registers the workspace first if need be. `Created` means that it survives power loss and that
/// every later list shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<CheckpointOutcome, Failure>")]
pub struct CreateCheckpoint {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace.
    pub workspace: String,
    /// The new snapshot's name.
    pub id: String,
    /// Free text.
    pub message: Option<String>,
    /// JSON text.
    pub metadata: Option<String>,
    /// Whether only a forced delete removes it.
    pub pin: bool,
}

/// What became of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointOutcome {
    /// It is durable.
    Created(SnapshotId),
    /// None was needed.
    Skipped {
        /// Why.
        reason: String,
    },
}
