//! The agent `cosh`: `cosh-core --headless`, one process per turn, that resumes the task's stored conversation and stores it
//! again.
//!
//! - `seed`: what is put into the private home for a turn, and what comes back of it;
//! - `talk`: what is said with the program, line by line; `tools`: its names for tools;
//! - `recovery`: which conversation a turn resumes, and what its end means for that;
//! - `turn`: a turn, from what the agent is told to what it ended with.

mod recovery;
mod seed;
mod talk;
#[cfg(test)]
mod tests;
mod tools;
mod turn;

use std::path::PathBuf;

use cofferdam_storage::pod::presets::{BrokenPreset, CommandPreset};

pub(super) use recovery::Recovery;
pub(super) use talk::Talk;

/// Its id.
pub const COSH: &str = "cosh";

/// The variables that it takes its settings from, besides files.
const VARS: [&str; 2] = ["COSH_AI_PROVIDER", "COSH_MODEL"];

/// The program that holds the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreProgram {
    /// Where it is: absolute, without links.
    pub path: PathBuf,
    /// What comes before its arguments, if it has other parts to play.
    pub part: Option<&'static str>,
}

/// The preset that is always listed, and can be used if the program was found; else the text says why it was not.
#[derive(Clone, Debug)]
pub struct Cosh(pub Result<CoreProgram, String>);

impl Cosh {
    /// What people are shown of it, and what its turns have in common with those of other programs.
    pub(super) fn preset(&self) -> Result<CommandPreset, BrokenPreset> {
        if let Err(why) = &self.0 {
            return Err(BrokenPreset { id: COSH.to_owned(), why: why.clone() });
        }
        Ok(CommandPreset {
            id: COSH.to_owned(),
            name: "cosh agent".to_owned(),
            // How it is started does not depend on the turn, and is made out by `turn`.
            argv_follow_up: Some(Vec::new()),
            env: VARS.map(str::to_owned).to_vec(),
            ..CommandPreset::default()
        })
    }
}
