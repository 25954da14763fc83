//! Reads a new workspace's tree before anybody asks for it.

use super::{Operation, Outcome, Target};
use crate::ckpt::failure::Trouble;

/// Reads the tree into the store, so that the first checkpoint need not.
pub(crate) struct Prime;

impl Operation for Prime {
    type Done = ();

    fn run(self, on: &Target) -> Result<Outcome<()>, Trouble> {
        on.backend.prime(&on.peer, &on.workspace.id)?;
        Ok(Outcome::same(()))
    }
}
