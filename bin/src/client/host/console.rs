//! `cofferdam console`: the way into the console.

use std::process::ExitCode;

use clap::Args;

use super::Run;
use super::failure::Failure;
use crate::client::arguments::{Connection, Shown};
use crate::client::shown::one_line;

/// What `cofferdam console` is followed by.
#[derive(Args, Debug)]
pub(crate) struct Console {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    shown: Shown,
}

impl Console {
    /// Prints an address at which a browser gets in, once.
    pub(crate) fn run(&self) -> ExitCode {
        super::run(&self.connection, |run| self.print(run))
    }

    pub(super) fn print(&self, run: &mut Run) -> Result<(), Failure> {
        let address = run.control.console()?;
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&address)?);
        }
        Ok(run.terminal.print(one_line(&address.url))?)
    }
}
