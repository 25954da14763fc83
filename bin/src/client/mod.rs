//! The client for people: one verb per file. Those of checkpoints are the same under `cofferdam ckpt` and `ws-ckpt`;
//! those of conversations are in [`session`], those of sandboxed tasks in [`host`].

mod advisory;
mod arguments;
mod commands;
mod failure;
pub(crate) mod host;
mod invocation;
mod moment;
pub(crate) mod session;
mod shown;
mod table;
mod warnings;

use std::process::ExitCode;

use crate::paths::Environment;
use crate::terminal::Terminal;

pub(crate) use arguments::{Connection, Verb, parse_timeout};
use failure::Failure;
use invocation::Invocation;

/// Carries one verb out. `program` is what the user typed to get here, for hints.
pub(crate) fn run(program: &'static str, connection: &Connection, verb: &Verb) -> ExitCode {
    let invocation = Invocation::new(program, connection, Environment::of_process(), Terminal::of_process());
    ExitCode::from(run_in(invocation, verb))
}

/// The exit code: 0 for done, declined and skipped, 1 for everything that went wrong.
fn run_in(mut invocation: Invocation, verb: &Verb) -> u8 {
    match verb.run(&mut invocation) {
        Ok(()) => {
            advisory::show(&mut invocation);
            0
        }
        Err(failure) if failure.is_closed_pipe() => 0,
        Err(failure) => {
            failure.explain(verb, &mut invocation);
            1
        }
    }
}

#[cfg(test)]
mod tests;
