//! The requests, one test each.

use std::time::Duration;

use cofferdam_tests::files;
use cofferdam_tests::tree::Tree;

use super::super::fixture::{collect_all, id, init, named, noise};
use super::scene::{BEFORE, Scene, change, fill};
use super::{Operation, Request};
use crate::ckpt::error::{Error, Result};
use crate::ckpt::model::Removal;
use crate::ckpt::{Backend, Store};
use crate::peer::Peer;

const NOTHING: fn(&Scene, &Store) = |_, _| {};

#[test]
fn registering_a_directory() {
    Operation {
        name: "init",
        prepare: |scene| {
            fill(&scene.ws());
            scene.open();
        },
        request: Request::To(|store, scene| init(store, scene.ws()).map(drop)),
        listed: &[],
        tree: None,
        at_last: |_, store| assert_eq!(store.workspaces().unwrap().len(), 1),
    }
    .survives_everything();
}

#[test]
fn the_first_checkpoint() {
    first_checkpoint().survives_everything();
}

pub(super) fn first_checkpoint() -> Operation {
    Operation {
        name: "first checkpoint",
        prepare: |scene| {
            fill(&scene.ws());
            scene.read("one");
            scene.open();
        },
        request: Request::To(|store, scene| take(store, scene, "one")),
        listed: &["one"],
        tree: None,
        at_last: NOTHING,
    }
}

#[test]
fn a_later_checkpoint() {
    later_checkpoint().survives_everything();
}

pub(super) fn later_checkpoint() -> Operation {
    Operation {
        name: "checkpoint",
        prepare: |scene| {
            one_and_changes(scene);
            scene.read("two");
        },
        request: Request::To(|store, scene| take(store, scene, "two")),
        listed: &["one", "two"],
        tree: None,
        at_last: NOTHING,
    }
}

#[test]
fn a_rollback() {
    rollback().survives_everything();
}

pub(super) fn rollback() -> Operation {
    Operation {
        name: "rollback",
        prepare: one_and_changes,
        request: Request::To(|store, scene| back(store, scene, "one")),
        listed: &["one"],
        tree: Some("one"),
        at_last: undo_gives_back_what_was_before,
    }
}

#[test]
fn an_undo() {
    an_undo_of_one().survives_everything();
}

pub(super) fn an_undo_of_one() -> Operation {
    Operation {
        name: "undo",
        prepare: |scene| {
            one_and_changes(scene);
            scene.read("changed");
            back(&scene.open(), scene, "one").unwrap();
        },
        request: Request::To(undo),
        listed: &["one"],
        tree: Some("changed"),
        at_last: undo_gives_back_what_was_before,
    }
}

#[test]
fn the_removal_of_a_snapshot() {
    removal().survives_everything();
}

pub(super) fn removal() -> Operation {
    Operation {
        name: "delete",
        prepare: three,
        request: Request::To(|store, scene| remove(store, scene, &["two"], Removal::Unlink)),
        listed: &["one", "three"],
        tree: None,
        at_last: NOTHING,
    }
}

#[test]
fn the_removal_of_a_snapshot_into_the_trash() {
    Operation {
        name: "delete into the trash",
        prepare: three,
        request: Request::To(|store, scene| remove(store, scene, &["two"], Removal::Trash)),
        listed: &["one", "three"],
        tree: None,
        at_last: NOTHING,
    }
    .survives_everything();
}

#[test]
fn the_removal_of_many_snapshots_at_once() {
    Operation {
        name: "cleanup",
        prepare: three,
        request: Request::To(|store, scene| remove(store, scene, &["one", "two"], Removal::Unlink)),
        listed: &["three"],
        tree: None,
        at_last: NOTHING,
    }
    .survives_everything();
}

#[test]
fn a_collection_that_removes_packs_and_writes_others_anew() {
    collection().survives_everything();
}

