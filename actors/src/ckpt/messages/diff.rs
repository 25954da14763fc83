//! Comparing two trees.

use actix::Message;
use cofferdam_protocol::ckpt::DiffEntry;
use cofferdam_storage::peer::Peer;

use crate::ckpt::Failure;

/// How two trees differ, sorted by path. Runs beside the workspace's writes, not in their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<Vec<DiffEntry>, Failure>")]
pub struct DiffSnapshots {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace.
    pub workspace: String,
    /// The earlier snapshot.
    pub from: String,
    /// The later one, or `@live` for the directory as it is now.
    pub to: String,
}
