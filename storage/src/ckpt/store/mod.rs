//! The `store` backend: works on any filesystem, without privileges.
//!
//! Below `<state>/ckpt`: the catalog, the packs, a stat cache per workspace, and a journal for each rollback that is
//! not finished. A file per verb; this one holds what they share.

mod capture;
mod check;
mod checkpoint;
mod collect;
mod diff;
mod held;
mod init;
mod kept;
mod late;
mod locks;
mod look;
mod metadata;
mod open;
mod places;
mod reach;
mod readers;
mod removal;
mod rollback;
#[cfg(test)]
mod tests;
mod trash;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};

use super::backend::Backend;
use super::catalog::{Catalog, SnapshotRow, WorkspaceRow};
use super::error::{Context, Error, Result};
use super::format::{Manifest, ObjectId};
use super::model::*;
use super::pack::{ObjectReader, PackStorage};
use super::view::View;
use crate::clock::{Clock, IdGen, RandomIds, SystemClock};
use crate::disk::Disk;
use crate::path::RelPath;
use crate::peer::Peer;
use locks::Locks;
use places::Places;
use readers::Readers;

pub use check::check_state_dir;
pub use kept::AGENT_DIRS;

/// The backend that works on any filesystem, without privileges.
pub struct Store {
    disk: Disk,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    catalog: Arc<Catalog>,
    packs: Arc<dyn PackStorage>,
    reader: Arc<ObjectReader>,
    /// Held while a directory is registered.
    registering: Mutex<()>,
    /// Who works on which directory.
    locks: Locks,
    /// Who reads packs.
    readers: Readers,
    /// Where collection has got to.
    collector: Mutex<collect::Progress>,
    // Last: the state directory's lock is let go when everything else is closed.
    places: Places,
}

/// How to open a store.
#[derive(Clone)]
pub struct StoreOptions {
    /// The state directory; made if it is missing.
    pub state_dir: PathBuf,
    /// The way to the disk.
    pub disk: Disk,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where names of packs and operations come from.
    pub ids: Arc<dyn IdGen>,
}

impl StoreOptions {
    /// A store in `state_dir`, on this machine's disk, with its clock, and with random names.
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        Self {
            state_dir: state_dir.into(),
            disk: Disk::default(),
            clock: Arc::new(SystemClock::new()),
            ids: Arc::new(RandomIds),
        }
    }
}

impl Store {
    /// The manifest of a snapshot; `SnapshotMissing` if it is damaged, or known to need data that is.
    fn manifest_of(&self, row: &SnapshotRow) -> Result<Manifest> {
        if row.snapshot.missing {
            return Err(Error::SnapshotMissing(row.snapshot.id.clone()));
        }
        self.or_missing(row, self.manifest(&row.manifest))
    }

    /// Turns damage into `SnapshotMissing` if it is this snapshot's, and remembers it.
    fn or_missing<T>(&self, row: &SnapshotRow, result: Result<T>) -> Result<T> {
        match result {
            Err(Error::Corrupt(damage)) if self.quarantine(row)? => {
                tracing::error!(snapshot = %row.snapshot.id, damage, "a snapshot's data is damaged");
                Err(Error::SnapshotMissing(row.snapshot.id.clone()))
            }
            other => other,
        }
    }

    fn manifest(&self, id: &ObjectId) -> Result<Manifest> {
        Manifest::load(&*self.reader, id)
    }

    /// The registered workspaces, or the directories that are kept apart from them, with their snapshots.
    fn states(&self, kept: bool) -> Result<Vec<WorkspaceState>> {
        let mut snapshots = self.catalog.snapshots()?;
        let mut rows = self.catalog.workspaces()?;
        rows.retain(|row| row.kept == kept);
        let state = |row: WorkspaceRow| WorkspaceState {
            snapshots: snapshots
                .remove(&row.key)
                .unwrap_or_default()
                .into_iter()
                .map(|s| s.snapshot)
                .collect(),
            workspace: row.workspace,
        };
        Ok(rows.into_iter().map(state).collect())
    }

    fn snapshot_row(&self, workspace: i64, name: &SnapshotId) -> Result<SnapshotRow> {
        self.catalog.snapshot(workspace, name)?.ok_or_else(|| Error::SnapshotNotFound(name.clone()))
    }
}

impl Backend for Store {
    fn workspaces(&self) -> Result<Vec<WorkspaceState>> {
        self.states(false)
    }

