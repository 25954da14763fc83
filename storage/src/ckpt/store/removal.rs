//! Taking snapshots out of the catalog. What they held is reclaimed later, by collection.

use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};

use super::Store;
use crate::ckpt::error::Result;
use crate::ckpt::model::Removal;

impl Store {
    pub(super) fn remove_snapshots(
        &self,
        workspace: &WorkspaceId,
        snapshots: &[SnapshotId],
        how: Removal,
    ) -> Result<()> {
        let workspace = self.registered(workspace)?;
        self.catalog.remove(workspace.key, snapshots, how, self.clock.wall())?;
        self.step("delete.committed")
    }
}
