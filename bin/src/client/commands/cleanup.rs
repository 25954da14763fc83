//! Remove old snapshots.

use clap::Args;

use crate::client::failure::Failure;
use crate::client::invocation::{Invocation, workspace};
use crate::client::shown::one_line;

#[derive(Args, Debug)]
pub(crate) struct Cleanup {
    /// The directory, or the id of its workspace
    #[arg(short, long, value_name = "PATH")]
    workspace: String,
    /// How many to keep beside the pinned ones
    #[arg(long, value_name = "N", default_value_t = 20)]
    keep: u32,
}

impl Cleanup {
    pub(crate) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        let removed = invocation.client.cleanup(&workspace(&self.workspace)?, Some(self.keep))?;
        if removed.is_empty() {
            return Ok(invocation.terminal.print("No snapshots needed cleanup.")?);
        }
        let mut text = format!("Removed {} snapshot(s):", removed.len());
        for id in &removed {
            text.push_str("\n  ");
            text.push_str(&one_line(id));
        }
        Ok(invocation.terminal.print(text)?)
    }
}
