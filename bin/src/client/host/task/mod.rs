//! `cofferdam task`: a file per verb.

mod cancel;
pub(super) mod clean;
mod files;
mod list;
mod logs;
mod open;
mod presets;
mod read;
mod resume;
mod returning;
mod rewind;
mod show;
mod start;
mod tell;
mod turns;

pub(super) use list::moment;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::Run;
use super::failure::Failure;
use crate::client::arguments::Connection;
use crate::terminal::Terminal;

/// What `cofferdam task` is followed by.
#[derive(Args, Debug)]
pub(crate) struct Task {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

/// What can be done with tasks. The beginning of a task's id is enough to name it.
#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Start a task in a directory of its own, or queue it
    Run(start::Start),
    /// Show with which agents tasks can be started, or a sample of more
    Presets(presets::Presets),
    /// List tasks, newest first
    List(list::List),
    /// Show what is known of a task
    Show(show::Show),
    /// Cancel the turn that runs, or a queued task
    Cancel(cancel::Cancel),
    /// Give an ended task its agent again
    Resume(resume::Resume),
    /// Give a task's agent something more to do
    Tell(tell::Tell),
    /// Show a task, and give it its agent again if autoResumeOnOpen says so
    Open(open::Open),
    /// Print what a task's agent said and did
    Logs(logs::Logs),
    /// List the turns of a task, and which of them can be gone back to
    Turns(turns::Turns),
    /// Bring a task back to what it was before a turn, or take that back
    Rewind(rewind::Rewind),
    /// List the files of a task
    Files(files::Files),
    /// Print the beginning of a file of a task
    Read(read::Read),
    /// Tell a main session what a task found, once it is attached: cofferdam main attach
    Return(returning::Return),
    /// Remove tasks, their files, or both
    Clean(clean::Clean),
}

impl Task {
    /// Carries the verb out.
    pub(crate) fn run(&self) -> ExitCode {
        if let Verb::Presets(presets) = &self.verb {
            let mut terminal = Terminal::of_process();
            if let Some(printed) = presets.sample(&mut terminal) {
                return printed
                    .map_or_else(|failure| failure.explain(&mut terminal).into(), |()| ExitCode::SUCCESS);
            }
        }
        super::run(&self.connection, |run| self.verb.run(run))
    }
}

impl Verb {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        match self {
            Self::Run(verb) => verb.run(run),
            Self::Presets(verb) => verb.run(run),
            Self::List(verb) => verb.run(run),
            Self::Show(verb) => verb.run(run),
            Self::Cancel(verb) => verb.run(run),
            Self::Resume(verb) => verb.run(run),
            Self::Tell(verb) => verb.run(run),
            Self::Open(verb) => verb.run(run),
            Self::Logs(verb) => verb.run(run),
            Self::Turns(verb) => verb.run(run),
            Self::Rewind(verb) => verb.run(run),
            Self::Files(verb) => verb.run(run),
            Self::Read(verb) => verb.run(run),
            Self::Return(verb) => verb.run(run),
            Self::Clean(verb) => verb.run(run),
        }
    }
}

/// The most bytes of what an agent is told.
const MOST_WORDS: usize = 64 << 10;

/// What an agent is told: the argument, or what comes through the standard input if that is `-`.
fn words(given: &str, terminal: &mut Terminal) -> Result<String, Failure> {
    let text = match given {
        "-" => String::from_utf8(terminal.read_all(MOST_WORDS)?)
            .map_err(|_| Failure::Said("what comes through the standard input is not UTF-8".to_owned()))?,
        given => given.to_owned(),
    };
    match text.trim() {
        "" => Err(Failure::Said("there is nothing to tell the agent; write what it is to do".to_owned())),
        _ if text.len() > MOST_WORDS => {
            Err(Failure::Said("an agent can be told 64 KiB at most; put the rest into a file".to_owned()))
        }
        _ => Ok(text),
    }
}
