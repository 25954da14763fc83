//! Takes the newest rollback back.

use cofferdam_storage::ckpt::Undone;

use super::{After, Operation, Outcome, Target};
use crate::ckpt::failure::{RoutingError, Trouble};
use crate::ckpt::messages::{LastDone, LastRollback, UndoDone};

/// Takes the newest rollback back.
pub(crate) struct Undo {
    /// Which one that has to be, if somebody says so.
    pub(crate) expected: Option<String>,
}

impl Operation for Undo {
    type Done = UndoDone;

    fn run(self, on: &Target) -> Result<Outcome<UndoDone>, Trouble> {
        // Nothing else is done to the workspace meanwhile.
        if let Some(expected) = self.expected
            && on
                .backend
                .newest_rollback(&on.peer, &on.workspace.id)?
                .is_some_and(|is| is.operation != expected)
        {
            return Err(RoutingError::AnotherRollback.into());
        }
        let Undone { rollback, outcome } = on.backend.undo(&on.peer, &on.workspace.id)?;
        let (workspace, path) = (on.workspace.id.clone(), on.workspace.path.clone());
        let after = After::RolledBack(LastRollback::of(LastDone::Undone(rollback.clone()), &outcome));
        Ok(Outcome { done: UndoDone { workspace, path, rollback, outcome }, after })
    }
}
