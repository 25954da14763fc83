//! Take a snapshot.

use clap::Args;

use crate::checkpoint::Checkpointed;
use crate::client::failure::Failure;
use crate::client::invocation::{Invocation, workspace};
use crate::client::shown::one_line;
use crate::client::warnings;

#[derive(Args, Debug)]
pub(crate) struct Checkpoint {
    /// The directory, or the id of its workspace
    #[arg(short, long, value_name = "PATH")]
    workspace: String,
    /// The snapshot's name, unique within the workspace
    #[arg(short, long, visible_alias = "snapshot", value_name = "ID")]
    id: String,
    /// Free text to remember it by
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// JSON to keep with it
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Protect it from clean-up, and from deletion without --force
    #[arg(long)]
    pin: bool,
}

impl Checkpoint {
    pub(crate) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        let workspace = workspace(&self.workspace)?;
        let (message, metadata) = (self.message.as_deref(), self.metadata.as_deref());
        match invocation.client.create(&workspace, &self.id, message, metadata, self.pin)? {
            Checkpointed::Created { snapshot_id } => {
                invocation.terminal.print(format_args!("Checkpoint created: {}", one_line(&snapshot_id)))?;
                show_warnings(invocation, &workspace, &snapshot_id);
            }
            Checkpointed::Skipped { reason } => {
                invocation.terminal.warn(format_args!("Skipped: {}", one_line(&reason)))
            }
        }
        Ok(())
    }
}

/// Says what the snapshot does not hold faithfully.
fn show_warnings(invocation: &mut Invocation, workspace: &str, snapshot: &str) {
    let control = invocation.control_within(warnings::BUDGET);
    if let Some(Ok(report)) = control.map(|control| control.warnings(workspace, snapshot)) {
        warnings::show(invocation, &report.warnings, 0);
    }
}
