//! Registering a directory.

use actix::Message;
use cofferdam_protocol::ckpt::WorkspaceId;
use cofferdam_storage::peer::Peer;

use crate::ckpt::Failure;

/// Registers a directory, or takes over one that replaced a registered directory. Idempotent. Answered before its
/// tree is read; that happens in the background.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<WorkspaceId, Failure>")]
pub struct InitWorkspace {
    /// Who asks.
    pub peer: Peer,
    /// The directory's absolute path.
    pub workspace: String,
}
