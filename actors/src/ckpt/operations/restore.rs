//! Brings something back from the trash.

use cofferdam_protocol::ckpt::SnapshotId;

use super::{Operation, Outcome, Target};
use crate::ckpt::failure::Trouble;

/// Brings something back from the trash as a snapshot of the workspace.
pub(crate) struct Restore {
    /// Its number in the trash.
    pub(crate) item: u64,
    /// What to call it; its own name if not said.
    pub(crate) id: Option<SnapshotId>,
    /// Whether only a forced delete removes it.
    pub(crate) pin: bool,
}

impl Operation for Restore {
    type Done = SnapshotId;

    fn run(self, on: &Target) -> Result<Outcome<SnapshotId>, Trouble> {
        let Self { item, id, pin } = self;
        let back = on.backend.restore_trashed(&on.peer, &on.workspace.id, item, id.as_ref(), pin)?;
        // Its place in the order in which snapshots were taken is the engine's to say.
        Ok(Outcome { done: back.id, after: on.read_again()? })
    }
}
