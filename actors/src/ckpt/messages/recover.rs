//! Forgetting a workspace.

use actix::Message;
use cofferdam_storage::peer::Peer;

use crate::ckpt::Failure;

/// Unregisters a workspace and answers its path. The directory stays exactly as it is; the snapshots go to the trash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<String, Failure>")]
pub struct RecoverWorkspace {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace.
    pub workspace: String,
}
