//! `cofferdam pod-supervisor`: confines one agent, and is there until nothing of it is left. Started by the daemon, which
//! speaks with it through standard input; never by people.

use std::process::ExitCode;

use cofferdam_storage::sandbox::supervise;

use crate::terminal::Terminal;

/// The program.
pub(super) fn run() -> ExitCode {
    match supervise(std::io::stdin()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            Terminal::of_process()
                .complain(format_args!("Error: {failure}; cofferdam serve starts this program"));
            ExitCode::FAILURE
        }
    }
}
