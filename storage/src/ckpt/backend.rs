//! What a snapshot backend promises. The wire cannot tell which one is in use.

use std::path::{Path, PathBuf};

use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};

use super::error::Result;
use super::model::*;
use crate::path::RelPath;
use crate::peer::Peer;

/// A snapshot engine. Every call may block for as long as the disk does; callers that must not block run it on
/// a thread of its own. Every path step runs with the rights of the given peer, and every operation that
/// changes something is, after a crash at any instruction, either whole or absent. A workspace that is another user's does not
/// exist for the peer: `WorkspaceNotFound`.
///
/// Calls that change one workspace must not be made at the same time by one caller (each workspace has one
/// actor); against other processes, and against workspaces around or inside this one, the backend locks.
pub trait Backend: Send + Sync + 'static {
    /// Every registered workspace with the snapshots that List shows, by workspace id.
    fn workspaces(&self) -> Result<Vec<WorkspaceState>>;

    /// The canonical path of what `path` names for this peer; fails where a component does not exist or may not
    /// be searched.
    fn canonical(&self, peer: &Peer, path: &Path) -> Result<PathBuf>;

    /// Registers the directory that `path` names (absolute), or finds it registered. A registered path whose
    /// directory was replaced is adopted again with its snapshots. Idempotent.
    fn init(&self, peer: &Peer, path: &Path) -> Result<WorkspaceState>;

    /// Reads the tree into the store, so that the next checkpoint need not.
    fn prime(&self, peer: &Peer, workspace: &WorkspaceId) -> Result<()>;

    /// Takes a snapshot. When it returns, the snapshot survives power loss.
    fn checkpoint(&self, peer: &Peer, workspace: &WorkspaceId, new: &NewSnapshot) -> Result<Checkpointed>;

    /// Gives the directory exactly the snapshot's tree, after taking a safety snapshot of the live one.
    fn rollback(&self, peer: &Peer, workspace: &WorkspaceId, to: &SnapshotId) -> Result<RolledBack>;

    /// Which rollback [`undo`](Self::undo) would take back.
    fn newest_rollback(&self, peer: &Peer, workspace: &WorkspaceId) -> Result<Option<PastRollback>>;

    /// Takes the newest rollback back and says which that was; done again, takes that back.
    fn undo(&self, peer: &Peer, workspace: &WorkspaceId) -> Result<Undone>;

    /// Removes snapshots from the catalog. All or none; unknown names are an error.
    fn delete(
        &self,
        peer: &Peer,
        workspace: &WorkspaceId,
        snapshots: &[SnapshotId],
        how: Removal,
    ) -> Result<()>;

    /// How two trees differ, sorted by path.
    fn diff(&self, peer: &Peer, workspace: &WorkspaceId, from: &TreeRef, to: &TreeRef)
    -> Result<Vec<Change>>;

    /// What a tree has at a path: `most` bytes of a regular file, the target of a link, which is not followed. `None` where
    /// there is nothing, also for what may not be seen.
    fn look(
        &self,
        peer: &Peer,
        workspace: &WorkspaceId,
        tree: &TreeRef,
        path: &RelPath,
        most: usize,
    ) -> Result<Option<Seen>>;

    /// Unregisters; the directory stays as it is, the snapshots go to the trash.
    fn recover(&self, peer: &Peer, workspace: &WorkspaceId) -> Result<()>;

    /// Registers a directory (absolute, no link) for the program's own checkpoints, apart from the workspaces that people
    /// have, or finds it so registered; one that was replaced is adopted as [`Backend::init`] does. It may lie anywhere
    /// but inside or around another such directory; below the state directory only where agents have theirs.
    ///
    /// [`checkpoint`](Backend::checkpoint), [`rollback`](Backend::rollback) and [`undo`](Backend::undo) take its id, and
    /// its trees are collected and checked like any other. Nothing else here shows it, and for the registering of
    /// workspaces it does not exist: the same directory, and ones around and inside it, may be workspaces besides.
    fn keep(&self, dir: &Path) -> Result<WorkspaceState>;

    /// Every directory that is registered so, with its snapshots, by id.
    fn kept(&self) -> Result<Vec<WorkspaceState>>;

    /// Ends the registration of such a directory and removes all its snapshots at once. The directory stays as it is,
    /// and may be gone already.
    fn forget_kept(&self, workspace: &WorkspaceId) -> Result<()>;

    /// What is in the trash, of workspaces that were this peer's, in the order in which it was captured.
    fn trash(&self, peer: &Peer) -> Result<Vec<Trashed>>;

    /// Brings a tree back from the trash as a snapshot of a workspace of the same owner: under the given name, else its
    /// own; as the user wants it, pinned. A pinned one stays pinned.
    fn restore_trashed(
        &self,
        peer: &Peer,
        workspace: &WorkspaceId,
        item: u64,
        name: Option<&SnapshotId>,
        pin: bool,
    ) -> Result<Snapshot>;

    /// What a snapshot does not hold faithfully.
    fn warnings(&self, peer: &Peer, workspace: &WorkspaceId, snapshot: &SnapshotId) -> Result<Vec<Warning>>;

    /// Reclaims space nothing needs any more, at most about `budget` bytes of packs per call; true if more is
    /// left to do.
    fn collect(&self, budget: u64) -> Result<bool>;

    /// Verifies catalog against packs; with `read_data` every byte of every object.
    fn check(&self, read_data: bool) -> Result<CheckReport>;

    /// Space on the filesystem that holds the store.
    fn usage(&self) -> Result<FsUsage>;

    /// What the store takes.
    fn size(&self) -> Result<StoreSize>;
}
