//! `cofferdam console`: the way into the console, and out of it.

use std::process::ExitCode;

use clap::Args;

use super::Run;
use super::failure::Failure;
use crate::client::arguments::{Connection, Shown};
use crate::client::shown::one_line;

/// What `cofferdam console` is followed by.
#[derive(Args, Debug)]
pub(crate) struct Console {
    /// Print a link to 127.0.0.1 itself, for a browser that does not know the usual link's name. Browsers send what signs them in
    /// there to every server on 127.0.0.1: do not open what an agent serves there in the same browser
    #[arg(long)]
    plain: bool,
    /// Sign all browsers out, and make every link that was printed useless
    #[arg(long, conflicts_with = "plain")]
    sign_out: bool,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    shown: Shown,
}

impl Console {
    /// Prints an address at which a browser gets in, once; or signs all out.
    pub(crate) fn run(&self) -> ExitCode {
        super::run(&self.connection, |run| self.carry_out(run))
    }

    pub(super) fn carry_out(&self, run: &mut Run) -> Result<(), Failure> {
        if self.sign_out { self.sign_out(run) } else { self.print(run) }
    }

    fn print(&self, run: &mut Run) -> Result<(), Failure> {
        let address = run.control.console(self.plain)?;
        if self.plain {
            run.terminal.say(
                "Browsers send what signs them in there to every server on that address: do not open what an agent serves on \
                 it in the same browser.",
            );
        }
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&address)?);
        }
        Ok(run.terminal.print(one_line(&address.url))?)
    }

    fn sign_out(&self, run: &mut Run) -> Result<(), Failure> {
        let out = run.control.sign_out()?;
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&out)?);
        }
        Ok(run.terminal.print(match out.browsers {
            0 => "No browser was signed in.".to_owned(),
            1 => "Signed out: 1 browser.".to_owned(),
            browsers => format!("Signed out: {browsers} browsers."),
        })?)
    }
}
