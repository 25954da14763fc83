//! What a rollback promises, on real directories.
#![allow(clippy::disallowed_methods, reason = "a user renames and removes files")]

mod basics;
mod damaged;
mod faults;
mod filesystems;
mod hardlinks;
mod hidden;
mod kinds;
mod late;
mod peers;
mod recovery;
mod refused;
mod swapped;

use std::collections::{BTreeMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cofferdam_protocol::ckpt::WorkspaceId;
use cofferdam_tests::tree::Tree;

use super::*;
use crate::ckpt::WarningKind;
use crate::ckpt::format::testing::MemoryObjects;
use crate::ckpt::format::{self, Manifest, rewrite_tree};
use crate::ckpt::scan::{Capture, StatCache, capture, capture_entry};
use crate::clock::{Clock, SystemClock, WallTime};
use crate::disk::{FaultHook, Op};
use crate::path::RelPath;
use crate::peer::Peer;

/// A workspace with a store and a journal of its own.
struct Lab {
    dir: tempfile::TempDir,
    objects: MemoryObjects,
    peer: Peer,
    operations: AtomicU64,
}

impl Lab {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("ws")).unwrap();
        std::fs::create_dir(dir.path().join("journal")).unwrap();
        let (objects, operations) = Default::default();
        Self { dir, objects, peer: Peer::own(), operations }
    }

    fn ws(&self) -> PathBuf {
        self.dir.path().join("ws")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.ws().join(path)
    }

    fn root(&self) -> Root {
        Root::open(&self.ws()).unwrap()
    }

    fn journal(&self) -> OwnedFd {
        crate::fs::open_for_reading(rustix::fs::CWD, &*self.dir.path().join("journal")).unwrap()
    }

    fn id(&self) -> WorkspaceId {
        WorkspaceId::from_digest([1, 2, 3], 1)
    }

    /// A snapshot of the live tree.
    fn capture(&self) -> Manifest {
        self.capture_at(&self.ws())
    }

    /// A snapshot of any tree.
    fn capture_at(&self, dir: &Path) -> Manifest {
        let cache = self.dir.path().join("cache");
        let mut cache = StatCache::open(&Disk::default(), &cache, None, None);
        let (root, ignore) = (Root::open(dir).unwrap(), self.ignored());
        let work = Capture {
            root: &root,
            peer: &self.peer,
            sink: &self.objects,
            clock: &SystemClock::new(),
            ignore: &ignore,
        };
        capture(&work, &mut cache).unwrap().manifest
    }

    fn ignored(&self) -> HashSet<RelPath> {
        let pending = pending(self.journal().as_fd()).unwrap();
        pending.into_iter().flat_map(|pending| pending.staging).collect()
    }

    fn tree(&self) -> Tree {
        Tree::read(&self.ws())
    }

    /// Captures the live tree and rolls it back.
    fn attempt(&self, disk: &Disk, target: &Manifest) -> (Result<RolledBack>, Safety<'_>) {
        let captured_from = now();
        let live = self.capture();
        self.attempt_from(disk, &live, captured_from, target)
    }

    /// Rolls back from a live tree that was captured before.
    fn attempt_from(
        &self,
        disk: &Disk,
        live: &Manifest,
        captured_from: Timestamp,
        target: &Manifest,
    ) -> (Result<RolledBack>, Safety<'_>) {
        let mut late = Safety::new(self, live.clone());
        let op = format!("{:032x}", self.operations.fetch_add(1, Ordering::Relaxed));
        let result = run(Job {
            disk,
            peer: &self.peer,
            root: &self.root(),
            path: &self.ws(),
            workspace: &self.id(),
            source: &self.objects,
            live,
            captured_from,
            target,
            journal: self.journal().as_fd(),
            op: &op,
            late: &mut late,
        });
        (result, late)
    }

    /// Rolls back without a fault; nothing may be left of it.
    #[track_caller]
    fn roll_back(&self, target: &Manifest) -> RolledBack {
        let (result, late) = self.attempt(&Disk::default(), target);
        let done = result.unwrap();
        match late.settled {
            Some(Outcome::TakenBack) => assert_eq!(done.changed, 0),
            settled => assert_eq!(settled, Some(Outcome::Finished)),
        }
        self.assert_nothing_left();
        done
    }

    /// Rolls back, and expects to be told why that cannot be; nothing may have changed.
    #[track_caller]
    fn refuse(&self, target: &Manifest) -> Vec<(String, String)> {
        let before = self.tree();
        let (result, late) = self.attempt(&Disk::default(), target);
        assert_eq!(late.settled, None);
        before.assert_same(&self.tree(), "after a refused rollback");
        self.assert_nothing_left();
        match result {
            Err(Error::Preflight(obstacles)) => {
                obstacles.into_iter().map(|o| (o.path.to_string(), o.why)).collect()
            }
            other => panic!("not refused: {other:?}"),
        }
    }

    fn recover(&self, disk: &Disk) -> Vec<Recovered> {
        self.recover_with(disk, &mut Here::new(self))
    }

    fn recover_with(&self, disk: &Disk, workspaces: &mut Here<'_>) -> Vec<Recovered> {
        recover(disk, self.journal().as_fd(), &self.objects, None, workspaces).unwrap()
    }

    #[track_caller]
    fn assert_nothing_left(&self) {
        let journals: Vec<_> = std::fs::read_dir(self.dir.path().join("journal"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(journals.is_empty(), "{journals:?}");
    }
}

/// A safety snapshot in memory.
struct Safety<'a> {
    lab: &'a Lab,
    manifest: Manifest,
    kept: Vec<String>,
    published: usize,
    settled: Option<Outcome>,
}

