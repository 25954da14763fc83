//! Remove a snapshot.

use clap::Args;
use cofferdam_protocol::ckpt::WsCkptErrorCode;

use crate::client::failure::Failure;
use crate::client::invocation::{Invocation, workspace};
use crate::client::shown::one_line;

#[derive(Args, Debug)]
pub(crate) struct Delete {
    /// The directory, or the id of its workspace [default: wherever the snapshot is]
    #[arg(short, long, value_name = "PATH")]
    workspace: Option<String>,
    /// The snapshot's name, or the unique beginning of one
    #[arg(short, long, value_name = "ID")]
    snapshot: String,
    /// Also if it is pinned. It goes to the trash then; without this it is gone for good
    #[arg(long)]
    force: bool,
}

impl Delete {
    pub(crate) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        let workspace = self.workspace.as_deref().map(workspace).transpose()?;
        let delete = |invocation: &Invocation, force| {
            invocation.client.delete(workspace.as_deref(), &self.snapshot, force)
        };
        let target = match delete(invocation, self.force) {
            Err(error) if error.code() == Some(WsCkptErrorCode::ConfirmationRequired) => {
                let question =
                    format!("Snapshot '{}' is pinned. Delete it anyway?", one_line(&self.snapshot));
                match invocation.terminal.confirm(&question)? {
                    None => return Err(error.into()),
                    Some(false) => {
                        invocation.terminal.say("Kept.");
                        return Ok(());
                    }
                    Some(true) => delete(invocation, true)?,
                }
            }
            done => done?,
        };
        Ok(invocation.terminal.print(format_args!("Deleted: {}", one_line(&target)))?)
    }
}
