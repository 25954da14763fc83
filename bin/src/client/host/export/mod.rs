//! `cofferdam export`: files that leave a task's directory, a file per verb.

mod create;
mod list;
mod undo;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::Run;
use super::failure::Failure;
use crate::client::arguments::Connection;

/// What `cofferdam export` is followed by.
#[derive(Args, Debug)]
pub(crate) struct Export {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Copy or move files of a task to a directory outside of the sandbox
    Create(create::Create),
    /// List exports, newest first
    List(list::List),
    /// Remove what an export wrote, and bring back what it replaced
    Undo(undo::Undo),
}

impl Export {
    /// Carries the verb out.
    pub(crate) fn run(&self) -> ExitCode {
        super::run(&self.connection, |run| self.verb.run(run))
    }
}

impl Verb {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        match self {
            Self::Create(verb) => verb.run(run),
            Self::List(verb) => verb.run(run),
            Self::Undo(verb) => verb.run(run),
        }
    }
}
