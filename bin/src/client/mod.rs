//! The client for people: one verb per file, the same under `cofferdam ckpt` and `ws-ckpt`.

mod advisory;
mod arguments;
mod commands;
mod failure;
mod session;
mod shown;
mod table;
mod warnings;

use std::process::ExitCode;

use crate::paths::Environment;
use crate::terminal::Terminal;

pub(crate) use arguments::{Connection, Verb, parse_timeout};
use failure::Failure;
use session::Session;

/// Carries one verb out. `program` is what the user typed to get here, for hints.
pub(crate) fn run(program: &'static str, connection: &Connection, verb: &Verb) -> ExitCode {
    let session = Session::new(program, connection, Environment::of_process(), Terminal::of_process());
    ExitCode::from(run_in(session, verb))
}

/// The exit code: 0 for done, declined and skipped, 1 for everything that went wrong.
fn run_in(mut session: Session, verb: &Verb) -> u8 {
    match verb.run(&mut session) {
        Ok(()) => {
            advisory::show(&mut session);
            0
        }
        Err(failure) if failure.is_closed_pipe() => 0,
        Err(failure) => {
            failure.explain(verb, &mut session);
            1
        }
    }
}

#[cfg(test)]
mod tests;
