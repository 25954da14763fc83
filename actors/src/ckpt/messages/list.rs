//! What snapshots there are.

use std::sync::Arc;

use actix::Message;
use cofferdam_protocol::ckpt::{SnapshotEntry, SnapshotMeta, Timestamp};
use cofferdam_storage::ckpt::{Snapshot, Warning, Workspace};
use cofferdam_storage::peer::Peer;

use crate::ckpt::Failure;
use crate::ckpt::shown::shown_path;

/// The snapshots of one workspace, or of all that the peer may see. Answered from memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<SnapshotList, Failure>")]
pub struct ListSnapshots {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace; without it, all.
    pub workspace: Option<String>,
}

/// Snapshots by workspace; shared with the registry, not copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotList {
    /// Each workspace that was asked for.
    pub workspaces: Vec<ListedWorkspace>,
}

/// One workspace's snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedWorkspace {
    /// The workspace.
    pub workspace: Arc<Workspace>,
    /// Its snapshots, in the order in which they were taken.
    pub snapshots: Arc<[Snapshot]>,
}

impl SnapshotList {
    /// The entries of the wire, oldest first over all workspaces.
    pub fn entries(&self) -> Vec<SnapshotEntry> {
        let mut all: Vec<(&ListedWorkspace, &Snapshot)> = self
            .workspaces
            .iter()
            .flat_map(|listed| listed.snapshots.iter().map(move |snapshot| (listed, snapshot)))
            .collect();
        // Stable: equal times stay in the order in which the snapshots were taken.
        all.sort_by_key(|(_, snapshot)| snapshot.created_at);
        all.into_iter().map(|(listed, snapshot)| entry(&listed.workspace, snapshot)).collect()
    }
}

fn entry(workspace: &Workspace, snapshot: &Snapshot) -> SnapshotEntry {
    SnapshotEntry {
        id: snapshot.id.as_str().to_owned(),
        workspace: shown_path(&workspace.path),
        meta: SnapshotMeta {
            message: snapshot.message.as_deref().map(str::to_owned),
            metadata: snapshot.metadata.as_deref().map(str::to_owned),
            pinned: snapshot.pinned,
            created_at: Timestamp::from_unix_nanos(snapshot.created_at.0),
            missing: snapshot.missing,
        },
    }
}

/// What a snapshot does not hold faithfully.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<Vec<Warning>, Failure>")]
pub struct SnapshotWarnings {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace.
    pub workspace: String,
    /// Which snapshot.
    pub snapshot: String,
}
