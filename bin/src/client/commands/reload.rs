//! Have the daemon read its configuration file again.

use clap::Args;

use crate::client::failure::Failure;
use crate::client::invocation::Invocation;

#[derive(Args, Debug)]
pub(crate) struct Reload {}

impl Reload {
    pub(crate) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        invocation.client.reload()?;
        Ok(invocation.terminal.print("Daemon reloaded configuration")?)
    }
}
