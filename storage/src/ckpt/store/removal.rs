//! Taking snapshots out of the catalog. What they held is reclaimed later, by collection.

use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};

use super::Store;
use crate::ckpt::error::Result;
use crate::ckpt::model::Removal;
use crate::peer::Peer;

impl Store {
    pub(super) fn remove_snapshots(
        &self,
        peer: &Peer,
        workspace: &WorkspaceId,
        snapshots: &[SnapshotId],
        how: Removal,
    ) -> Result<()> {
        let workspace = self.visible(peer, workspace)?;
        self.catalog.remove(workspace.key, snapshots, how, self.clock.wall())?;
        self.step("delete.committed")
    }
}
