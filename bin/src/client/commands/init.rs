//! Register a directory.

use clap::Args;

use crate::client::failure::Failure;
use crate::client::session::{Session, workspace};
use crate::terminal::Colour;

#[derive(Args, Debug)]
pub(crate) struct Init {
    /// The directory
    #[arg(short, long, value_name = "PATH")]
    workspace: String,
}

impl Init {
    pub(crate) fn run(&self, session: &mut Session) -> Result<(), Failure> {
        let id = session.client.init(&workspace(&self.workspace)?)?;
        let check = session.terminal.paint(Colour::Green, "✓");
        Ok(session.terminal.print(format_args!("{check} Workspace initialized: {id}"))?)
    }
}
