//! Random trees, random changes and random operations, compared with plain readings of the trees after each step.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

use cofferdam_protocol::ckpt::WorkspaceId;
use cofferdam_tests::dice::Dice;
use cofferdam_tests::tree::{Node, Tree};
use cofferdam_tests::{effort, files};

use super::fixture::{Place, collect_all, id, init};
use super::random_changes::Changes;
use crate::ckpt::error::Error;
use crate::ckpt::model::*;
use crate::ckpt::{Backend, Store};
use crate::peer::Peer;

/// Longer than the trash keeps anything.
const LONG: Duration = Duration::from_secs(8 * 24 * 60 * 60);

/// The workspaces.
const INNER: usize = 0;
const OUTER: usize = 1;
const BESIDE: usize = 2;

/// A workspace and what it ought to be like.
struct Space {
    id: WorkspaceId,
    root: PathBuf,
    /// In the order in which they were taken.
    taken: Vec<Taken>,
    /// What undo gives back.
    undo: Option<Tree>,
}

struct Taken {
    name: String,
    tree: Tree,
    pinned: bool,
}

struct World {
    place: Place,
    /// `None` only while it is opened again.
    store: Option<Store>,
    spaces: Vec<Space>,
    dice: Dice,
    /// How many snapshots were taken.
    names: u64,
    story: Vec<String>,
}

#[test]
fn whatever_is_done_in_whatever_order_every_tree_comes_back_exactly() {
    for seed in effort::seeds(8) {
        let mut world = World::new(seed);
        let walked = catch_unwind(AssertUnwindSafe(|| world.walk(45)));
        assert!(walked.is_ok(), "COFFERDAM_TEST_SEED={seed} fails after\n{}", world.story.join("\n"));
    }
}