impl<'a> Safety<'a> {
    fn new(lab: &'a Lab, manifest: Manifest) -> Self {
        Self { lab, manifest, kept: Vec::new(), published: 0, settled: None }
    }

    /// The content it has for a path.
    fn content(&self, path: &str) -> Option<Vec<u8>> {
        let path = RelPath::new(path.as_bytes()).unwrap();
        let tree = format::Tree::new(&self.lab.objects, self.manifest.root);
        match tree.lookup(&path).unwrap()?.kind {
            format::EntryKind::File { content: format::Content::Whole(id), .. } => {
                Some(ObjectSource::get(&self.lab.objects, format::ObjectKind::Data, &id).unwrap().to_vec())
            }
            format::EntryKind::File { content: format::Content::Empty, .. } => Some(Vec::new()),
            other => panic!("{path}: {other:?}"),
        }
    }
}

impl LateWrites for Safety<'_> {
    fn keep(&mut self, path: &RelPath, dir: BorrowedFd<'_>, name: &Name) -> Result<bool> {
        let lab = self.lab;
        let (root, ignore) = (lab.root(), HashSet::new());
        let work = Capture {
            root: &root,
            peer: &lab.peer,
            sink: &lab.objects,
            clock: &SystemClock::new(),
            ignore: &ignore,
        };
        let found = capture_entry(&work, dir, name)?.map(|mut entry| {
            entry.name = path.split().unwrap().1;
            entry
        });
        let had = format::Tree::new(&lab.objects, self.manifest.root).lookup(path)?;
        if found == had {
            return Ok(false);
        }
        let changes = BTreeMap::from([(path.clone(), found)]);
        self.manifest.root = rewrite_tree(&lab.objects, &lab.objects, &self.manifest.root, &changes)?;
        self.kept.push(path.to_string());
        Ok(true)
    }

    fn publish(&mut self) -> Result<()> {
        self.published = self.kept.len();
        Ok(())
    }

    fn settle(&mut self, outcome: Outcome) -> Result<()> {
        if outcome == Outcome::Finished {
            assert_eq!(self.published, self.kept.len(), "what was kept must be durable by now");
        }
        self.settled = Some(outcome);
        Ok(())
    }
}

/// The workspaces as recovery finds them.
struct Here<'a> {
    lab: &'a Lab,
    /// What it was told to keep.
    kept: Vec<String>,
    settled: Vec<Outcome>,
    there: bool,
    /// Where that goes, if a test wants to see it.
    safety: Option<Safety<'a>>,
}

impl<'a> Here<'a> {
    fn new(lab: &'a Lab) -> Self {
        Self { lab, kept: Vec::new(), settled: Vec::new(), there: true, safety: None }
    }
}

/// A safety snapshot that only remembers what it was asked to keep.
struct Remember<'b, 'a>(&'b mut Here<'a>);

impl Workspaces for Here<'_> {
    fn open(&mut self, workspace: &WorkspaceId, path: &Path) -> Result<Option<Root>> {
        assert_eq!((workspace, path), (&self.lab.id(), &*self.lab.ws()));
        Ok(self.there.then(|| self.lab.root()))
    }

    fn late_writes(&mut self, _: &WorkspaceId, _: &str) -> Result<Box<dyn LateWrites + '_>> {
        Ok(Box::new(Remember(self)))
    }
}

impl LateWrites for Remember<'_, '_> {
    fn keep(&mut self, path: &RelPath, dir: BorrowedFd<'_>, name: &Name) -> Result<bool> {
        assert!(crate::fs::stat(dir, name.as_bytes()).is_ok(), "{path}: nothing is there to keep");
        self.0.kept.push(path.to_string());
        self.0.safety.as_mut().map_or(Ok(false), |safety| safety.keep(path, dir, name))
    }

    fn publish(&mut self) -> Result<()> {
        Ok(())
    }

    fn settle(&mut self, outcome: Outcome) -> Result<()> {
        self.0.settled.push(outcome);
        Ok(())
    }
}

/// Does something as a rollback reaches a step, as another program might at that moment.
struct At<F>(&'static str, std::sync::Mutex<F>);

impl<F> std::fmt::Debug for At<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl<F: FnMut(usize) -> std::io::Result<()> + Send + Sync> FaultHook for At<(usize, F)> {
    fn before(&self, _: Op) -> std::io::Result<()> {
        Ok(())
    }

    fn step(&self, name: &str) -> std::io::Result<()> {
        if name != self.0 {
            return Ok(());
        }
        let mut guard = self.1.lock().unwrap();
        guard.0 += 1;
        let count = guard.0;
        (guard.1)(count)
    }
}

/// A disk on which `act` happens each time the step is reached, with the number of times.
fn at_step(
    step: &'static str,
    act: impl FnMut(usize) -> std::io::Result<()> + Send + Sync + 'static,
) -> Disk {
    Disk::with_faults(std::sync::Arc::new(At(step, std::sync::Mutex::new((0, act)))))
}

fn now() -> Timestamp {
    let WallTime(nanos) = SystemClock::new().wall();
    Timestamp { secs: nanos.div_euclid(1_000_000_000), nanos: nanos.rem_euclid(1_000_000_000) as u32 }
}
