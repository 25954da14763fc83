//! A store and a workspace beside it, each test's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};

use crate::ckpt::error::Result;
use crate::ckpt::model::*;
use crate::ckpt::{Backend, Store, StoreOptions};
use crate::clock::{Clock, IdGen, RandomIds, WallTime};
use crate::disk::Disk;
use crate::peer::Peer;

/// A clock that stands until it is moved.
#[derive(Debug, Default)]
pub(super) struct HandClock(AtomicI64);

impl HandClock {
    pub(super) fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_nanos() as i64, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn wall(&self) -> WallTime {
        WallTime(1_700_000_000_000_000_000 + self.0.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed) as u64)
    }
}

pub(super) struct Place {
    pub(super) dir: tempfile::TempDir,
    pub(super) clock: Arc<HandClock>,
}

impl Place {
    /// An empty place: nothing in it but an empty directory `ws`.
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("ws")).unwrap();
        Self { dir, clock: Arc::default() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        std::fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    pub(super) fn ws(&self) -> PathBuf {
        self.path("ws")
    }

    pub(super) fn options(&self, disk: Disk) -> StoreOptions {
        let ids: Arc<dyn IdGen> = Arc::new(RandomIds);
        StoreOptions { state_dir: self.dir.path().join("state"), disk, clock: self.clock.clone(), ids }
    }

    pub(super) fn open(&self) -> Store {
        Store::open(self.options(Disk::default())).unwrap().0
    }

    /// Writes files below the workspace.
    pub(super) fn write(&self, files: &[(&str, &str)]) {
        for (name, content) in files {
            let path = self.ws().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }
}

pub(super) fn init(store: &Store, path: impl AsRef<Path>) -> Result<WorkspaceId> {
    store.init(&Peer::own(), path.as_ref()).map(|state| state.workspace.id)
}

pub(super) fn id(name: &str) -> SnapshotId {
    SnapshotId::new(name).unwrap()
}
