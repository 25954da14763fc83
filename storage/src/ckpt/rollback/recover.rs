//! Ending what a crash cut short.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use cofferdam_protocol::ckpt::WorkspaceId;

use super::journal::{self, Contents, How, Journal, Verdict};
use super::operation::Operation;
use super::switch::Rule;
use super::{Outcome, Workspaces};
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::ObjectSource;
use crate::ckpt::model::Warning;
use crate::disk::Disk;
use crate::fs::FileIdentity;
use crate::path::RelPath;

/// What became of one journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The workspace it names; `None` if the journal cannot be read.
    pub workspace: Option<WorkspaceId>,
    /// The operation.
    pub op: String,
    /// How it ended; the error text if it is still pending.
    pub outcome: std::result::Result<Outcome, String>,
    /// Whether a full disk is why it is still pending.
    pub no_space: bool,
    /// Newer things that were found and kept.
    pub warnings: Vec<Warning>,
}

/// Finishes or takes back every rollback that a journal in the directory names, or only those of one workspace.
/// Idempotent: it may be cut short anywhere and run again.
///
/// Must run when the store is opened, and before any operation on a workspace that [`pending`] names.
pub fn recover(
    disk: &Disk,
    journal: BorrowedFd<'_>,
    source: &dyn ObjectSource,
    only: Option<&WorkspaceId>,
    workspaces: &mut dyn Workspaces,
) -> Result<Vec<Recovered>> {
    let mut all = Vec::new();
    for op in operations(journal)? {
        let mut warnings = Vec::new();
        let (workspace, outcome) = match journal::read(journal, &op) {
            Ok(Some(contents)) => {
                let workspace = contents.begin.workspace.clone();
                if only.is_some_and(|only| *only != workspace) {
                    continue;
                }
                let recovery = Recovery { disk, journal, source, op: &op, contents: &contents };
                (Some(workspace), recovery.run(workspaces, &mut warnings))
            }
            // Whose these are nobody knows.
            Ok(None) | Err(_) if only.is_some() => continue,
            // It had touched nothing.
            Ok(None) => {
                let removed = journal::remove(disk, journal, &op);
                (None, removed.context(|| "remove the journal".to_owned()).map(|()| Outcome::TakenBack))
            }
            Err(error) => (None, Err(error)),
        };
        let no_space = matches!(outcome, Err(Error::NoSpace { .. }));
        let outcome = outcome.map_err(|error| error.to_string());
        all.push(Recovered { workspace, op, outcome, no_space, warnings });
    }
    Ok(all)
}

struct Recovery<'a> {
    disk: &'a Disk,
    journal: BorrowedFd<'a>,
    source: &'a dyn ObjectSource,
    op: &'a str,
    contents: &'a Contents,
}

impl Recovery<'_> {
    fn run(&self, workspaces: &mut dyn Workspaces, warnings: &mut Vec<Warning>) -> Result<Outcome> {
        let Self { disk, op, .. } = *self;
        let Contents { begin, switch, verdict } = self.contents;
        let step = |name: &str| disk.step(name).context(|| format!("recover rollback {op}"));
        step("recovery.begun")?;
        let Some(root) = workspaces.open(&begin.workspace, &begin.path)? else {
            return Err(Error::WorkspaceGone(begin.path.clone()));
        };
        if root.identity().context(|| "look at the workspace".to_owned())? != begin.root {
            return Err(Error::WorkspaceReplaced(begin.path.clone()));
        }
        let steps = switch.iter().flat_map(|switch| &switch.steps);
        let made_again =
            steps.filter(|step| matches!(step.how, How::Remove { .. })).map(|step| step.path.clone());
        let operation = Operation::new(disk, &root, self.source, begin, made_again, Rule::Leave)?;
        let mut late = workspaces.late_writes(&begin.workspace, op)?;
        let outcome = match (switch, verdict) {
            (Some(_), Some(Verdict::Done)) => Outcome::Finished,
            (Some(switch), None) => {
                operation.widen()?;
                *warnings = operation.go_forward(switch, &mut *late)?;
                Journal::reopen(disk, self.journal, op, self.contents)
                    .and_then(|journal| journal.decide(Verdict::Done))
                    .context(|| format!("end the journal of rollback {op}"))?;
                Outcome::Finished
            }
            (Some(switch), Some(Verdict::Back)) => {
                *warnings = operation.go_back(switch, &mut *late)?;
                Outcome::TakenBack
            }
            (None, _) => Outcome::TakenBack,
        };
        operation.clean_up(switch.as_ref(), outcome)?;
        late.settle(outcome)?;
        journal::remove(disk, self.journal, op).context(|| format!("remove the journal of rollback {op}"))?;
        step("recovery.done")?;
        Ok(outcome)
    }
}

/// A rollback that has a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The operation.
    pub op: String,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// That workspace's path when the rollback began.
    pub path: PathBuf,
    /// Its root directory: another one at that path has nothing to do with it.
    pub root: FileIdentity,
    /// Its staging directories, below that path. No scan of any workspace may capture them.
    pub staging: Vec<RelPath>,
}

/// The rollbacks that have a journal, but for journals that make no sense. Cheap if there is none.
pub fn pending(journal: BorrowedFd<'_>) -> Result<Vec<Pending>> {
    let mut all = Vec::new();
    for op in operations(journal)? {
        match journal::read(journal, &op) {
            Ok(Some(Contents { begin, .. })) => {
                let journal::Begin { workspace, path, root, staging, .. } = begin;
                all.push(Pending { op, workspace, path, root, staging });
            }
            Ok(None) => {}
            // What recovery has reported once keeps no other workspace from working.
            Err(error @ (Error::Corrupt(_) | Error::NewerFormat { .. })) => {
                tracing::debug!(%op, %error, "skipping a journal");
            }
            // Whoever asks must not go on as if there were none.
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

fn operations(journal: BorrowedFd<'_>) -> Result<Vec<String>> {
    journal::operations(journal).context(|| "list the journals".to_owned())
}
