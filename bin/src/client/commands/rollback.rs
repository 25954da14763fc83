//! Give a directory the tree of a snapshot.

use clap::Args;

use crate::client::failure::Failure;
use crate::client::session::{Session, workspace};

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
    pub(crate) fn run(&self, session: &mut Session) -> Result<(), Failure> {
        let done = session.client.restore(&workspace(&self.workspace)?, &self.snapshot)?;
        let text = format!("Rolled back workspace {} to snapshot: {}", done.ws_id, done.snapshot_id);
        Ok(session.terminal.print(text)?)
    }
}
