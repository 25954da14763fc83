//! Have the daemon read its configuration file again.

use clap::Args;

use crate::client::failure::Failure;
use crate::client::session::Session;

#[derive(Args, Debug)]
pub(crate) struct Reload {}

impl Reload {
    pub(crate) fn run(&self, session: &mut Session) -> Result<(), Failure> {
        session.client.reload()?;
        Ok(session.terminal.print("Daemon reloaded configuration")?)
    }
}
