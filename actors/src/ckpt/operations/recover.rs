//! Unregisters a workspace.

use super::{After, Operation, Outcome, Target};
use crate::ckpt::failure::Trouble;
use crate::ckpt::shown::shown_path;

/// Unregisters the workspace; its directory stays as it is.
pub(crate) struct Recover;

impl Operation for Recover {
    type Done = String;

    fn run(self, on: &Target) -> Result<Outcome<String>, Trouble> {
        on.backend.recover(&on.peer, &on.workspace.id)?;
        Ok(Outcome { done: shown_path(&on.workspace.path), after: After::Gone })
    }
}
