//! Gives the directory a snapshot's tree.

use cofferdam_storage::ckpt::Error;

use super::{After, Operation, Outcome, Target};
use crate::ckpt::failure::Trouble;
use crate::ckpt::messages::{LastDone, LastRollback, RollbackDone};
use crate::ckpt::reference;

/// Gives the directory a snapshot's tree.
pub(crate) struct RollBack {
    /// Which snapshot: an id, or a unique prefix unless it is `exact`.
    pub(crate) to: String,
    /// Whether `to` is a full name.
    pub(crate) exact: bool,
}

impl Operation for RollBack {
    type Done = RollbackDone;

    fn run(self, on: &Target) -> Result<Outcome<RollbackDone>, Trouble> {
        let snapshot = reference::find(&on.snapshots, &self.to, self.exact)?;
        if snapshot.missing {
            return Err(Error::SnapshotMissing(snapshot.id.clone()).into());
        }
        let outcome = on.backend.rollback(&on.peer, &on.workspace.id, &snapshot.id)?;
        let (workspace, to) = (on.workspace.id.clone(), snapshot.id.clone());
        let after = After::RolledBack(LastRollback::of(LastDone::To(to.clone()), &outcome));
        Ok(Outcome { done: RollbackDone { workspace, to, outcome }, after })
    }
}