pub(super) fn collection() -> Operation {
    Operation {
        name: "collection",
        prepare: |scene| {
            three(scene);
            let store = scene.open();
            remove(&store, scene, &["one", "two"], Removal::Unlink).unwrap();
        },
        request: Request::To(|store, _| collect(store)),
        listed: &["three"],
        tree: None,
        at_last: |_, store| {
            collect_all(store);
            // Of the noise that is in no snapshot any more nothing is left.
            assert!(store.size().unwrap().pack_bytes < 100_000, "{:?}", store.size());
        },
    }
}

#[test]
fn the_trash_being_emptied() {
    Operation {
        name: "emptying the trash",
        prepare: |scene| {
            three(scene);
            remove(&scene.open(), scene, &["one", "two"], Removal::Trash).unwrap();
            scene.place.clock.advance(Duration::from_secs(8 * 24 * 60 * 60));
        },
        request: Request::To(|store, _| collect(store)),
        listed: &["three"],
        tree: None,
        at_last: NOTHING,
    }
    .survives_everything();
}

#[test]
fn a_workspace_being_forgotten() {
    forgetting().survives_everything();
}

pub(super) fn forgetting() -> Operation {
    Operation {
        name: "recover",
        prepare: one_and_changes,
        request: Request::To(|store, scene| {
            let known = store.workspaces()?;
            // Once it is done there is nothing to ask for.
            known.first().map_or(Ok(()), |state| store.recover(&Peer::own(), &state.workspace.id))?;
            assert_eq!(Tree::read(&scene.ws()), scene.before.tree);
            Ok(())
        }),
        listed: &[],
        tree: None,
        at_last: |_, store| assert!(store.workspaces().unwrap().is_empty()),
    }
}

#[test]
fn a_store_being_made() {
    Operation {
        name: "making a store",
        prepare: |scene| fill(&scene.ws()),
        request: Request::Open,
        listed: &[],
        tree: None,
        at_last: NOTHING,
    }
    .survives_everything();
}

#[test]
fn a_store_being_opened_after_a_checkpoint_was_cut_short() {
    Operation {
        name: "opening after a checkpoint was cut short",
        prepare: |scene| {
            one_and_changes(scene);
            die(scene, "checkpoint.captured", 0, |store, scene| take(store, scene, "two"));
        },
        request: Request::Open,
        listed: &["one"],
        tree: None,
        at_last: NOTHING,
    }
    .survives_everything();
}

/// A recovery from a rollback to `one` that was killed at a step.
fn recovery(name: &'static str, prepare: fn(&mut Scene), tree: &'static str) -> Operation {
    Operation { name, prepare, request: Request::Open, listed: &["one"], tree: Some(tree), at_last: NOTHING }
}

#[test]
fn a_recovery_that_takes_back() {
    recovery("recovery before the switch", |scene| die_rolling_back(scene, "rollback.staged", 0), BEFORE)
        .survives_everything();
}

#[test]
fn a_recovery_that_finishes() {
    finishing().survives_everything();
}

pub(super) fn finishing() -> Operation {
    recovery("recovery in the switch", |scene| die_rolling_back(scene, "rollback.switching", 4), "one")
}

#[test]
fn a_recovery_that_cleans_up() {
    recovery(
        "recovery after the switch",
        |scene| die_rolling_back(scene, "rollback.done-journaled", 0),
        "one",
    )
    .survives_everything();
}

#[test]
fn a_recovery_over_work_that_was_done_meanwhile() {
    fn work(scene: &mut Scene) {
        die_rolling_back(scene, "rollback.switching", 4);
        for (path, text) in NEW_WORK {
            files::write(scene.ws().join(path), text);
        }
        // The old tree and the new one are those with the work in them, and that has its own times.
        scene.read("worked");
    }
    let covered: Vec<_> = [super::Fault::Error, super::Fault::FullDisk, super::Fault::Death]
        .into_iter()
        .map(|fault| (0..).find(|nth| !newer_work_survives(work, fault, *nth)).unwrap_or_default())
        .collect();
    super::report("recovery over new work", &covered);
}

