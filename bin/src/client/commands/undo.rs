//! Take the newest rollback back.

use clap::Args;

use super::checkpoint;
use crate::client::failure::Failure;
use crate::client::session::{Session, workspace};

#[derive(Args, Debug)]
pub(crate) struct Undo {
    /// The directory, or the id of its workspace
    #[arg(short, long, value_name = "PATH")]
    workspace: String,
}

impl Undo {
    pub(crate) fn run(&self, session: &mut Session) -> Result<(), Failure> {
        let done = session.control()?.undo(&workspace(&self.workspace)?)?;
        session.terminal.print(format_args!(
            "Undid the last rollback of workspace {}: {} path(s) changed",
            done.workspace, done.changed
        ))?;
        checkpoint::show(session, &done.warnings);
        Ok(())
    }
}
