//! Completion scripts and manual pages, made from the command line's own description.

use std::io;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

use crate::terminal::Terminal;

/// Prints a completion script.
pub(super) fn completions(command: Command, shell: Shell) -> ExitCode {
    print(&script(command, shell))
}

/// Prints the manual page of the command that `path` names, or of the program.
pub(super) fn page(command: Command, path: &[String]) -> ExitCode {
    match manual(command, path) {
        Ok(Some(text)) => print(&text),
        Ok(None) => {
            Terminal::of_process().complain(format_args!("Error: there is no command '{}'", path.join(" ")));
            ExitCode::from(2)
        }
        Err(error) => failed(&error),
    }
}

fn script(mut command: Command, shell: Shell) -> String {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

fn manual(mut command: Command, path: &[String]) -> io::Result<Option<String>> {
    // Gives every command its full name, such as `cofferdam ckpt list`.
    command.build();
    let mut found = &command;
    for name in path {
        match found.find_subcommand(name) {
            Some(next) => found = next,
            None => return Ok(None),
        }
    }
    let source = command.render_version();
    let mut text = Vec::new();
    clap_mangen::Man::new(found.clone()).source(source.trim_end()).render(&mut text)?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

fn print(text: &str) -> ExitCode {
    match Terminal::of_process().print(text.trim_end()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => failed(&error),
        _ => ExitCode::SUCCESS,
    }
}

fn failed(error: &io::Error) -> ExitCode {
    Terminal::of_process().complain(format_args!("Error: {error}"));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    fn command() -> Command {
        Command::new("cofferdam")
            .version("1.2")
            .subcommand(Command::new("ckpt").subcommand(Command::new("rollback")))
    }

    #[test]
    fn a_page_is_found_by_the_words_of_its_command() {
        let page = |path: &[&str]| {
            let path: Vec<String> = path.iter().map(|word| (*word).to_owned()).collect();
            manual(command(), &path).unwrap()
        };
        assert!(page(&[]).unwrap().contains(".TH cofferdam 1"));
        assert!(
            page(&["ckpt", "rollback"]).unwrap().contains(".TH cofferdam-ckpt-rollback 1  \"cofferdam 1.2\"")
        );
        assert_eq!(page(&["ckpt", "frobnicate"]), None);
    }

    #[test]
    fn every_shell_gets_a_script_that_knows_the_program() {
        for shell in Shell::value_variants() {
            assert!(script(command(), *shell).contains("rollback"), "{shell}");
        }
    }
}
