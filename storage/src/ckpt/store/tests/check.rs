//! Finding damage.

use super::fixture::*;
use crate::ckpt::error::Error;
use crate::ckpt::model::*;
use crate::ckpt::{Backend, check_state_dir};
use crate::peer::Peer;

#[test]
fn a_sound_store_is_sound_from_inside_and_from_outside() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    place.write(&[("a", "changed")]);
    checkpoint(&store, &ws, "two");
    store.rollback(&Peer::own(), &ws, &id("one")).unwrap();
    store.delete(&Peer::own(), &ws, &[id("two")], Removal::Trash).unwrap();
    for read_data in [false, true] {
        let inside = store.check(read_data).unwrap();
        let outside = check_state_dir(&place.path("state"), read_data).unwrap();
        assert_eq!(inside, outside);
        assert_eq!((inside.snapshots, inside.damage.len()), (1, 0));
        assert!(inside.objects > 5);
        assert_eq!(inside.bytes_read > 0, read_data);
    }
    drop(store);
    assert_eq!(check_state_dir(&place.path("state"), true).unwrap().damage, Vec::<String>::new());
}

#[test]
fn a_directory_without_a_store_is_said_to_be_one() {
    let place = Place::new();
    match check_state_dir(&place.path("ws"), false) {
        Err(Error::InvalidPath(text)) => assert!(text.ends_with("holds no store"), "{text}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(std::fs::read_dir(place.ws()).unwrap().count(), 0);
}

#[test]
fn a_check_from_outside_keeps_packs_from_being_removed() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    place.write(&[("a", &noise(1, 100_000))]);
    checkpoint(&store, &ws, "two");
    store.delete(&Peer::own(), &ws, &[id("one"), id("two")], Removal::Unlink).unwrap();
    store.recover(&Peer::own(), &ws).unwrap();
    let pinned = super::super::places::pin_packs(&place.path("state")).unwrap();
    let before = place.packs();
    assert!(!store.collect(u64::MAX).unwrap());
    assert_eq!(place.packs(), before);
    drop(pinned);
    collect_all(&store);
    assert_eq!(place.packs(), 0);
}

#[test]
fn every_damaged_byte_of_a_pack_is_found() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    drop(store);
    let pack = place.pack_files().pop().unwrap();
    let sound = std::fs::read(&pack).unwrap();
    let state = place.path("state");
    for at in 0..sound.len() {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x20;
        std::fs::write(&pack, damaged).unwrap();
        let report = check_state_dir(&state, true).unwrap();
        assert!(!report.damage.is_empty(), "byte {at} of {}", sound.len());
        assert_eq!(report.snapshots, 1);
    }
    for len in [0, 1, sound.len() / 2, sound.len() - 1] {
        std::fs::write(&pack, &sound[..len]).unwrap();
        assert!(!check_state_dir(&state, false).unwrap().damage.is_empty(), "cut to {len}");
    }
    std::fs::write(&pack, sound).unwrap();
    assert_eq!(check_state_dir(&state, true).unwrap().damage, Vec::<String>::new());
}

#[test]
fn a_damaged_snapshot_is_marked_and_one_beside_it_is_not() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    place.write(&[("big", &noise(1, 100_000))]);
    checkpoint(&store, &ws, "two");
    let mut packs = place.pack_files();
    packs.sort_by_key(|pack| pack.metadata().unwrap().len());
    let bytes = std::fs::read(packs.last().unwrap()).unwrap();
    let damage = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        std::fs::write(packs.last().unwrap(), bytes).unwrap();
    };
    damage(bytes.len() / 2);
    drop(store);
    let store = place.open();
    let report = store.check(true).unwrap();
    assert!(report.damage.iter().any(|line| line.starts_with("snapshot 'two' of ")), "{report:?}");
    let missing: Vec<bool> = shown(&store).iter().map(|(_, snapshot)| snapshot.missing).collect();
    assert_eq!(missing, [false, true]);
    assert!(matches!(store.warnings(&Peer::own(), &ws, &id("two")), Err(Error::SnapshotMissing(_))));

    // The same content comes again: it is stored again, and that mends the snapshot.
    checkpoint(&store, &ws, "three");
    let report = store.check(true).unwrap();
    assert!(report.damage.iter().all(|line| line.starts_with("pack ")), "{report:?}");
    assert!(shown(&store).iter().all(|(_, snapshot)| !snapshot.missing));
    place.remove("big");
    store.rollback(&Peer::own(), &ws, &id("two")).unwrap();
    assert_eq!(place.read("big"), noise(1, 100_000));
}

#[test]
fn a_pack_that_is_gone_is_found_without_reading_data() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    place.destroy_packs();
    drop(store);
    let store = place.open();
    let report = store.check(false).unwrap();
    assert_eq!(report.damage.len(), 2, "{report:?}");
    assert!(shown(&store)[0].1.missing);
}

#[test]
fn packs_without_their_catalog_are_no_sound_store() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    drop(store);
    let catalog = place.path("state/ckpt/catalog.sqlite3");
    std::fs::OpenOptions::new().write(true).open(catalog).unwrap().set_len(0).unwrap();
    let store = place.open();
    for read_data in [false, true] {
        let inside = store.check(read_data).unwrap();
        assert_eq!(inside.damage.len(), 1, "{inside:?}");
        assert!(inside.damage[0].ends_with("it is not in the catalog"), "{inside:?}");
        assert_eq!(inside, check_state_dir(&place.path("state"), read_data).unwrap());
    }
}

#[test]
fn a_pack_that_goes_while_a_check_begins_is_no_damage() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    let present = store.packs.list().unwrap();
    store.delete(&Peer::own(), &ws, &[id("one")], Removal::Unlink).unwrap();
    store.recover(&Peer::own(), &ws).unwrap();
    collect_all(&store);
    assert_eq!((present.len(), place.packs()), (1, 0));
    assert_eq!(store.check_with(present, false).unwrap().damage, Vec::<String>::new());
}
