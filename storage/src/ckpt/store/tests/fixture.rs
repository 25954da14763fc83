//! A store and a workspace beside it, each test's own.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};
use cofferdam_tests::files;

use crate::ckpt::error::Result;
use crate::ckpt::model::*;
use crate::ckpt::store::locks::Locks;
use crate::ckpt::{Backend, Store, StoreOptions};
use crate::clock::{Clock, IdGen, RandomIds, SystemClock, WallTime};
use crate::disk::Disk;
use crate::peer::Peer;

/// The machine's clock, set forward at will. It must not be far behind: the stat cache compares it with files' times.
#[derive(Debug, Default)]
pub(super) struct HandClock {
    system: SystemClock,
    ahead: AtomicI64,
}

impl HandClock {
    pub(super) fn advance(&self, by: Duration) {
        self.ahead.fetch_add(by.as_nanos() as i64, Ordering::Relaxed);
    }

    /// Sets it forward by this and no more.
    pub(super) fn set_ahead(&self, by: Duration) {
        self.ahead.store(by.as_nanos() as i64, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn wall(&self) -> WallTime {
        WallTime(self.system.wall().0 + self.ahead.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        self.system.monotonic()
    }
}

/// A tree as text, by path.
pub(super) type Tree = BTreeMap<PathBuf, String>;

pub(super) struct Place {
    pub(super) dir: tempfile::TempDir,
    pub(super) clock: Arc<HandClock>,
}

impl Place {
    /// An empty place: nothing in it but an empty directory `ws`.
    pub(super) fn new() -> Self {
        Self::new_in(&std::env::temp_dir())
    }

    /// The same in a directory.
    pub(super) fn new_in(dir: &Path) -> Self {
        let dir = tempfile::tempdir_in(dir).unwrap();
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

    /// The same with some files in `ws`.
    pub(super) fn with_files() -> Self {
        let place = Self::new();
        place.write(&[("a", "first"), ("dir/b", "second"), ("dir/deep/c", "third")]);
        place
    }

    pub(super) fn open(&self) -> Store {
        Store::open(self.options(Disk::default())).unwrap().0
    }

    /// A store in which nobody waits for a lock.
    pub(super) fn open_impatient(&self) -> Store {
        Store { locks: Locks::impatient(), ..self.open() }
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

#[allow(clippy::disallowed_methods, reason = "what a user does to the tree")]
impl Place {
    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.ws().join(name)).unwrap()
    }

    pub(super) fn remove(&self, name: &str) {
        std::fs::remove_file(self.ws().join(name)).unwrap();
    }

    pub(super) fn move_to(&self, from: &str, to: &str) {
        let to = self.ws().join(to);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::rename(self.ws().join(from), to).unwrap();
    }

    /// Moves what lies beside the state directory.
    pub(super) fn move_root(&self, from: &str, to: &str) {
        std::fs::rename(self.path(from), self.path(to)).unwrap();
    }

    /// How many rollbacks are not finished.
    pub(super) fn journals(&self) -> usize {
        std::fs::read_dir(self.path("state/ckpt/journal")).unwrap().count()
    }

    /// Every name in the workspace with what a rollback has to give back of it.
    pub(super) fn tree(&self) -> Tree {
        let mut tree = BTreeMap::new();
        let mut dirs = vec![self.ws()];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let meta = path.symlink_metadata().unwrap();
                let mut text = format!("{:o} {}.{:09}", meta.mode(), meta.mtime(), meta.mtime_nsec());
                if meta.is_dir() {
                    dirs.push(path.clone());
                } else if meta.is_file() {
                    text.push_str(&std::fs::read_to_string(&path).unwrap());
                }
                tree.insert(path, text);
            }
        }
        tree
    }

    pub(super) fn pack_files(&self) -> Vec<PathBuf> {
        let packs = std::fs::read_dir(self.path("state/ckpt/packs")).unwrap();
        packs.map(|entry| entry.unwrap().path()).collect()
    }

    /// How many packs there are.
    pub(super) fn packs(&self) -> usize {
        self.pack_files().len()
    }

    pub(super) fn destroy_packs(&self) {
        for pack in self.pack_files() {
            std::fs::remove_file(pack).unwrap();
        }
    }

    /// Bytes of all files of the store.
    pub(super) fn disk_usage(&self) -> u64 {
        let mut bytes = 0;
        let mut dirs = vec![self.path("state")];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let entry = entry.unwrap();
                match entry.file_type().unwrap().is_dir() {
                    true => dirs.push(entry.path()),
                    false => bytes += entry.metadata().unwrap().len(),
                }
            }
        }
        bytes
    }
}

/// Text that cannot be compressed much, the same for the same seed.
pub(super) fn noise(seed: u64, len: usize) -> String {
    let mut bytes = vec![0; len / 2];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn collect_all(store: &Store) {
    while store.collect(u64::MAX).unwrap() {}
}

pub(super) fn init(store: &Store, path: impl AsRef<Path>) -> Result<WorkspaceId> {
    store.init(&Peer::own(), path.as_ref()).map(|state| state.workspace.id)
}

pub(super) fn id(name: &str) -> SnapshotId {
    SnapshotId::new(name).unwrap()
}

pub(super) fn named(name: &str) -> NewSnapshot {
    NewSnapshot {
        id: id(name),
        message: None,
        metadata: None,
        pin: false,
        skip_unchanged: false,
        even_empty: false,
    }
}

/// Takes a snapshot and says what became of it.
pub(super) fn checkpoint(store: &Store, workspace: &WorkspaceId, name: &str) -> &'static str {
    match store.checkpoint(&Peer::own(), workspace, &named(name)).unwrap() {
        Checkpointed::Created(_) => "created",
        Checkpointed::EmptyWorkspace => "empty",
        Checkpointed::Unchanged(_) => "unchanged",
    }
}

/// The snapshots of all workspaces.
pub(super) fn shown(store: &Store) -> Vec<(String, Snapshot)> {
    let workspaces = store.workspaces().unwrap();
    let snapshots = workspaces.into_iter().flat_map(|state| state.snapshots);
    snapshots.map(|snapshot| (snapshot.id.as_str().to_owned(), snapshot)).collect()
}

/// Reads everything there is.
pub(super) fn assert_sound(store: &Store, snapshots: u64) {
    let report = store.check(true).unwrap();
    assert_eq!(report.damage, Vec::<String>::new());
    assert_eq!(report.snapshots, snapshots);
}

/// The content of all regular files below a directory.
pub(super) fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let tree = cofferdam_tests::tree::Tree::read(dir);
    let is_file = |path: &&[u8]| tree.get(path).is_some_and(|node| node.content.is_some());
    let path = |path: &[u8]| dir.join(std::str::from_utf8(path).unwrap());
    tree.paths().filter(is_file).map(path).map(|path| (path.clone(), files::read(path))).collect()
}

/// Has the directory hold these files and no others.
pub(super) fn put_back(dir: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    contents(dir).into_keys().for_each(files::remove);
    files.iter().for_each(|(path, content)| files::write(path, content));
}
