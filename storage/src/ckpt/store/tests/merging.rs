//! Small packs become few.

use cofferdam_protocol::ckpt::WorkspaceId;
use cofferdam_tests::files;
use rustix::io::Errno;

use super::fixture::*;
use crate::ckpt::{Backend, Store};
use crate::disk::Disk;
use crate::disk::testing::Faults;
use crate::peer::Peer;

/// Takes that many snapshots, each with a change of its own.
fn take(store: &Store, place: &Place, ws: &WorkspaceId, numbers: std::ops::Range<u64>) {
    for n in numbers {
        place.write(&[("changing", &noise(n, 500)), (&format!("dir/from {n} on"), "new")]);
        checkpoint(store, ws, &format!("s{n}"));
    }
}

#[test]
fn however_many_checkpoints_there_are_packs_stay_few_and_every_snapshot_comes_back() {
    const MANY: u64 = 100;
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    for n in (0..MANY).step_by(10) {
        take(&store, &place, &ws, n..n + 10);
        collect_all(&store);
        assert!(place.packs() < 32, "{} packs after {n} checkpoints", place.packs());
    }
    assert_sound(&store, MANY);
    assert_eq!(store.size().unwrap().packs, place.packs() as u64);
    for n in (0..MANY).step_by(9) {
        store.rollback(&Peer::own(), &ws, &id(&format!("s{n}"))).unwrap();
        assert_eq!(place.read("changing"), noise(n, 500));
        assert_eq!(files::names(place.ws().join("dir")).len() as u64, n + 3);
    }
}

#[test]
fn packs_that_were_merged_are_left_alone_and_so_is_a_handful() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    take(&store, &place, &ws, 0..5);
    collect_all(&store);
    assert_eq!(place.packs(), 5);
    take(&store, &place, &ws, 5..20);
    collect_all(&store);
    let merged = place.pack_files();
    assert_eq!(merged.len(), 5, "sixteen have become one");
    take(&store, &place, &ws, 20..21);
    collect_all(&store);
    assert!(merged.iter().all(|pack| pack.exists()));
}

#[test]
fn merging_with_the_least_budget_comes_to_an_end() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    take(&store, &place, &ws, 0..36);
    let mut calls = 1;
    while store.collect(1).unwrap() {
        calls += 1;
        assert!(calls < 200);
    }
    assert!(calls > 2, "{calls}");
    assert_eq!(place.packs(), 6);
    assert_sound(&store, 36);
}

#[test]
fn merging_that_is_cut_short_anywhere_loses_nothing_and_leaves_nothing() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    take(&store, &place, &ws, 0..17);
    drop(store);
    let root = place.path("state/ckpt");
    let sound = contents(&root);
    for nth in 0.. {
        put_back(&root, &sound);
        let faults = Faults::new(nth, Errno::IO, true);
        if let Ok((store, _)) = Store::open(place.options(Disk::with_faults(faults.clone()))) {
            while let Ok(true) = store.collect(u64::MAX) {}
        }
        let left = place.packs();
        let store = place.open();
        assert_sound(&store, 17);
        collect_all(&store);
        assert_sound(&store, 17);
        assert_eq!(place.packs(), 2, "operation {nth}");
        if !faults.happened() {
            assert_eq!(left, 2, "merged before the store was opened again");
            break;
        }
    }
}
