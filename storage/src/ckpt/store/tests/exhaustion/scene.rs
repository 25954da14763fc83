//! A store and a workspace to which something happens.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cofferdam_protocol::ckpt::WorkspaceId;
use cofferdam_tests::tree::Tree;
use cofferdam_tests::{effort, files};

use super::super::fixture::{Place, id, init, noise, shown};
use super::Striking;
use crate::ckpt::{Backend, Store};
use crate::disk::Disk;
use crate::peer::Peer;

/// What a user sees.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// The names of all snapshots, sorted.
    pub(super) listed: Vec<String>,
    pub(super) tree: Tree,
}

impl State {
    pub(super) fn is(&self, other: &Self) -> bool {
        self.listed == other.listed && self.tree.differences(&other.tree).is_empty()
    }

    /// Fails unless it is one of the two.
    #[track_caller]
    pub(super) fn assert_is(&self, one: &Self, other: &Self, what: &str) {
        if self.is(one) || self.is(other) {
            return;
        }
        let [first, second] = [one, other].map(|state| (&state.listed, state.tree.differences(&self.tree)));
        panic!("{what}: {:?} is neither {first:#?} nor {second:#?}", self.listed);
    }
}

pub(super) struct Scene {
    pub(super) place: Place,
    pub(super) hook: Arc<Striking>,
    /// Readings of the tree by name. That of a snapshot has the snapshot's.
    pub(super) readings: BTreeMap<String, Tree>,
    /// What a user sees before it happens.
    pub(super) before: State,
}

impl Scene {
    pub(super) fn new_in(dir: &Path) -> Self {
        let place = Place::new_in(dir);
        let tree = Tree::read(&place.ws());
        let before = State { listed: Vec::new(), tree };
        Self { place, hook: Arc::default(), readings: BTreeMap::new(), before }
    }

    /// A store whose disk fails when the hook is armed.
    pub(super) fn open(&self) -> Store {
        Store::open(self.place.options(Disk::with_faults(self.hook.clone()))).unwrap().0
    }

    pub(super) fn ws(&self) -> std::path::PathBuf {
        self.place.ws()
    }

    /// The workspace's id; registered only if it is not, which would be one operation more.
    pub(super) fn workspace(&self, store: &Store) -> WorkspaceId {
        match store.workspaces().unwrap().pop() {
            Some(known) => known.workspace.id,
            None => init(store, self.ws()).unwrap(),
        }
    }

    /// Takes a snapshot and remembers the tree it is of.
    pub(super) fn take(&mut self, store: &Store, name: &str) {
        self.read(name);
        let workspace = self.workspace(store);
        assert_eq!(super::checkpoint(store, &workspace, name), "created");
    }

    /// Remembers the tree.
    pub(super) fn read(&mut self, name: &str) {
        self.readings.insert(name.to_owned(), Tree::read(&self.ws()));
    }

    /// Everything is prepared.
    pub(super) fn settle(&mut self) {
        let in_front = match self.place.path("state").exists() {
            // A store of which nobody knows: recovery would begin.
            true if self.is_pending() => self.before.listed.clone(),
            true => names(&self.place.open()),
            false => Vec::new(),
        };
        self.before.listed = in_front;
        self.before.tree = match self.readings.get(BEFORE) {
            Some(reading) => reading.clone(),
            None => Tree::read(&self.ws()),
        };
    }

    fn is_pending(&self) -> bool {
        self.place.journals() > 0
    }

    pub(super) fn state(&self, store: &Store) -> State {
        State { listed: names(store), tree: Tree::read(&self.ws()) }
    }

    /// Gives the directory back every snapshot there is, and in the end the tree it has now.
    pub(super) fn assert_every_snapshot_is_its_tree(&self, store: &Store, what: &str) {
        for name in names(store) {
            let workspace = self.workspace(store);
            store.rollback(&Peer::own(), &workspace, &id(&name)).unwrap();
            self.readings[&name].assert_same(&Tree::read(&self.ws()), &format!("{what}: snapshot {name}"));
        }
    }

