//! Register a directory.

use clap::Args;

use crate::client::failure::Failure;
use crate::client::invocation::{Invocation, workspace};
use crate::terminal::Colour;

#[derive(Args, Debug)]
pub(crate) struct Init {
    /// The directory
    #[arg(short, long, value_name = "PATH")]
    workspace: String,
}

impl Init {
    pub(crate) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        let id = invocation.client.init(&workspace(&self.workspace)?)?;
        let check = invocation.terminal.paint(Colour::Green, "✓");
        Ok(invocation.terminal.print(format_args!("{check} Workspace initialized: {id}"))?)
    }
}
