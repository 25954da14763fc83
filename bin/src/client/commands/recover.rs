//! Stop looking after a directory.

use clap::Args;

use crate::client::failure::Failure;
use crate::client::session::{Session, workspace};
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
    pub(crate) fn run(&self, session: &mut Session) -> Result<(), Failure> {
        match &self.workspace {
            Some(argument) => {
                let workspace = workspace(argument)?;
                if self.consent(session, &format!("workspace {}", one_line(&workspace)))? {
                    let path = session.client.recover(&workspace)?;
                    show(session, &path)?;
                }
                Ok(())
            }
            None => self.recover_all(session),
        }
    }

    fn recover_all(&self, session: &mut Session) -> Result<(), Failure> {
        let workspaces = session.client.status(None)?.workspaces;
        if workspaces.is_empty() {
            return Ok(session.terminal.print("No workspaces to recover.")?);
        }
        if !self.consent(session, &format!("all {} workspace(s)", workspaces.len()))? {
            return Ok(());
        }
        let mut failed = 0;
        for workspace in &workspaces {
            match session.client.recover(&workspace.ws_id) {
                Ok(path) => show(session, &path)?,
                Err(error) => {
                    failed += 1;
                    let path = one_line(&workspace.path);
                    session.terminal.complain(format_args!("Not recovered: {path}: {error}"));
                }
            }
        }
        if failed == 0 {
            return Ok(());
        }
        session
            .terminal
            .complain(format_args!("{failed} of {} workspace(s) were not recovered", workspaces.len()));
        Err(Failure::Shown)
    }

    /// Whether to go on: by --force, or by what somebody at the terminal says.
    fn consent(&self, session: &mut Session, what: &str) -> Result<bool, Failure> {
        if self.force {
            return Ok(true);
        }
        let question = format!(
            "Stop looking after {what}? The files stay as they are; the snapshots are no longer to be had, and their \
             data is removed after 7 days."
        );
        match session.terminal.confirm(&question)? {
            Some(consent) => {
                if !consent {
                    session.terminal.say("Nothing was done.");
                }
                Ok(consent)
            }
            None => Err(Failure::Said(
                "recover asks first, and nobody is there to answer; use --force".to_owned(),
            )),
        }
    }
}

fn show(session: &mut Session, path: &str) -> Result<(), Failure> {
    Ok(session.terminal.print(format_args!("Recovered: {}", one_line(path)))?)
}
