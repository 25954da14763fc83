//! `cosh-core`: manages stored conversations, and holds one.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser};
use cofferdam_actors::session::conversation::Options;

use crate::logging;
use crate::session::{self, control, headless, variable};
use crate::terminal::Terminal;

/// Keeps the conversations of an agent
#[derive(Debug, Parser)]
#[command(name = "cosh-core", version)]
struct Cli {
    #[command(flatten)]
    arguments: Arguments,
}

/// What the program can be asked to do.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Carry out one request: JSON on standard input, one line on standard output
    #[arg(long, conflicts_with_all = ["headless", "resume", "model", "bare", "tools", "prompt"])]
    session_control: bool,
    /// Hold a conversation: JSON lines on standard input and output. So it is, too, if standard input is no terminal
    #[arg(long)]
    headless: bool,
    /// The workspace whose conversations and settings these are [default: the current directory]
    #[arg(long, value_name = "PATH")]
    workspace: Option<PathBuf>,
    /// The conversation to go on with
    #[arg(long, value_name = "ID")]
    resume: Option<String>,
    /// The model, before any that the settings or the stored conversation name
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Without the workspace's settings, and without keeping anything
    #[arg(long)]
    bare: bool,
    /// The tools that may be called, separated by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tools: Option<Vec<String>>,
    /// One message: the program answers it and ends. Without it messages come on standard input
    prompt: Option<String>,
    #[command(flatten)]
    accepted: Accepted,
}

/// What the existing program understands and this one has no use for: there is one format, and every call of a tool is
/// asked for.
#[derive(Args, Debug)]
struct Accepted {
    #[arg(long, hide = true)]
    approval_mode: Option<String>,
    #[arg(long, hide = true, value_delimiter = ',')]
    allowed_tools: Option<Vec<String>>,
    #[arg(long, hide = true)]
    output_format: Option<String>,
    #[arg(long, hide = true)]
    input_format: Option<String>,
    #[arg(long, hide = true)]
    include_partial_messages: bool,
    #[arg(long, hide = true)]
    verbose: bool,
    #[arg(long, hide = true)]
    enable_shell_evidence_tool: bool,
}

/// The program.
pub fn main() -> ExitCode {
    run(Cli::parse().arguments)
}

/// Does what the arguments ask for.
pub(super) fn run(arguments: Arguments) -> ExitCode {
    let Arguments { session_control, headless, workspace, resume, model, bare, tools, prompt, accepted: _ } =
        arguments;
    if session_control {
        return control::run(session::parts());
    }
    match prompt.as_deref() {
        Some("help") => return help(),
        Some(word @ "mcp") => usage(format_args!("there is no subcommand {word} here")),
        _ if !headless && io::stdin().is_terminal() => {
            usage("a conversation with a person is not held here; use --headless or --session-control");
        }
        _ => {}
    }
    logging::start("warn");
    let options = Options {
        // The kernel's word for the current directory, should its name not be known.
        workspace: workspace.or_else(|| std::env::current_dir().ok()).unwrap_or_else(|| PathBuf::from(".")),
        resume,
        model,
        environment_model: variable("COSH_MODEL"),
        bare,
        tools,
        prompt,
    };
    match headless::run(session::parts(), options) {
        Ok(never) => match never {},
        Err(error) => {
            Terminal::of_process().complain(format_args!("Error: no conversation can be held: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn help() -> ExitCode {
    match Terminal::of_process().print(Cli::command().render_help()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Ends the program because of its arguments.
fn usage(why: impl std::fmt::Display) -> ! {
    Cli::command().error(ErrorKind::InvalidValue, why).exit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Arguments, i32> {
        let words = std::iter::once("cosh-core").chain(words.iter().copied());
        Cli::try_parse_from(words).map(|cli| cli.arguments).map_err(|error| error.exit_code())
    }

    #[test]
    fn the_command_line_has_no_contradictions() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_and_prompt_come_in_any_order() {
        let arguments =
            parse(&["a prompt", "--headless", "--resume", "", "--workspace", "/w", "--bare"]).unwrap();
        assert!(arguments.headless && arguments.bare);
        assert_eq!(arguments.prompt.as_deref(), Some("a prompt"));
        assert_eq!(arguments.resume.as_deref(), Some(""));
        assert_eq!(arguments.workspace, Some(PathBuf::from("/w")));
        let arguments = parse(&["--headless", "--tools", "a,b", "--", "-x"]).unwrap();
        assert_eq!(arguments.prompt.as_deref(), Some("-x"));
        assert_eq!(arguments.tools, Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(parse(&["--headless", ""]).unwrap().prompt.as_deref(), Some(""));
    }

    #[test]
    fn what_the_existing_program_understands_is_accepted() {
        for words in [
            &[
                "--output-format",
                "stream-json",
                "--input-format",
                "stream-json",
                "--include-partial-messages",
            ][..],
            &["--approval-mode", "auto", "--allowed-tools", "shell,edit", "--verbose"],
            &["--enable-shell-evidence-tool"],
        ] {
            assert!(parse(words).is_ok(), "{words:?}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_a_usage_error() {
        for words in [
            &["--frobnicate"][..],
            &["one", "two"],
            &["-x"],
            &["--resume"],
            &["--session-control", "--headless"],
            &["--session-control", "prompt"],
        ] {
            assert_eq!(parse(words).err(), Some(2), "{words:?}");
        }
    }
}
