//! Take the newest rollback back.

use clap::Args;

use crate::client::failure::Failure;
use crate::client::session::{Session, workspace};
use crate::client::warnings;

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
        warnings::show(session, &done.warnings, 0);
        Ok(())
    }
}