/// At a name that no step is about, at one that is switched already, and at one that is not yet.
const NEW_WORK: [(&str, &str); 3] =
    [("written-meanwhile", "new"), ("content", "newer than both"), ("same", "newer too")];

fn newer_work_survives(prepare: fn(&mut Scene), fault: super::Fault, nth: u64) -> bool {
    let mut scene = Scene::new_in(&std::env::temp_dir());
    prepare(&mut scene);
    let what = format!("{fault:?} at operation {nth}");
    scene.hook.arm(fault, nth);
    let disk = crate::disk::Disk::with_faults(scene.hook.clone());
    drop(Store::open(scene.place.options(disk)));
    let struck = scene.hook.disarm();
    let store = scene.place.open();
    for (path, text) in NEW_WORK {
        assert_eq!(scene.place.read(path), text, "{what}: {path}");
    }
    super::assert_sound(&store, 1);
    scene.assert_every_snapshot_is_its_tree(&store, &what);
    // The work is in what undo gives back.
    undo(&store, &scene).unwrap();
    for (path, text) in NEW_WORK {
        assert_eq!(scene.place.read(path), text, "{what}, rolled back and undone: {path}");
    }
    drop(store);
    let store = scene.place.open();
    collect_all(&store);
    super::assert_sound(&store, 1);
    scene.assert_nothing_left(&store, &what);
    struck
}

fn take(store: &Store, scene: &Scene, name: &str) -> Result<()> {
    let workspace = init(store, scene.ws())?;
    store.checkpoint(&Peer::own(), &workspace, &named(name)).map(drop)
}

fn back(store: &Store, scene: &Scene, name: &str) -> Result<()> {
    store.rollback(&Peer::own(), &scene.workspace(store), &id(name)).map(drop)
}

fn undo(store: &Store, scene: &Scene) -> Result<()> {
    store.undo(&Peer::own(), &scene.workspace(store)).map(drop)
}

fn remove(store: &Store, scene: &Scene, names: &[&str], how: Removal) -> Result<()> {
    let names: Vec<_> = names.iter().map(|name| id(name)).collect();
    store.delete(&Peer::own(), &scene.workspace(store), &names, how)
}

fn collect(store: &Store) -> Result<()> {
    while store.collect(u64::MAX)? {}
    Ok(())
}

/// A snapshot `one`, and another tree.
fn one_and_changes(scene: &mut Scene) {
    fill(&scene.ws());
    let store = scene.open();
    scene.take(&store, "one");
    change(&scene.ws());
}

/// Three snapshots, with packs of which the first two hold a little of what the third needs.
fn three(scene: &mut Scene) {
    fill(&scene.ws());
    let store = scene.open();
    for (n, name) in (0..).zip(["one", "two", "three"]) {
        files::write(scene.ws().join("noise"), noise(n, 600_000));
        files::write(scene.ws().join(format!("stays-{n}")), noise(n + 10, 5000));
        if name == "three" {
            files::remove(scene.ws().join("noise"));
        }
        scene.take(&store, name);
    }
}

/// Ends everything at a step of a request, as for a process that is killed there.
fn die(scene: &Scene, step: &'static str, before: u64, request: fn(&Store, &Scene) -> Result<()>) {
    let store = scene.open();
    scene.hook.arm_step(step, before);
    let result = request(&store, scene);
    assert!(matches!(result, Err(Error::Io { .. }) | Ok(())), "{result:?}");
    drop(store);
    assert!(scene.hook.disarm(), "{step} was not reached");
}

fn die_rolling_back(scene: &mut Scene, step: &'static str, before: u64) {
    one_and_changes(scene);
    scene.read(BEFORE);
    scene.before.listed = vec!["one".to_owned()];
    die(scene, step, before, |store, scene| back(store, scene, "one"));
    assert_eq!(scene.place.journals(), 1);
}

fn undo_gives_back_what_was_before(scene: &Scene, store: &Store) {
    undo(store, scene).unwrap();
    scene.before.tree.assert_same(&Tree::read(&scene.ws()), "undone");
}