impl World {
    /// Three workspaces: one in another, and one beside them.
    fn new(seed: u64) -> Self {
        let place = Place::new();
        let store = place.open();
        // The inner one first: a directory inside a workspace is none of its own any more.
        let roots = [place.ws().join("nest"), place.ws(), place.path("other")];
        let spaces = roots.into_iter().map(|root| {
            files::mkdir(&root);
            let id = init(&store, &root).unwrap();
            Space { id, root, taken: Vec::new(), undo: None }
        });
        let spaces = spaces.collect();
        Self { place, store: Some(store), spaces, dice: Dice::new(seed), names: 0, story: Vec::new() }
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn walk(&mut self, steps: u64) {
        for of in [INNER, OUTER, BESIDE] {
            self.changes(of, |changes| {
                changes.plant();
                format!("plant {:?}", changes.root)
            });
        }
        for _ in 0..steps {
            self.step();
        }
        self.everything_comes_back();
        self.collect_to_the_end();
        self.everything_comes_back();
    }

    fn changes(&mut self, of: usize, change: impl FnOnce(&mut Changes<'_>) -> String) {
        let fixed: Vec<PathBuf> = self.spaces.iter().map(|space| space.root.clone()).collect();
        let others = fixed.iter().filter(|root| **root != fixed[of]).cloned().collect::<Vec<_>>();
        let mut changes = Changes { dice: &mut self.dice, root: &fixed[of], fixed: &fixed, others: &others };
        let done = change(&mut changes);
        self.story.push(done);
    }

    fn step(&mut self) {
        // The outer workspace is at work more often than the others.
        let of = *self.dice.pick(&[INNER, OUTER, OUTER, OUTER, BESIDE]).unwrap();
        for _ in 0..self.dice.below(6) {
            self.changes(of, |changes| changes.change());
        }
        let dice = self.dice.below(100);
        self.story.push(format!("{dice} in {:?}", self.spaces[of].root));
        match dice {
            0..30 => self.checkpoint(of),
            30..48 => self.rollback(of),
            48..62 => self.undo(of),
            62..70 => self.delete(of),
            70..78 => self.diff(of),
            78..88 => self.collect(),
            88..92 => self.reopen(),
            92..94 if of != INNER => self.forget(of),
            94..96 => self.store().prime(&Peer::own(), &self.spaces[of].id).unwrap(),
            _ => self.sound(),
        }
        self.list();
    }

    fn checkpoint(&mut self, of: usize) {
        self.names += 1;
        let skip_unchanged = self.dice.percent(40);
        let pinned = self.dice.percent(20);
        let name = format!("s{}", self.names);
        let space = &self.spaces[of];
        let new = NewSnapshot {
            id: id(&name),
            message: Some(name.clone()),
            metadata: None,
            pin: pinned,
            skip_unchanged,
            even_empty: false,
        };
        let before = Tree::read(&space.root);
        let done = self.store().checkpoint(&Peer::own(), &space.id, &new).unwrap();
        let after = Tree::read(&space.root);
        before.assert_same(&after, "a checkpoint changes nothing");
        before.assert_same_inodes(&after, before.paths(), "a checkpoint replaces nothing");
        let newest = space.taken.last();
        match done {
            Checkpointed::EmptyWorkspace => assert!(before.is_empty(), "it is not empty"),
            Checkpointed::Unchanged(same) => {
                let newest = newest.unwrap();
                assert!(skip_unchanged);
                assert_eq!(same, id(&newest.name));
                newest.tree.assert_same(&before, "said to be unchanged");
            }
            Checkpointed::Created(made) => {
                assert!(!before.is_empty(), "it is empty");
                let changed = newest.is_none_or(|newest| !newest.tree.differences(&before).is_empty());
                assert!(changed || !skip_unchanged, "nothing has changed");
                assert_eq!((made.id, made.pinned, made.missing), (id(&name), pinned, false));
                assert_eq!(
                    made.warnings,
                    0,
                    "{:?}",
                    self.store().warnings(&Peer::own(), &space.id, &id(&name))
                );
                self.spaces[of].taken.push(Taken { name, tree: before, pinned });
            }
        }
    }

    fn rollback(&mut self, of: usize) {
        let Some(to) = self.dice.pick(&self.spaces[of].taken) else { return };
        let (name, tree) = (id(&to.name), to.tree.clone());
        self.give_back(of, &tree, |store, ws| store.rollback(&Peer::own(), ws, &name));
    }

    fn undo(&mut self, of: usize) {
        match self.spaces[of].undo.clone() {
            Some(tree) => self.give_back(of, &tree, |store, ws| Ok(store.undo(&Peer::own(), ws)?.outcome)),
            None => {
                let undone = self.store().undo(&Peer::own(), &self.spaces[of].id);
                assert!(matches!(undone, Err(Error::NothingToUndo)), "{undone:?}");
            }
        }
    }

    fn give_back(
        &mut self,
        of: usize,
        wanted: &Tree,
        give_back: impl FnOnce(&Store, &WorkspaceId) -> crate::ckpt::error::Result<RolledBack>,
    ) {
        let space = &self.spaces[of];
        let before = Tree::read(&space.root);
        let done = give_back(self.store(), &space.id).unwrap();
        let after = Tree::read(&space.root);
        wanted.assert_same(&after, "given back");
        before.assert_same_inodes(&after, untouched(&before, wanted), "what does not differ is not touched");
        assert_eq!(done.warnings, []);
        let differences = wanted.differences(&before);
        // That something in a directory changed, and came back since, is not told as a change of the directory.
        let counts = |line: &&String| !line.contains(": mtime should be");
        assert!(done.changed == 0 || !differences.is_empty(), "{} changed", done.changed);
        assert!(done.changed > 0 || !differences.iter().any(|line| counts(&line)), "{differences:#?}");
        if !differences.is_empty() {
            self.spaces[of].undo = Some(before);
        }
    }

    fn delete(&mut self, of: usize) {
        let how = if self.dice.percent(70) { Removal::Unlink } else { Removal::Trash };
        let mut names = Vec::new();
        for _ in 0..1 + self.dice.below(3) {
            let taken = &mut self.spaces[of].taken;
            if !taken.is_empty() {
                let at = self.dice.below(taken.len() as u64) as usize;
                names.push(id(&taken.remove(at).name));
            }
        }
        self.store().delete(&Peer::own(), &self.spaces[of].id, &names, how).unwrap();
    }

    fn diff(&mut self, of: usize) {
        let space = &self.spaces[of];
        let live = Tree::read(&space.root);
        let mut end = || match self.dice.percent(40) {
            true => (TreeRef::Live, &live),
            false => match self.dice.pick(&space.taken) {
                Some(taken) => (TreeRef::Snapshot(id(&taken.name)), &taken.tree),
                None => (TreeRef::Live, &live),
            },
        };
        let ((from, old), (to, new)) = (end(), end());
        let changes = self.store().diff(&Peer::own(), &space.id, &from, &to).unwrap();
        assert!(changes.is_sorted_by(|one, other| one.path < other.path));
        let said: BTreeSet<String> = changes.iter().map(said).collect();
        let expected = expected_changes(old, new);
        let differences: Vec<_> = said.symmetric_difference(&expected).collect();
        assert!(differences.is_empty(), "from {from:?} to {to:?}: {differences:#?}");
    }

    fn list(&self) {
        let states = self.store().workspaces().unwrap();
        assert_eq!(states.len(), self.spaces.len());
        for space in &self.spaces {
            let state = states.iter().find(|state| state.workspace.id == space.id).unwrap();
            let shown: Vec<_> =
                state.snapshots.iter().map(|one| (one.id.as_str(), one.pinned, one.missing)).collect();
            let expected: Vec<_> = space.taken.iter().map(|one| (&*one.name, one.pinned, false)).collect();
            assert_eq!(shown, expected);
        }
    }

    fn collect(&mut self) {
        let budget = *self.dice.pick(&[1, 1_000, 100_000, u64::MAX]).unwrap();
        for _ in 0..1 + self.dice.below(4) {
            self.store().collect(budget).unwrap();
        }
        if self.dice.percent(30) {
            self.collect_to_the_end();
        }
    }

    /// With the trash emptied no more is left than what is needed takes, and as much again.
    fn collect_to_the_end(&mut self) {
        self.place.clock.set_ahead(LONG);
        collect_all(self.store());
        self.place.clock.set_ahead(Duration::ZERO);
        self.sound();
        let mut contents = BTreeMap::new();
        let mut entries = 0;
        let mut need = |tree: &Tree| {
            entries += tree.len() as u64;
            let nodes = tree.paths().filter_map(|path| tree.get(path)).filter_map(|node| node.content);
            contents.extend(nodes.map(|(len, hash)| (hash, len)));
        };
        for space in &self.spaces {
            space.taken.iter().map(|taken| &taken.tree).chain(&space.undo).for_each(&mut need);
            // The stat cache needs what the last operation found; that cannot be more than there is.
            need(&Tree::read(&space.root));
        }
        let needed: u64 = contents.values().sum::<u64>() + 300 * entries;
        let size = self.store().size().unwrap();
        // What was found last may be gone from the tree by now: the little that is allowed beyond.
        let bound = 2 * needed + 4_000_000;
        assert!(size.pack_bytes < bound, "{} bytes in packs, {needed} needed", size.pack_bytes);
    }

    fn reopen(&mut self) {
        self.store = None;
        let (store, report) = Store::open(self.place.options(crate::disk::Disk::default())).unwrap();
        assert_eq!(report.lines, Vec::<String>::new());
        self.store = Some(store);
    }

    /// Unregisters a workspace and registers it again: its snapshots are gone, the tree is as it was.
    fn forget(&mut self, of: usize) {
        let root = self.spaces[of].root.clone();
        let before = Tree::read(&root);
        self.store().recover(&Peer::own(), &self.spaces[of].id).unwrap();
        let id = init(self.store(), &root).unwrap();
        before.assert_same(&Tree::read(&root), "unregistered and registered again");
        self.spaces[of] = Space { id, root, taken: Vec::new(), undo: None };
    }

    fn sound(&self) {
        let report = self.store().check(true).unwrap();
        assert_eq!(report.damage, Vec::<String>::new());
        assert_eq!(report.snapshots, self.spaces.iter().map(|space| space.taken.len() as u64).sum::<u64>());
    }

    fn everything_comes_back(&mut self) {
        for of in 0..self.spaces.len() {
            for n in 0..self.spaces[of].taken.len() {
                let taken = &self.spaces[of].taken[n];
                let (name, tree) = (id(&taken.name), taken.tree.clone());
                self.story.push(format!("back to {name} in the end"));
                self.give_back(of, &tree, |store, ws| store.rollback(&Peer::own(), ws, &name));
            }
            for _ in 0..2 {
                self.undo(of);
            }
        }
    }
}

/// The paths that a rollback leaves alone: what is the same, and every directory that stays one.
fn untouched<'a>(before: &'a Tree, wanted: &'a Tree) -> impl Iterator<Item = &'a [u8]> {
    before.paths().filter(|path| {
        let (Some(old), Some(new)) = (before.get(path), wanted.get(path)) else { return false };
        let both_are_directories = kind(old) == FileKind::Directory && kind(new) == FileKind::Directory;
        let same = Node { inode: 0, ..old.clone() } == Node { inode: 0, ..new.clone() };
        both_are_directories || (same && old.linked_to.is_none())
    })
}

fn kind(node: &Node) -> FileKind {
    match node.mode & 0o170_000 {
        0o040_000 => FileKind::Directory,
        0o120_000 => FileKind::Symlink,
        0o010_000 => FileKind::Fifo,
        0o140_000 => FileKind::Socket,
        0o020_000 => FileKind::CharDevice,
        0o060_000 => FileKind::BlockDevice,
        _ => FileKind::File,
    }
}

fn said(change: &Change) -> String {
    let path = change.path.as_bytes().escape_ascii();
    match &change.kind {
        ChangeKind::Added(kind) => format!("+ {path} {kind:?}"),
        ChangeKind::Modified => format!("M {path}"),
        ChangeKind::Deleted(kind) => format!("- {path} {kind:?}"),
        ChangeKind::Renamed { from } => format!("R {} → {path}", from.as_bytes().escape_ascii()),
    }
}

/// The same as a plain comparison finds it.
fn expected_changes(old: &Tree, new: &Tree) -> BTreeSet<String> {
    type Key = (u64, [u8; 32], Vec<(u64, u64)>);
    let only = |one: &Tree, other: &Tree| -> BTreeMap<Vec<u8>, Node> {
        let paths = one.paths().filter(|path| other.get(path).is_none());
        paths.map(|path| (path.to_vec(), one.get(path).unwrap().clone())).collect()
    };
    let by_content = |nodes: &BTreeMap<Vec<u8>, Node>| {
        let mut found: BTreeMap<Key, Vec<Vec<u8>>> = BTreeMap::new();
        for (path, node) in nodes {
            if let Some((len @ 1.., hash)) = node.content {
                found.entry((len, hash, node.data.clone())).or_default().push(path.clone());
            }
        }
        found
    };
    let (mut deleted, mut added) = (only(old, new), only(new, old));
    let mut lines = BTreeSet::new();
    let added_by_content = by_content(&added);
    for (content, from) in by_content(&deleted) {
        if let ([from], Some([to])) = (&from[..], added_by_content.get(&content).map(|to| &to[..])) {
            lines.insert(format!("R {} → {}", from.escape_ascii(), to.escape_ascii()));
            deleted.remove(from);
            added.remove(to);
        }
    }
    lines.extend(added.iter().map(|(path, node)| format!("+ {} {:?}", path.escape_ascii(), kind(node))));
    lines.extend(deleted.iter().map(|(path, node)| format!("- {} {:?}", path.escape_ascii(), kind(node))));
    for path in old.paths() {
        let (Some(was), Some(is)) = (old.get(path), new.get(path)) else { continue };
        let looked_at = |node: &Node| Node { mtime: (0, 0), linked_to: None, inode: 0, ..node.clone() };
        if looked_at(was) != looked_at(is) {
            lines.insert(format!("M {}", path.escape_ascii()));
        }
    }
    lines
}
