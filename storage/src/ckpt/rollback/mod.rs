//! Giving a directory back a snapshot's tree: plan, pre-flight, journal, stage, switch, recovery.
//!
//! A rollback compares two snapshots, the safety snapshot (which *is* the live tree) and the target, and touches
//! nothing in which they agree. What is new is built in a staging directory inside the workspace and made durable;
//! then single renames move victims out and new things in. A journal, written before the first change and before
//! the first rename, lets [`recover`] finish or take back whatever was cut short, by renames alone.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use cofferdam_protocol::ckpt::WorkspaceId;

use super::error::Result;
use super::format::{Manifest, ObjectSource, Timestamp};
use super::model::{RolledBack, Warning};
use crate::disk::Disk;
use crate::fs::Root;
use crate::path::{Name, RelPath};
use crate::peer::Peer;

/// Everything one rollback works with. The caller holds the workspace's locks and has published the safety snapshot.
pub struct Job<'a> {
    /// The way to the disk.
    pub disk: &'a Disk,
    /// Whose rights the work in the tree has.
    pub peer: &'a Peer,
    /// The workspace, its identity verified.
    pub root: &'a Root,
    /// Where the workspace is, for the journal.
    pub path: &'a Path,
    /// Which workspace it is, for the journal.
    pub workspace: &'a WorkspaceId,
    /// Objects of both snapshots.
    pub source: &'a dyn ObjectSource,
    /// The safety snapshot: the live tree as it was captured a moment ago.
    pub live: &'a Manifest,
    /// The wall clock when that capture began: whatever changed since then may not be in it.
    pub captured_from: Timestamp,
    /// The tree to give back.
    pub target: &'a Manifest,
    /// The journal directory.
    pub journal: BorrowedFd<'a>,
    /// The operation's fresh name, as [`IdGen`](crate::clock::IdGen) makes them. Journal and staging are named after it.
    pub op: &'a str,
    /// Where content goes that is newer than the safety snapshot.
    pub late: &'a mut dyn LateWrites,
}

/// The safety snapshot of one rollback, as far as the rollback has to do with it. Called with the peer's rights, but
/// for [`LateWrites::publish`] and [`LateWrites::settle`].
pub trait LateWrites {
    /// Puts what stands at `name` in `dir` now (everything beneath it included) into the safety snapshot at `path`,
    /// in place of what that has there. True if this made a difference; false if the snapshot had exactly that.
    fn keep(&mut self, path: &RelPath, dir: BorrowedFd<'_>, name: &Name) -> Result<bool>;

    /// Makes durable all that was kept. Called before anything of it is removed; again after a crash.
    fn publish(&mut self) -> Result<()>;

    /// How the rollback ended, durably. Called before its journal goes; again after a crash, with the same outcome.
    fn settle(&mut self, outcome: Outcome) -> Result<()>;
}

/// How a rollback ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The tree is exactly the target.
    Finished,
    /// The tree is exactly what it was before.
    TakenBack,
}

/// Gives the directory exactly the target's tree.
///
/// On any error the tree is what it was before, unless taking back failed too: then the journal stays, the error says
/// so, and [`recover`] has to run before anything else is done with the workspace.
pub fn run(_job: Job<'_>) -> Result<RolledBack> {
    todo!()
}

/// What recovery asks of the store. Called with the daemon's own rights.
pub trait Workspaces {
    /// Opens the workspace's directory, locked as for a rollback. `None` if nothing is there, or it cannot be had now:
    /// the operation then stays pending.
    fn open(&mut self, workspace: &WorkspaceId, path: &Path) -> Result<Option<Root>>;

    /// The safety snapshot of operation `op`, or a fresh one if that has been deleted since.
    fn late_writes(&mut self, workspace: &WorkspaceId, op: &str) -> Result<Box<dyn LateWrites + '_>>;
}

/// What became of one journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The workspace it names.
    pub workspace: WorkspaceId,
    /// The operation.
    pub op: String,
    /// How it ended; the error text if it is still pending.
    pub outcome: std::result::Result<Outcome, String>,
    /// Newer things that were found and kept.
    pub warnings: Vec<Warning>,
}

/// Finishes or takes back every rollback that a journal in the directory names, or only those of one workspace.
/// Idempotent: it may be cut short anywhere and run again.
///
/// Must run when the store is opened, and before any operation on a workspace that [`pending`] names.
pub fn recover(
    _disk: &Disk,
    _journal: BorrowedFd<'_>,
    _source: &dyn ObjectSource,
    _only: Option<&WorkspaceId>,
    _workspaces: &mut dyn Workspaces,
) -> Result<Vec<Recovered>> {
    Ok(Vec::new())
}

/// A rollback that has a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// That workspace's path when the rollback began.
    pub path: PathBuf,
    /// Its staging directories, below that path. No scan of any workspace may capture them.
    pub staging: Vec<RelPath>,
}

/// The rollbacks that have a journal. Cheap if there is none.
pub fn pending(_journal: BorrowedFd<'_>) -> Result<Vec<Pending>> {
    Ok(Vec::new())
}
