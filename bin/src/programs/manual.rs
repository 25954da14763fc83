//! Completion scripts and manual pages, made from the command line's own description.

use std::io;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

use crate::terminal::Terminal;

/// Prints a completion script.
pub(super) fn completions(mut command: Command, shell: Shell) -> ExitCode {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    print(&script)
}

/// Prints the manual page of the command that `path` names, or of the program.
pub(super) fn page(mut command: Command, path: &[String]) -> ExitCode {
    // Gives every command its full name, such as `cofferdam ckpt list`.
    command.build();
    let mut found = &command;
    for name in path {
        let Some(next) = found.find_subcommand(name) else {
            Terminal::of_process().complain(format_args!("Error: there is no command '{}'", path.join(" ")));
            return ExitCode::from(2);
        };
        found = next;
    }
    let mut text = Vec::new();
    match clap_mangen::Man::new(found.clone()).render(&mut text) {
        Ok(()) => print(&text),
        Err(error) => failed(&error),
    }
}

fn print(text: &[u8]) -> ExitCode {
    let text = String::from_utf8_lossy(text);
    match Terminal::of_process().print(text.trim_end()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => failed(&error),
        _ => ExitCode::SUCCESS,
    }
}

fn failed(error: &io::Error) -> ExitCode {
    Terminal::of_process().complain(format_args!("Error: {error}"));
    ExitCode::FAILURE
}
