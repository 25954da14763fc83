//! Init of a workspace that is registered: takes the directory over if it was replaced.

use cofferdam_storage::ckpt::{Error, WorkspaceState};

use super::{After, Operation, Outcome, Target};
use crate::ckpt::failure::Trouble;

/// Compares the directory with the one that was registered, and takes it over with its snapshots if it is another.
pub(crate) struct Adopt;

impl Operation for Adopt {
    type Done = WorkspaceState;

    fn run(self, on: &Target) -> Result<Outcome<WorkspaceState>, Trouble> {
        let path = &on.workspace.path;
        // Registered paths are canonical. Where one is not any more, another directory would be registered by a name
        // that already means this workspace.
        if on.backend.canonical(&on.peer, path).is_ok_and(|canonical| canonical != *path) {
            let text = format!(
                "{} leads elsewhere by a link now; put the directory back, or run recover to forget it",
                path.display()
            );
            return Err(Error::InvalidPath(text).into());
        }
        let state = on.backend.init(&on.peer, path)?;
        let same_id = state.workspace.id == on.workspace.id;
        // Another id at that path: this registration has ended.
        let after = if same_id { After::State(state.clone()) } else { After::Gone };
        Ok(Outcome { done: state, after })
    }
}
