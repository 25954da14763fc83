//! `cofferdam session`: stored conversations for people, one verb per file.

mod clear;
mod export;
mod failure;
mod list;
mod management;
mod show;
mod validate;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::paths::Environment;
use crate::terminal::Terminal;
use failure::Failure;

/// What `cofferdam session` is followed by.
#[derive(Args, Debug)]
pub(crate) struct Session {
    /// The workspace [default: the current directory]
    #[arg(short, long, global = true, value_name = "PATH")]
    workspace: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

/// What can be done with stored conversations.
#[derive(Debug, Subcommand)]
enum Verb {
    /// List conversations, newest first
    List(list::List),
    /// Show what is known of a conversation, whatever state its file is in
    Show(show::Show),
    /// Check whether a conversation can be resumed
    Validate(validate::Validate),
    /// Remove conversations for good
    Clear(clear::Clear),
    /// Print a conversation as Markdown or JSON, without secrets
    Export(export::Export),
}

/// One run of a verb.
struct Run {
    terminal: Terminal,
    environment: Environment,
    /// Absolute, its links not followed: the store does that.
    workspace: PathBuf,
}

impl Session {
    /// Carries the verb out. The exit code: 0 for done and declined, 1 for everything that went wrong.
    pub(crate) fn run(&self) -> ExitCode {
        let mut terminal = Terminal::of_process();
        let workspace = match std::path::absolute(self.workspace.as_deref().unwrap_or(Path::new("."))) {
            Ok(workspace) => workspace,
            Err(error) => {
                terminal.complain(format_args!("Error: the workspace cannot be named: {error}"));
                return ExitCode::FAILURE;
            }
        };
        let mut run = Run { terminal, environment: Environment::of_process(), workspace };
        match self.verb.run(&mut run) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
            Err(failure) => {
                failure.explain(&mut run.terminal);
                ExitCode::FAILURE
            }
        }
    }
}

impl Verb {
    fn run(&self, run: &mut Run) -> Result<(), Failure> {
        match self {
            Self::List(verb) => verb.run(run),
            Self::Show(verb) => verb.run(run),
            Self::Validate(verb) => verb.run(run),
            Self::Clear(verb) => verb.run(run),
            Self::Export(verb) => verb.run(run),
        }
    }
}

impl Run {
    /// The workspace as the protocol names it.
    fn workspace(&self) -> Result<String, Failure> {
        if let Err(error) = std::fs::metadata(&self.workspace)
            && error.kind() == std::io::ErrorKind::NotFound
        {
            let path = self.workspace.display();
            return Err(Failure::Said(format!("there is no directory {path}; -w names the workspace")));
        }
        let said = || {
            Failure::Said(format!("{} is not UTF-8; the protocol cannot name it", self.workspace.display()))
        };
        self.workspace.to_str().map(str::to_owned).ok_or_else(said)
    }
}
