//! Take the newest rollback back.

use clap::Args;

use crate::client::failure::Failure;
use crate::client::invocation::{Invocation, workspace};
use crate::client::warnings;

#[derive(Args, Debug)]
pub(crate) struct Undo {
    /// The directory, or the id of its workspace
    #[arg(short, long, value_name = "PATH")]
    workspace: String,
}

impl Undo {
    pub(crate) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        let done = invocation.control()?.undo(&workspace(&self.workspace)?)?;
        invocation.terminal.print(format_args!(
            "Undid the last rollback of workspace {}: {} path(s) changed",
            done.workspace, done.changed
        ))?;
        warnings::show(invocation, &done.warnings, 0);
        Ok(())
    }
}
