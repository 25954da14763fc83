//! Give a directory the tree of a snapshot.

use clap::Args;

use crate::checkpoint::Restored;
use crate::client::failure::Failure;
use crate::client::invocation::{Invocation, workspace};
use crate::client::shown::one_line;
use crate::client::warnings;

#[derive(Args, Debug)]
pub(crate) struct Rollback {
    /// The directory, or the id of its workspace
    #[arg(short, long, value_name = "PATH")]
    workspace: String,
    /// The snapshot's name, or the unique beginning of one
    #[arg(short, long, value_name = "ID")]
    snapshot: String,
}

impl Rollback {
    pub(crate) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        let done = invocation.client.restore(&workspace(&self.workspace)?, &self.snapshot)?;
        let (workspace, snapshot) = (one_line(&done.ws_id), one_line(&done.snapshot_id));
        invocation
            .terminal
            .print(format_args!("Rolled back workspace {workspace} to snapshot: {snapshot}"))?;
        show_outcome(invocation, &done);
        Ok(())
    }
}

/// Says, beside the result, how much it changed and what could not be as it should.
fn show_outcome(invocation: &mut Invocation, done: &Restored) {
    let control = invocation.control_within(warnings::BUDGET);
    let Some(Ok(Some(last))) = control.map(|control| control.last_rollback(&done.ws_id)) else { return };
    // Another one may have come since.
    if last.snapshot.as_ref() == Some(&done.snapshot_id)
        && let Some(changed) = last.changed
    {
        invocation.terminal.say(format_args!("{changed} path(s) changed"));
        warnings::show(invocation, &last.warnings, last.omitted);
    }
}
