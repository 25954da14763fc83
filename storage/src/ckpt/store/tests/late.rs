//! Late writes go into the safety snapshot, and undo brings them back.

use std::fs::File;
use std::os::fd::AsFd;

use super::super::late::Late;
use super::fixture::*;
use crate::ckpt::catalog::{NewRow, Target};
use crate::ckpt::model::RollbackKind;
use crate::ckpt::rollback::{LateWrites, Outcome};
use crate::ckpt::{Backend, Store};
use crate::clock::Clock;
use crate::path::{Name, RelPath};
use crate::peer::Peer;

fn path(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).unwrap()
}

/// Publishes a safety snapshot, gives `work` what a rollback gets, and lets the rollback end as `outcome`.
fn with_late(store: &Store, place: &Place, op: &str, outcome: Outcome, work: impl FnOnce(&mut Late<'_>)) {
    let ws = init(store, place.ws()).unwrap();
    let held = store.hold(&Peer::own(), &ws).unwrap();
    let now = place.clock.wall();
    store
        .capture_live(&Peer::own(), &held, |captured| {
            Ok(Some(Target::Snapshot(NewRow::safety(
                held.row.key,
                op,
                &RollbackKind::Unknown,
                now,
                &captured.id,
            ))))
        })
        .unwrap();
    let safety = store.catalog.safety_of(held.row.key, op).unwrap();
    let ignore = held.ignore.clone();
    let mut late = Late::new(store, &Peer::own(), &held.row, held.root.clone(), ignore, op, safety);
    work(&mut late);
    late.publish().unwrap();
    late.settle(outcome).unwrap();
}

/// A directory of the user's, into which a rollback has moved what it displaced.
fn staging(place: &Place) -> (File, Name) {
    std::fs::create_dir(place.path("staging")).unwrap();
    (File::open(place.path("staging")).unwrap(), Name::new(&b"0"[..]).unwrap())
}

#[test]
fn what_was_written_too_late_comes_back_with_undo() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    let (dir, name) = staging(&place);
    with_late(&store, &place, "op", Outcome::Finished, |late| {
        std::fs::write(place.path("staging/0"), "first").unwrap();
        assert!(late.keep(&path("a"), dir.as_fd(), &name).unwrap(), "its time differs");
        std::fs::write(place.path("staging/0"), "too late").unwrap();
        assert!(late.keep(&path("a"), dir.as_fd(), &name).unwrap());
        assert!(!late.keep(&path("a"), dir.as_fd(), &name).unwrap());
        assert!(late.keep(&path("dir/other/x"), dir.as_fd(), &name).unwrap());
        let none = Name::new(&b"none"[..]).unwrap();
        assert!(!late.keep(&path("b"), dir.as_fd(), &none).unwrap());
    });
    store.undo(&Peer::own(), &ws).unwrap();
    assert_eq!(place.read("a"), "too late");
    assert_eq!(place.read("dir/other/x"), "too late");
    assert_eq!(place.read("dir/b"), "second");
    assert_sound(&store, 0);
}

#[test]
fn a_whole_directory_can_be_too_late() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    let (dir, name) = staging(&place);
    with_late(&store, &place, "op", Outcome::Finished, |late| {
        std::fs::create_dir_all(place.path("staging/0/in")).unwrap();
        std::fs::write(place.path("staging/0/in/f"), "inside").unwrap();
        assert!(late.keep(&path("dir"), dir.as_fd(), &name).unwrap());
    });
    store.undo(&Peer::own(), &ws).unwrap();
    assert_eq!(place.read("dir/in/f"), "inside");
    assert!(!place.ws().join("dir/b").exists());
    assert_sound(&store, 0);
}

#[test]
fn hard_links_of_what_was_written_too_late_are_files_of_their_own() {
    let place = Place::with_files();
    std::fs::hard_link(place.ws().join("a"), place.ws().join("a2")).unwrap();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    let (dir, name) = staging(&place);
    with_late(&store, &place, "op", Outcome::Finished, |late| {
        std::fs::write(place.path("staging/0"), "too late").unwrap();
        assert!(late.keep(&path("a"), dir.as_fd(), &name).unwrap());
    });
    store.undo(&Peer::own(), &ws).unwrap();
    assert_eq!((place.read("a").as_str(), place.read("a2").as_str()), ("too late", "first"));
}

#[test]
fn a_rollback_that_was_taken_back_keeps_late_writes_in_the_trash() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    let (dir, name) = staging(&place);
    with_late(&store, &place, "op", Outcome::TakenBack, |late| {
        std::fs::write(place.path("staging/0"), "too late").unwrap();
        assert!(late.keep(&path("a"), dir.as_fd(), &name).unwrap());
    });
    assert!(store.undo(&Peer::own(), &ws).is_err());
    let trees = store.catalog.every_tree().unwrap();
    assert_eq!(trees.len(), 1);
    assert!(trees[0].name.starts_with("safety snapshot 'op' of "), "{trees:?}");
    assert!(trees[0].name.ends_with("(in the trash)"), "{trees:?}");
    let warnings = store.manifest(&trees[0].manifest).unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert_sound(&store, 0);
}

#[test]
fn late_writes_are_kept_even_if_the_safety_snapshot_is_gone() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    let (dir, name) = staging(&place);
    {
        let held = store.hold(&Peer::own(), &ws).unwrap();
        let mut late =
            Late::new(&store, &Peer::own(), &held.row, held.root.clone(), held.ignore.clone(), "op", None);
        std::fs::write(place.path("staging/0"), "too late").unwrap();
        assert!(late.keep(&path("deep/down"), dir.as_fd(), &name).unwrap());
        late.publish().unwrap();
        late.settle(Outcome::Finished).unwrap();
    }
    store.undo(&Peer::own(), &ws).unwrap();
    assert_eq!(place.read("deep/down"), "too late");
    assert_sound(&store, 0);
}