    fn canonical(&self, peer: &Peer, path: &Path) -> Result<PathBuf> {
        let _rights = peer.enter().context(|| "taking the peer's rights".to_owned())?;
        std::fs::canonicalize(path).context(|| path.display().to_string())
    }

    fn init(&self, peer: &Peer, path: &Path) -> Result<WorkspaceState> {
        self.init_workspace(peer, path)
    }

    fn prime(&self, peer: &Peer, workspace: &WorkspaceId) -> Result<()> {
        self.prime_workspace(peer, workspace)
    }

    fn checkpoint(&self, peer: &Peer, workspace: &WorkspaceId, new: &NewSnapshot) -> Result<Checkpointed> {
        self.take_checkpoint(peer, workspace, new)
    }

    fn rollback(&self, peer: &Peer, workspace: &WorkspaceId, to: &SnapshotId) -> Result<RolledBack> {
        self.roll_back(peer, workspace, to)
    }

    fn newest_rollback(&self, peer: &Peer, workspace: &WorkspaceId) -> Result<Option<PastRollback>> {
        let workspace = self.visible(peer, workspace)?;
        Ok(self.catalog.undo_target(workspace.key)?.map(|(_, rollback)| rollback))
    }

    fn undo(&self, peer: &Peer, workspace: &WorkspaceId) -> Result<Undone> {
        self.undo_rollback(peer, workspace)
    }

    fn delete(
        &self,
        peer: &Peer,
        workspace: &WorkspaceId,
        snapshots: &[SnapshotId],
        how: Removal,
    ) -> Result<()> {
        self.remove_snapshots(peer, workspace, snapshots, how)
    }

    fn diff(
        &self,
        peer: &Peer,
        workspace: &WorkspaceId,
        from: &TreeRef,
        to: &TreeRef,
    ) -> Result<Vec<Change>> {
        self.diff_trees(peer, workspace, from, to)
    }

    fn look(
        &self,
        peer: &Peer,
        workspace: &WorkspaceId,
        tree: &TreeRef,
        path: &RelPath,
        most: usize,
    ) -> Result<Option<Seen>> {
        self.look_at(peer, workspace, tree, path, most)
    }

    fn recover(&self, peer: &Peer, workspace: &WorkspaceId) -> Result<()> {
        self.forget_workspace(peer, workspace)
    }

    fn keep(&self, dir: &Path) -> Result<WorkspaceState> {
        self.keep_apart(dir)
    }

    fn kept(&self) -> Result<Vec<WorkspaceState>> {
        self.states(true)
    }

    fn forget_kept(&self, workspace: &WorkspaceId) -> Result<()> {
        self.erase_kept(workspace)
    }

    fn trash(&self, peer: &Peer) -> Result<Vec<Trashed>> {
        self.list_trash(peer)
    }

    fn restore_trashed(
        &self,
        peer: &Peer,
        workspace: &WorkspaceId,
        item: u64,
        name: Option<&SnapshotId>,
        pin: bool,
    ) -> Result<Snapshot> {
        self.take_from_trash(peer, workspace, item, name, pin)
    }

    fn warnings(&self, peer: &Peer, workspace: &WorkspaceId, snapshot: &SnapshotId) -> Result<Vec<Warning>> {
        let _reading = self.readers.begin();
        let workspace = self.workable(peer, workspace)?;
        let row = self.snapshot_row(workspace.key, snapshot)?;
        let (mut manifest, view) = (self.manifest_of(&row)?, View::of(peer));
        let mut shown = Vec::new();
        for warning in std::mem::take(&mut manifest.warnings) {
            let is_shown = view.shows_name(&*self.reader, &manifest, &warning.path);
            if self.or_missing(&row, is_shown)? {
                shown.push(warning);
            }
        }
        Ok(shown)
    }

    fn collect(&self, budget: u64) -> Result<bool> {
        self.collect_garbage(budget)
    }

    fn check(&self, read_data: bool) -> Result<CheckReport> {
        self.check_store(read_data)
    }

    fn usage(&self) -> Result<FsUsage> {
        self.places.usage()
    }

    fn size(&self) -> Result<StoreSize> {
        let packs = self.catalog.all_packs()?;
        Ok(StoreSize {
            pack_bytes: packs.iter().map(|pack| pack.bytes).sum(),
            packs: packs.len() as u64,
            index_bytes: self.catalog.bytes() + self.places.cache_bytes()?,
            objects: self.catalog.count_objects()?,
        })
    }
}
