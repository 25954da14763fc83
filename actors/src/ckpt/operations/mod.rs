//! What a workspace's actor can be told to do to its workspace, one operation per file.
//!
//! Operations are synchronous and know no actors: they run on a blocking thread, one after another for each
//! workspace, and say what they did to the list of snapshots.

mod adopt;
mod checkpoint;
mod cleanup;
mod delete;
mod prime;
mod recover;
mod refresh;
mod restore;
mod rollback;
mod undo;

use std::collections::HashSet;
use std::sync::Arc;

use cofferdam_protocol::ckpt::SnapshotId;
use cofferdam_storage::ckpt::{Backend, Error, Snapshot, Workspace, WorkspaceState};
use cofferdam_storage::clock::Clock;
use cofferdam_storage::peer::Peer;

pub(crate) use adopt::Adopt;
pub(crate) use checkpoint::Checkpoint;
pub(crate) use cleanup::Clean;
pub(crate) use delete::Delete;
pub(crate) use prime::Prime;
pub(crate) use recover::Recover;
pub(crate) use refresh::Refresh;
pub(crate) use restore::Restore;
pub(crate) use rollback::RollBack;
pub(crate) use undo::Undo;

use super::failure::Trouble;
use super::messages::LastRollback;

/// Something done to one workspace while nothing else is being done to it.
pub(crate) trait Operation: Send + 'static {
    /// What its success is worth.
    type Done: Send + 'static;

    /// Does it. May block for as long as a disk does.
    fn run(self, on: &Target) -> Result<Outcome<Self::Done>, Trouble>;
}

/// What an operation works on.
pub(crate) struct Target {
    /// The engine.
    pub(crate) backend: Arc<dyn Backend>,
    /// For the age of snapshots.
    pub(crate) clock: Arc<dyn Clock>,
    /// In whose name.
    pub(crate) peer: Peer,
    /// The workspace.
    pub(crate) workspace: Arc<Workspace>,
    /// Its snapshots, in the order in which they were taken.
    pub(crate) snapshots: Arc<[Snapshot]>,
}

/// An operation that succeeded.
pub(crate) struct Outcome<T> {
    /// What it is worth.
    pub(crate) done: T,
    /// What the workspace is afterwards.
    pub(crate) after: After,
}

/// What a workspace is after an operation.
pub(crate) enum After {
    /// It has the same snapshots.
    Same,
    /// It has the same snapshots, and its directory another tree.
    RolledBack(LastRollback),
    /// It has these.
    Snapshots(Arc<[Snapshot]>),
    /// It is this one.
    State(WorkspaceState),
    /// It is no more.
    Gone,
}

impl<T> Outcome<T> {
    fn same(done: T) -> Self {
        Self { done, after: After::Same }
    }
}

impl Target {
    /// What the catalog says the workspace is.
    pub(crate) fn read_again(&self) -> Result<After, Error> {
        let mut all = self.backend.workspaces()?.into_iter();
        Ok(match all.find(|state| state.workspace.id == self.workspace.id) {
            Some(state) => After::State(state),
            None => After::Gone,
        })
    }

    /// The snapshots without those of these names.
    fn without(&self, gone: &[SnapshotId]) -> After {
        let gone: HashSet<_> = gone.iter().collect();
        let left = self.snapshots.iter().filter(|snapshot| !gone.contains(&snapshot.id));
        After::Snapshots(left.cloned().collect())
    }
}
