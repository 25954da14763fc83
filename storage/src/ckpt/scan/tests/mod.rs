//! What a capture promises, on real directories.
#![allow(clippy::disallowed_methods, reason = "a user renames and removes files")]

mod caching;
mod hostile;
mod kinds;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::capture::capture_on;
use super::filesystem::Filesystem;
use super::*;
use crate::ckpt::format::testing::MemoryObjects;
use crate::ckpt::format::{Content, Entry, EntryKind, Extents, ObjectKind, ObjectSink, ObjectSource, Tree};
use crate::ckpt::{Error, Result, WarningKind};
use crate::clock::{Clock, SystemClock, WallTime};
use crate::disk::Disk;
use crate::fs::Root;
use crate::path::{RelPath, escape};
use crate::peer::Peer;

/// The machine's clock, some time later: then every file is at rest.
struct Later(i64);

impl Clock for Later {
    fn wall(&self) -> WallTime {
        WallTime(SystemClock::new().wall().0 + self.0)
    }
    fn monotonic(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
}

/// A workspace and a store for it.
struct Fixture {
    dir: tempfile::TempDir,
    peer: Peer,
    clock: Later,
    /// What captures take the workspace's filesystem for.
    filesystem: fn(&Root) -> Filesystem,
    objects: MemoryObjects,
    /// The boot of caches that are opened from now on.
    boot: Option<BootId>,
    cache: StatCache,
    ignore: HashSet<RelPath>,
}

impl Fixture {
    fn new() -> Self {
        Self {
            filesystem: |root| Filesystem::of(root).unwrap().as_if_on_disk(),
            ..Self::within(restful_dir())
        }
    }

    /// With nothing assumed.
    fn within(dir: tempfile::TempDir) -> Self {
        std::fs::create_dir(dir.path().join("ws")).unwrap();
        let boot = Some(BootId([1; 16]));
        let cache = StatCache::open(&Disk::default(), &dir.path().join("cache"), None, boot);
        Self {
            dir,
            peer: Peer::own(),
            clock: Later(10_000_000_000),
            filesystem: |root| Filesystem::of(root).unwrap(),
            objects: MemoryObjects::new(),
            boot,
            cache,
            ignore: HashSet::new(),
        }
    }

    /// The workspace.
    fn ws(&self) -> PathBuf {
        self.dir.path().join("ws")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.ws().join(path)
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        std::fs::write(self.at(path), content).unwrap();
    }

    fn try_capture_into(&mut self, sink: &dyn ObjectSink) -> Result<Captured> {
        let root = Root::open(&self.ws()).unwrap();
        let work = Capture { root: &root, peer: &self.peer, sink, clock: &self.clock, ignore: &self.ignore };
        capture_on(&work, (self.filesystem)(&root), &mut self.cache)
    }

    /// A capture that is not published.
    fn capture(&mut self) -> Captured {
        let objects = std::mem::take(&mut self.objects);
        let captured = self.try_capture_into(&objects).unwrap();
        self.objects = objects;
        captured
    }

    /// A capture that is published, and how many objects it put, the manifest not counted.
    fn publish(&mut self) -> (Captured, usize) {
        let before = self.objects.puts();
        let captured = self.capture();
        self.cache.commit(&captured.id);
        (captured, self.objects.puts() - before - 1)
    }

    /// What a capture without a cache finds.
    fn capture_afresh(&mut self) -> Captured {
        let root = Root::open(&self.ws()).unwrap();
        let file = self.dir.path().join("other-cache");
        let mut cache = StatCache::open(&Disk::default(), &file, None, self.boot);
        let (peer, sink, clock) = (&self.peer, &self.objects, &self.clock);
        let work = Capture { root: &root, peer, sink, clock, ignore: &self.ignore };
        capture(&work, &mut cache).unwrap()
    }

    /// As after a restart of the daemon.
    fn reopen_cache(&mut self, base: &Captured) {
        let file = self.cache_file();
        self.cache = StatCache::open(&Disk::default(), &file, Some(&base.id), self.boot);
    }

    fn cache_file(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    fn entry(&self, captured: &Captured, path: impl AsRef<[u8]>) -> Option<Entry> {
        let path = RelPath::new(path.as_ref()).unwrap();
        Tree::new(&self.objects, captured.manifest.root).lookup(&path).unwrap()
    }

    fn kind(&self, captured: &Captured, path: impl AsRef<[u8]>) -> EntryKind {
        let shown = escape(path.as_ref());
        self.entry(captured, path).unwrap_or_else(|| panic!("{shown} is not in the snapshot")).kind
    }

    /// A captured file's bytes.
    fn bytes(&self, captured: &Captured, path: impl AsRef<[u8]>) -> Vec<u8> {
        match self.kind(captured, path) {
            EntryKind::File { content: Content::Empty, .. } => Vec::new(),
            EntryKind::File { content: Content::Whole(id), .. } => {
                self.objects.get(ObjectKind::Data, &id).unwrap().to_vec()
            }
            EntryKind::File { content: Content::Extents(id), .. } => {
                let extents = Extents::load(&self.objects, &id).unwrap();
                let mut bytes = Vec::new();
                for extent in extents.0 {
                    match extent {
                        crate::ckpt::format::Extent::Hole(len) => bytes.resize(bytes.len() + len as usize, 0),
                        crate::ckpt::format::Extent::Data(_, id) => {
                            bytes.extend_from_slice(&self.objects.get(ObjectKind::Data, &id).unwrap());
                        }
                    }
                }
                bytes
            }
            other => panic!("no file with bytes: {other:?}"),
        }
    }

    fn warnings(captured: &Captured) -> Vec<(String, WarningKind)> {
        captured.manifest.warnings.iter().map(|w| (w.path.to_string(), w.kind)).collect()
    }
}

/// A directory in which files can be proven to be at rest, once it is taken for one on a disk: not on an overlay in
/// memory.
fn restful_dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let probe = tempfile::tempfile_in(&dir).unwrap();
    if crate::sys::is_overlay(&probe).unwrap() && !crate::sys::is_on_disk(&probe) {
        return tempfile::tempdir_in("/dev/shm").unwrap();
    }
    dir
}

fn is_root() -> bool {
    Peer::own().uid == 0
}

/// Some user who owns nothing here.
fn stranger() -> Peer {
    Peer { uid: 54321, gid: 54321, groups: Vec::new() }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}
