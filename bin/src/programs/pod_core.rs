//! `isolation-pod-core`: the sidecar of an isolation pod host, newline-delimited JSON on stdio.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use cofferdam_protocol::pod::CORE_VERSION;
use cofferdam_storage::{clock, fault};

use crate::pod::{self, Machine};
use crate::terminal::Terminal;

/// Keeps the tasks of an isolation pod
///
/// A host starts it and speaks with it: one JSON value a line, requests on standard input, answers and events on
/// standard output. It ends with the host, or when its input does. The log is on standard error, and in core.log
/// beside the database that the host names.
///
/// It keeps record of tasks and makes their directories. To confine an agent to its directory is up to the host.
#[derive(Debug, Parser)]
#[command(name = "isolation-pod-core", version = CORE_VERSION)]
struct Cli {}

/// The program.
pub fn main() -> ExitCode {
    let Cli {} = Cli::parse();
    let (clock, faster) = clock::from_env();
    let machine = Machine {
        disk: fault::disk_from_env(),
        clock,
        tick: Duration::from_secs(1) / faster,
        surroundings: pod::surroundings(),
    };
    match pod::run(machine) {
        Ok(never) => match never {},
        Err(error) => {
            Terminal::of_process().complain(format_args!("Error: the sidecar cannot be set up: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_has_no_contradictions() {
        Cli::command().debug_assert();
    }

    #[test]
    fn arguments_are_a_usage_error() {
        for word in ["--frobnicate", "word"] {
            let error = Cli::try_parse_from(["isolation-pod-core", word]).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{word}");
        }
    }
}
