//! Takes a snapshot.

use cofferdam_storage::ckpt::{Checkpointed, Error, NewSnapshot};

use super::{After, Operation, Outcome, Target};
use crate::ckpt::failure::Trouble;
use crate::ckpt::messages::CheckpointOutcome;

/// Takes a snapshot.
pub(crate) struct Checkpoint(pub(crate) NewSnapshot);

impl Operation for Checkpoint {
    type Done = CheckpointOutcome;

    fn run(self, on: &Target) -> Result<Outcome<CheckpointOutcome>, Trouble> {
        // The engine says so too, but only after it has read the tree.
        if on.snapshots.iter().any(|snapshot| snapshot.id == self.0.id) {
            return Err(Error::SnapshotExists(self.0.id).into());
        }
        let skipped = |reason| Outcome::same(CheckpointOutcome::Skipped { reason });
        match on.backend.checkpoint(&on.peer, &on.workspace.id, &self.0)? {
            Checkpointed::Created(snapshot) => {
                let done = CheckpointOutcome::Created(snapshot.id.clone());
                let after = on.snapshots.iter().cloned().chain([snapshot]).collect();
                Ok(Outcome { done, after: After::Snapshots(after) })
            }
            Checkpointed::EmptyWorkspace => Ok(skipped("Empty workspace, no snapshot created.".to_owned())),
            Checkpointed::Unchanged(since) => Ok(skipped(format!("no changes since {since}"))),
        }
    }
}
