//! Removing snapshots, and reclaiming what they held.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use diesel::Connection;
use diesel::connection::SimpleConnection;

use super::fixture::*;
use crate::ckpt::error::Error;
use crate::ckpt::model::*;
use crate::ckpt::{Backend, Store};
use crate::disk::{Disk, FaultHook, Op};
use crate::peer::Peer;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[test]
fn removal_is_all_or_none() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    match store.delete(&Peer::own(), &ws, &[id("one"), id("none")], Removal::Unlink) {
        Err(Error::SnapshotNotFound(name)) => assert_eq!(name, id("none")),
        other => panic!("{other:?}"),
    }
    assert_eq!(shown(&store).len(), 1);
    store.delete(&Peer::own(), &ws, &[id("one")], Removal::Unlink).unwrap();
    assert!(shown(&store).is_empty());
}

#[test]
fn the_order_is_that_in_which_snapshots_were_taken_whatever_the_clock_says_and_removal_has_none() {
    for order in [["b", "d"], ["d", "b"]] {
        let place = Place::with_files();
        let store = place.open();
        let ws = init(&store, place.ws()).unwrap();
        // Forward, back, and twice the same.
        for (name, hours) in [("c", 5), ("b", 1), ("e", 9), ("d", 1), ("a", 0)] {
            place.clock.set_ahead(hours * HOUR);
            checkpoint(&store, &ws, name);
        }
        let names = |store: &Store| shown(store).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&store), ["c", "b", "e", "d", "a"]);
        store.delete(&Peer::own(), &ws, &order.map(id), Removal::Unlink).unwrap();
        assert_eq!(names(&store), ["c", "e", "a"]);
        drop(store);
        let store = place.open();
        collect_all(&store);
        assert_eq!(names(&store), ["c", "e", "a"]);
        // The one that was taken last is the one with which a tree is compared, not the one with the latest time.
        let skip = NewSnapshot { skip_unchanged: true, ..named("f") };
        let same = store.checkpoint(&Peer::own(), &ws, &skip).unwrap();
        assert_eq!(same, Checkpointed::Unchanged(id("a")));
    }
}

#[test]
fn what_nothing_needs_is_reclaimed_and_the_rest_stays() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    place.write(&[("big", &noise(1, 400_000))]);
    checkpoint(&store, &ws, "two");
    place.write(&[("big", &noise(2, 400_000))]);
    checkpoint(&store, &ws, "three");
    let before = store.size().unwrap().pack_bytes;
    store.delete(&Peer::own(), &ws, &[id("two")], Removal::Unlink).unwrap();
    collect_all(&store);
    let after = store.size().unwrap().pack_bytes;
    assert!(after < before - 150_000, "{before} to {after}");
    assert_sound(&store, 2);
    place.write(&[("big", "small")]);
    store.rollback(&Peer::own(), &ws, &id("three")).unwrap();
    assert_eq!(place.read("big"), noise(2, 400_000));
}

#[test]
fn a_pack_that_is_mostly_garbage_is_rewritten() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    place.write(&[("keep", &noise(1, 50_000)), ("drop", &noise(2, 400_000))]);
    checkpoint(&store, &ws, "one");
    place.remove("drop");
    checkpoint(&store, &ws, "two");
    store.delete(&Peer::own(), &ws, &[id("one")], Removal::Unlink).unwrap();
    let before = store.size().unwrap().pack_bytes;
    collect_all(&store);
    let after = store.size().unwrap().pack_bytes;
    assert!(after < before / 3, "{before} to {after}");
    assert_sound(&store, 1);
    place.remove("keep");
    store.rollback(&Peer::own(), &ws, &id("two")).unwrap();
    assert_eq!(place.read("keep"), noise(1, 50_000));
}

#[test]
fn the_trash_is_kept_for_seven_days() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    place.write(&[("big", &noise(1, 400_000))]);
    checkpoint(&store, &ws, "one");
    place.remove("big");
    checkpoint(&store, &ws, "two");
    let before = store.size().unwrap().pack_bytes;
    store.delete(&Peer::own(), &ws, &[id("one")], Removal::Trash).unwrap();
    place.clock.advance(7 * DAY - HOUR);
    collect_all(&store);
    assert_eq!(store.size().unwrap().pack_bytes, before);
    place.clock.advance(2 * HOUR);
    collect_all(&store);
    assert!(store.size().unwrap().pack_bytes < before / 2);
    assert_sound(&store, 1);
}

#[test]
fn of_a_forgotten_workspace_nothing_is_left_after_the_trash_is_emptied() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    let tree = place.tree();
    store.recover(&Peer::own(), &ws).unwrap();
    assert_eq!(place.tree(), tree);
    collect_all(&store);
    assert_ne!(store.size().unwrap().objects, 0);
    place.clock.advance(8 * DAY);
    collect_all(&store);
    assert_eq!(
        store.size().unwrap(),
        StoreSize { index_bytes: store.catalog.bytes(), ..StoreSize::default() }
    );
    assert_eq!(place.packs(), 0);
    let again = store.init(&Peer::own(), &place.ws()).unwrap();
    assert!(again.snapshots.is_empty());
}

