//! Comparing two trees.

use actix::Message;
use cofferdam_protocol::ckpt::DiffEntry;
use cofferdam_storage::ckpt::Seen;
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

/// What two trees have at a path. Runs beside the workspace's writes, not in their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<ComparedFile, Failure>")]
pub struct CompareFile {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace.
    pub workspace: String,
    /// The earlier snapshot.
    pub from: String,
    /// The later one, or `@live` for the directory as it is now.
    pub to: String,
    /// Where in the later one, as a diff shows it.
    pub path: String,
    /// Where in the earlier one, if it was somewhere else.
    pub old_path: Option<String>,
    /// The most bytes wanted of each.
    pub most: usize,
}

/// What two trees have at a path; nothing where there is nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedFile {
    /// The earlier one.
    pub old: Option<Seen>,
    /// The later one.
    pub new: Option<Seen>,
}
