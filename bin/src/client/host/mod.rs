//! Sandboxed tasks for people: `cofferdam task`, `export`, `main`, `config` and `console`, one verb per file. Everything goes
//! over the daemon's control API.

mod again;
mod attach;
mod config;
mod console;
mod entry;
mod export;
mod failure;
mod find;
mod follow;
mod paths;
mod task;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

pub(crate) use attach::Main;
pub(crate) use config::Config;
pub(crate) use console::Console;
pub(crate) use export::Export;
pub(crate) use task::Task;

use super::arguments::Connection;
use super::invocation::Invocation;
use crate::control::ControlClient;
use crate::paths::Environment;
use crate::terminal::Terminal;
use failure::Failure;

/// One run of a verb.
struct Run {
    terminal: Terminal,
    control: ControlClient,
}

/// Carries a verb out. The exit code: 0 for done and declined, 1 for everything that went wrong, and for verbs that wait for
/// a task what became of that.
fn run(connection: &Connection, verb: impl FnOnce(&mut Run) -> Result<(), Failure>) -> ExitCode {
    ExitCode::from(run_in(connection, Environment::of_process(), Terminal::of_process(), verb))
}

fn run_in(
    connection: &Connection,
    environment: Environment,
    terminal: Terminal,
    verb: impl FnOnce(&mut Run) -> Result<(), Failure>,
) -> u8 {
    let mut invocation = Invocation::new("cofferdam", connection, environment, terminal);
    let control = match invocation.control() {
        Ok(control) => control,
        Err(error) => return Failure::Said(error.to_string()).explain(&mut invocation.terminal),
    };
    let mut run = Run { terminal: invocation.terminal, control };
    match verb(&mut run) {
        Ok(()) => 0,
        Err(failure) => failure.explain(&mut run.terminal),
    }
}

impl Run {
    /// Asks for consent. Nobody gives it where nobody is: there, `--yes` does.
    fn consent(&mut self, yes: bool, question: &str) -> Result<bool, Failure> {
        if yes {
            return Ok(true);
        }
        if !self.terminal.is_interactive() {
            return Err(Failure::Said("nobody is here to confirm it; --yes does".to_owned()));
        }
        Ok(self.terminal.confirm(question)? == Some(true))
    }
}
