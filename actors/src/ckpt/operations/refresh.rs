//! Reads what the catalog says about the workspace again.

use super::{Operation, Outcome, Target};
use crate::ckpt::failure::Trouble;

/// Reads what the catalog says about the workspace again: a read or a check may have found snapshots damaged.
pub(crate) struct Refresh;

impl Operation for Refresh {
    type Done = ();

    fn run(self, on: &Target) -> Result<Outcome<()>, Trouble> {
        Ok(Outcome { done: (), after: on.read_again()? })
    }
}