#[test]
fn collection_stops_at_its_budget_and_goes_on_the_next_time() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    for n in 0..6 {
        place.write(&[("keep", &noise(n, 20_000)), ("drop", &noise(n + 100, 100_000))]);
        checkpoint(&store, &ws, &format!("with{n}"));
        place.remove("drop");
        checkpoint(&store, &ws, &format!("without{n}"));
        store.delete(&Peer::own(), &ws, &[id(&format!("with{n}"))], Removal::Unlink).unwrap();
    }
    let mut calls = 1;
    while store.collect(1).unwrap() {
        calls += 1;
    }
    assert!(calls >= 6, "{calls}");
    assert_sound(&store, 6);
    assert!(store.size().unwrap().pack_bytes < 6 * 40_000);
}

/// A disk on which no file can be made while this is set.
#[derive(Debug, Default)]
struct NoNewFiles(AtomicBool);

impl FaultHook for NoNewFiles {
    fn before(&self, op: Op) -> io::Result<()> {
        match op == Op::Create && self.0.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn on_a_full_disk_what_nothing_needs_goes_although_nothing_can_be_rewritten() {
    let place = Place::with_files();
    let hook = Arc::new(NoNewFiles::default());
    let store = Store::open(place.options(Disk::with_faults(hook.clone()))).unwrap().0;
    let ws = init(&store, place.ws()).unwrap();
    place.write(&[("keep", &noise(1, 50_000)), ("drop", &noise(2, 400_000))]);
    checkpoint(&store, &ws, "one");
    place.write(&[("drop", &noise(3, 100_000))]);
    checkpoint(&store, &ws, "two");
    place.remove("drop");
    checkpoint(&store, &ws, "three");
    store.delete(&Peer::own(), &ws, &[id("one"), id("two")], Removal::Unlink).unwrap();
    assert_eq!(place.packs(), 3);
    hook.0.store(true, Ordering::Relaxed);
    assert!(matches!(store.collect(u64::MAX), Err(Error::NoSpace { .. })));
    assert_eq!(place.packs(), 2);
    hook.0.store(false, Ordering::Relaxed);
    let before = store.size().unwrap().pack_bytes;
    collect_all(&store);
    assert!(store.size().unwrap().pack_bytes < before / 3);
    assert_sound(&store, 1);
}

#[test]
fn any_number_of_packs_can_go_at_once() {
    let place = Place::with_files();
    drop(place.open());
    let catalog = place.path("state/ckpt/catalog.sqlite3");
    let mut database = diesel::SqliteConnection::establish(catalog.to_str().unwrap()).unwrap();
    // More than one statement of SQLite's takes values.
    let packs = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 33000)
                 INSERT INTO packs SELECT NULL, randomblob(16), iif(i % 2, 'live', 'condemned'), 1, 0 FROM n";
    database.batch_execute(packs).unwrap();
    drop(database);
    let store = place.open();
    assert_eq!(store.size().unwrap().packs, 33_000);
    collect_all(&store);
    assert_eq!(store.size().unwrap().packs, 0);
}

#[test]
fn nothing_is_reclaimed_twice_and_an_idle_store_is_left_alone() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    collect_all(&store);
    let before = place.disk_usage();
    for _ in 0..3 {
        assert!(!store.collect(u64::MAX).unwrap());
    }
    assert_eq!(place.disk_usage(), before);
}

#[test]
fn what_somebody_reads_stays_until_they_are_done() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    place.write(&[("big", &noise(1, 400_000))]);
    checkpoint(&store, &ws, "one");
    place.remove("big");
    checkpoint(&store, &ws, "two");
    let reading = store.readers.begin();
    store.delete(&Peer::own(), &ws, &[id("one")], Removal::Unlink).unwrap();
    let files = place.pack_files();
    collect_all(&store);
    assert!(files.iter().all(|file| file.exists()));
    drop(reading);
    collect_all(&store);
    assert!(!files.iter().all(|file| file.exists()));
    assert_sound(&store, 1);
}

#[test]
fn checkpoints_and_collection_at_once_lose_nothing() {
    let place = Place::with_files();
    let store = place.open();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|w| {
                let (store, place) = (&store, &place);
                scope.spawn(move || {
                    let dir = place.path(&format!("w{w}"));
                    std::fs::create_dir(&dir).unwrap();
                    let ws = init(store, &dir).unwrap();
                    for n in 0..12u64 {
                        // Content that comes and goes, in all workspaces.
                        std::fs::write(dir.join("f"), noise(n % 3, 3000)).unwrap();
                        std::fs::write(dir.join("g"), noise(n, 3000)).unwrap();
                        checkpoint(store, &ws, &format!("s{n}"));
                        if n > 1 {
                            store
                                .delete(&Peer::own(), &ws, &[id(&format!("s{}", n - 2))], Removal::Unlink)
                                .unwrap();
                        }
                    }
                })
            })
            .collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            store.collect(u64::MAX).unwrap();
        }
    });
    collect_all(&store);
    assert_sound(&store, 6);
}
