//! Stop looking after a directory.

use clap::Args;

use crate::client::failure::Failure;
use crate::client::invocation::{Invocation, workspace};
use crate::client::shown::one_line;

#[derive(Args, Debug)]
pub(crate) struct Recover {
    /// The directory, or the id of its workspace
    #[arg(short, long, value_name = "PATH", required_unless_present = "all", conflicts_with = "all")]
    workspace: Option<String>,
    /// Every workspace
    #[arg(long)]
    all: bool,
    /// Do not ask
    #[arg(long)]
    force: bool,
}

impl Recover {
    pub(crate) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        match &self.workspace {
            Some(argument) => {
                let workspace = workspace(argument)?;
                if self.consent(invocation, &format!("workspace {}", one_line(&workspace)))? {
                    let path = invocation.client.recover(&workspace)?;
                    show(invocation, &path)?;
                }
                Ok(())
            }
            None => self.recover_all(invocation),
        }
    }

    fn recover_all(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        let workspaces = invocation.client.status(None)?.workspaces;
        if workspaces.is_empty() {
            return Ok(invocation.terminal.print("No workspaces to recover.")?);
        }
        if !self.consent(invocation, &format!("all {} workspace(s)", workspaces.len()))? {
            return Ok(());
        }
        let mut failed = 0;
        for workspace in &workspaces {
            match invocation.client.recover(&workspace.ws_id) {
                Ok(path) => show(invocation, &path)?,
                Err(error) => {
                    failed += 1;
                    let path = one_line(&workspace.path);
                    invocation.terminal.complain(format_args!("Not recovered: {path}: {error}"));
                }
            }
        }
        if failed == 0 {
            return Ok(());
        }
        invocation
            .terminal
            .complain(format_args!("{failed} of {} workspace(s) were not recovered", workspaces.len()));
        Err(Failure::Shown)
    }

    /// Whether to go on: by --force, or by what somebody at the terminal says.
    fn consent(&self, invocation: &mut Invocation, what: &str) -> Result<bool, Failure> {
        if self.force {
            return Ok(true);
        }
        let question = format!(
            "Stop looking after {what}? The files stay as they are; the snapshots go to the trash, where they can be \
             had back for 7 days."
        );
        match invocation.terminal.confirm(&question)? {
            Some(consent) => {
                if !consent {
                    invocation.terminal.say("Nothing was done.");
                }
                Ok(consent)
            }
            None => Err(Failure::Said(
                "recover asks first, and nobody is there to answer; use --force".to_owned(),
            )),
        }
    }
}

fn show(invocation: &mut Invocation, path: &str) -> Result<(), Failure> {
    Ok(invocation.terminal.print(format_args!("Recovered: {}", one_line(path)))?)
}
