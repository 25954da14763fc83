//! Looking into the trash, and bringing something back from it.

use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};

use super::Store;
use super::collect::TRASH;
use crate::ckpt::error::Result;
use crate::ckpt::model::{Snapshot, Trashed};
use crate::peer::Peer;

impl Store {
    pub(super) fn list_trash(&self, peer: &Peer) -> Result<Vec<Trashed>> {
        let mut all = self.catalog.trash(TRASH.as_nanos() as i64)?;
        all.retain(|one| peer.is_privileged() || peer.uid == one.workspace.owner);
        Ok(all)
    }

    pub(super) fn take_from_trash(
        &self,
        peer: &Peer,
        workspace: &WorkspaceId,
        item: u64,
        name: Option<&SnapshotId>,
        pin: bool,
    ) -> Result<Snapshot> {
        let _reading = self.readers.begin();
        let workspace = self.visible(peer, workspace)?;
        let tree = self.catalog.trashed_tree(item, workspace.workspace.owner)?;
        let warnings = self.manifest(&tree)?.warnings.len() as u64;
        Ok(self.catalog.untrash(&workspace, item, name, pin, warnings)?.snapshot)
    }
}
