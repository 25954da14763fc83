//! Removes the snapshots that a rule leaves no room for.

use cofferdam_protocol::ckpt::{CleanupRetention, SnapshotId};
use cofferdam_storage::ckpt::Removal;

use super::{Operation, Outcome, Target};
use crate::ckpt::failure::Trouble;
use crate::ckpt::retention;

/// Removes the snapshots that this rule leaves no room for.
pub(crate) struct Clean(pub(crate) CleanupRetention);

impl Operation for Clean {
    type Done = Vec<SnapshotId>;

    fn run(self, on: &Target) -> Result<Outcome<Vec<SnapshotId>>, Trouble> {
        let surplus = retention::surplus(&on.snapshots, &self.0, on.clock.wall());
        if surplus.is_empty() {
            return Ok(Outcome::same(surplus));
        }
        on.backend.delete(&on.peer, &on.workspace.id, &surplus, Removal::Unlink)?;
        let after = on.without(&surplus);
        Ok(Outcome { done: surplus, after })
    }
}
