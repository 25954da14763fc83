//! Giving a tree back, and taking that back.

use super::fixture::*;
use crate::ckpt::error::Error;
use crate::ckpt::model::*;
use crate::ckpt::{Backend, Store};
use crate::disk::Disk;
use crate::peer::Peer;

fn roll_back(store: &Store, ws: &cofferdam_protocol::ckpt::WorkspaceId, to: &str) -> RolledBack {
    store.rollback(&Peer::own(), ws, &id(to)).unwrap()
}

#[test]
fn a_rollback_can_be_undone_and_done_again() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    assert!(matches!(store.undo(&Peer::own(), &ws), Err(Error::NothingToUndo)));
    checkpoint(&store, &ws, "one");
    let old = place.tree();
    place.write(&[("a", "changed"), ("new/file", "x")]);
    place.remove("dir/b");
    let new = place.tree();
    roll_back(&store, &ws, "one");
    assert_eq!(place.tree(), old);
    let mut named = Vec::new();
    for _ in 0..2 {
        named.push(store.undo(&Peer::own(), &ws).unwrap().rollback);
        assert_eq!(place.tree(), new);
        named.push(store.undo(&Peer::own(), &ws).unwrap().rollback);
        assert_eq!(place.tree(), old);
    }
    let kinds: Vec<_> = named.iter().map(|rollback| rollback.kind.clone()).collect();
    use RollbackKind::{To, Undo};
    assert_eq!(kinds, [To(id("one")), Undo, Undo, Undo]);
    named.dedup_by_key(|rollback| rollback.operation.clone());
    assert_eq!(named.len(), 4, "each is named once");
    assert_eq!(shown(&store).len(), 1);
    assert_sound(&store, 1);
}

#[test]
fn a_rollback_that_has_nothing_to_do_leaves_the_one_before_it_to_be_undone() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    place.write(&[("a", "changed")]);
    assert_ne!(roll_back(&store, &ws, "one"), RolledBack::default());
    checkpoint(&store, &ws, "two");
    assert_eq!(roll_back(&store, &ws, "two"), RolledBack::default());
    // Nor is there anything in the trash of rollbacks that had nothing to do.
    assert_eq!(store.trash(&Peer::own()).unwrap(), []);
    // What it says is which one that was.
    assert_eq!(store.undo(&Peer::own(), &ws).unwrap().rollback.kind, RollbackKind::To(id("one")));
    assert_eq!(place.read("a"), "changed");
}

#[test]
fn what_can_be_undone_is_still_known_after_a_restart() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    place.write(&[("a", "changed")]);
    roll_back(&store, &ws, "one");
    drop(store);
    let (store, report) = Store::open(place.options(Disk::default())).unwrap();
    assert_eq!(report, RecoveryReport::default());
    store.undo(&Peer::own(), &ws).unwrap();
    assert_eq!(place.read("a"), "changed");
}

#[test]
fn a_rollback_that_cannot_begin_leaves_nothing_to_undo() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    place.write(&[("a", "changed")]);
    let tree = place.tree();
    place.destroy_packs();
    match store.rollback(&Peer::own(), &ws, &id("one")) {
        Err(Error::SnapshotMissing(name)) => assert_eq!(name, id("one")),
        other => panic!("{other:?}"),
    }
    assert_eq!(place.tree(), tree);
    assert!(shown(&store)[0].1.missing);
    assert!(matches!(store.undo(&Peer::own(), &ws), Err(Error::NothingToUndo)));
    assert_eq!(store.trash(&Peer::own()).unwrap(), []);
}

#[test]
fn content_that_is_damaged_is_found_before_anything_is_touched() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    place.write(&[("big", &noise(1, 100_000)), ("dir/b", "other")]);
    checkpoint(&store, &ws, "two");
    place.write(&[("big", "work of today"), ("dir/b", "work of today"), ("new", "n")]);
    place.remove("a");
    let tree = place.tree();
    drop(store);
    let mut packs = place.pack_files();
    packs.sort_by_key(|pack| pack.metadata().unwrap().len());
    let largest = packs.last().unwrap();
    let mut bytes = std::fs::read(largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(largest, bytes).unwrap();
    let store = place.open();
    match store.rollback(&Peer::own(), &ws, &id("two")) {
        Err(Error::SnapshotMissing(name)) => assert_eq!(name, id("two")),
        other => panic!("{other:?}"),
    }
    assert_eq!(place.tree(), tree, "and nothing of ours is left in it");
    assert!(matches!(store.undo(&Peer::own(), &ws), Err(Error::NothingToUndo)));
    // The one beside it is as good as ever.
    roll_back(&store, &ws, "one");
    assert!(!std::fs::exists(place.path("ws/big")).unwrap());
}

#[test]
fn an_unknown_snapshot_is_not_found_and_costs_nothing() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    assert!(matches!(store.rollback(&Peer::own(), &ws, &id("none")), Err(Error::SnapshotNotFound(_))));
    assert_eq!(store.size().unwrap().packs, 0);
}

#[test]
fn a_checkpoint_after_a_rollback_has_the_tree_that_is_there() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    place.write(&[("a", "changed")]);
    checkpoint(&store, &ws, "two");
    roll_back(&store, &ws, "one");
    checkpoint(&store, &ws, "three");
    let live = |name: &str| {
        store.diff(&Peer::own(), &ws, &TreeRef::Snapshot(id(name)), &TreeRef::Snapshot(id("three"))).unwrap()
    };
    assert_eq!(live("one"), []);
    assert_eq!(live("two").len(), 1);
    assert_sound(&store, 3);
}

#[test]
fn the_trees_before_older_rollbacks_go_to_the_trash() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    for n in 0..3 {
        place.write(&[("a", &format!("version {n}"))]);
        roll_back(&store, &ws, "one");
    }
    let trees = store.catalog.every_tree().unwrap();
    let trashed = trees.iter().filter(|tree| tree.name.ends_with("(in the trash)")).count();
    assert_eq!((trees.len(), trashed), (4, 2));
}
