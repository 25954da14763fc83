//! Removes one snapshot.

use cofferdam_protocol::ckpt::SnapshotId;
use cofferdam_storage::ckpt::Removal;

use super::{Operation, Outcome, Target};
use crate::ckpt::failure::{RoutingError, Trouble};
use crate::ckpt::reference;

/// Removes one snapshot; a forced removal can be taken back from the trash for a while.
pub(crate) struct Delete {
    /// Which snapshot: an id, or a unique prefix unless it is `exact`.
    pub(crate) snapshot: String,
    /// Whether `snapshot` is a full name.
    pub(crate) exact: bool,
    /// Also if it is pinned.
    pub(crate) force: bool,
}

impl Operation for Delete {
    type Done = SnapshotId;

    fn run(self, on: &Target) -> Result<Outcome<SnapshotId>, Trouble> {
        let snapshot = reference::find(&on.snapshots, &self.snapshot, self.exact)?;
        if snapshot.pinned && !self.force {
            return Err(RoutingError::Pinned.into());
        }
        let id = snapshot.id.clone();
        let how = if self.force { Removal::Trash } else { Removal::Unlink };
        on.backend.delete(&on.peer, &on.workspace.id, std::slice::from_ref(&id), how)?;
        let after = on.without(std::slice::from_ref(&id));
        Ok(Outcome { done: id, after })
    }
}