    /// Only what belongs to a store that is open, and to the workspaces it knows.
    pub(super) fn assert_nothing_left(&self, store: &Store, what: &str) {
        let names = |dir: &str| files::names(self.place.path("state").join(dir));
        assert_eq!(names(""), ["ckpt", "daemon.lock"], "{what}");
        let known =
            ["cache", "catalog.lock", "catalog.sqlite3", "catalog.sqlite3-wal", "collect.lock", "journal"];
        for name in names("ckpt") {
            assert!(known.contains(&&*name) || ["packs", "spare"].contains(&&*name), "{what}: {name}");
        }
        assert_eq!(names("ckpt/journal"), [""; 0], "{what}");
        assert_eq!(self.place.packs() as u64, store.size().unwrap().packs, "{what}");
        let workspaces = store.workspaces().unwrap();
        let caches: Vec<_> = workspaces.iter().map(|state| format!("{}.stat", state.workspace.id)).collect();
        for name in names("ckpt/cache") {
            assert!(caches.contains(&name), "{what}: {name}");
        }
        for name in files::names(self.ws()) {
            assert!(!name.starts_with(".cofferdam"), "{what}: {name}");
        }
        let root = std::fs::File::open(self.ws()).unwrap();
        let free = rustix::fs::flock(&root, rustix::fs::FlockOperation::NonBlockingLockExclusive);
        assert!(free.is_ok(), "{what}: the workspace is still locked");
    }
}

/// The reading of the tree before an operation that has begun already.
pub(super) const BEFORE: &str = "before";

fn names(store: &Store) -> Vec<String> {
    let mut names: Vec<_> = shown(store).into_iter().map(|(name, _)| name).collect();
    names.sort();
    names
}

/// A tree with something of every kind of change to come.
pub(super) fn fill(ws: &Path) {
    files::write(ws.join("same"), "same");
    files::write(ws.join("content"), "target");
    files::write(ws.join("metadata"), "same");
    files::write(ws.join("came/back"), "x");
    files::write(ws.join("turned/file"), "x");
    files::write(ws.join("a"), "linked");
    files::hard_link(ws.join("a"), ws.join("b"));
    files::symlink("one", ws.join("link"));
    files::write(ws.join("locked/file"), "x");
    for n in 1..effort::rounds(1) {
        files::write(ws.join(format!("more-{n}/file")), noise(n, 3000));
    }
    files::chmod(ws.join("came"), 0o555);
    files::chmod(ws.join("locked"), 0o555);
    rest(ws, 1_500_000_000);
}

/// Changes it in every way.
pub(super) fn change(ws: &Path) {
    files::write(ws.join("content"), "live");
    files::chmod(ws.join("metadata"), 0o600);
    files::remove(ws.join("came"));
    files::remove(ws.join("turned"));
    files::write(ws.join("turned"), "now a file");
    files::remove(ws.join("b"));
    files::write(ws.join("b"), "no link");
    files::remove(ws.join("link"));
    files::symlink("two", ws.join("link"));
    files::chmod(ws.join("locked"), 0o755);
    files::write(ws.join("locked/more"), "y");
    for n in 1..effort::rounds(1) {
        files::remove(ws.join(format!("more-{n}")));
        files::write(ws.join(format!("extra-{n}/file")), noise(n + 1000, 3000));
    }
    files::chmod(ws.join("locked"), 0o555);
    files::write(ws.join("new/file"), "new");
    files::chmod(ws.join("new"), 0o555);
    rest(ws, 1_600_000_000);
}

/// Everything was modified long ago, and each directory at its own time.
fn rest(ws: &Path, secs: i64) {
    let tree = Tree::read(ws);
    for (n, path) in tree.paths().enumerate() {
        use std::os::unix::ffi::OsStrExt;
        files::set_mtime(ws.join(std::ffi::OsStr::from_bytes(path)), secs + n as i64, n as i64 + 7);
    }
}
