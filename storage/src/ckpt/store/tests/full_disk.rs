//! A filesystem without a byte left.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use cofferdam_tests::mount::Mount;
use cofferdam_tests::{skip, user};

use super::fixture::*;
use cofferdam_protocol::ckpt::WorkspaceId;

use crate::ckpt::catalog::{Publication, Target};
use crate::ckpt::error::Error;
use crate::ckpt::format::{ObjectId, ObjectKind};
use crate::ckpt::model::Removal;
use crate::ckpt::pack::{NewPack, PackedObject, Written};
use crate::ckpt::{Backend, Store, StoreOptions};
use crate::clock::RandomIds;
use crate::disk::Disk;
use crate::peer::Peer;

/// A small filesystem of its own, unmounted at the end.
struct Small {
    place: Place,
    at: PathBuf,
}

impl Small {
    /// `None`, with a word why, where nothing can be mounted.
    fn new() -> Option<Self> {
        let place = Place::with_files();
        let at = place.path("small");
        std::fs::create_dir(&at).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(&at).output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { place, at }),
            Ok(output) => {
                cofferdam_tests::skipped(format_args!("{}", String::from_utf8_lossy(&output.stderr).trim()));
                None
            }
            Err(error) => {
                cofferdam_tests::skipped(format_args!("mount: {error}"));
                None
            }
        }
    }

    fn options(&self) -> StoreOptions {
        StoreOptions { state_dir: self.at.join("state"), ..self.place.options(Disk::default()) }
    }

    /// Takes all space that is left.
    fn fill(&self) {
        let mut file = File::create(self.at.join("fill")).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while file.write(&vec![b'x'; size]).is_ok_and(|written| written > 0) {}
        }
    }

    fn free(&self) {
        File::create(self.at.join("fill")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Lazily: a failed test may have the store open.
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

fn is_full<T: std::fmt::Debug>(result: Result<T, Error>) {
    assert!(matches!(result, Err(Error::NoSpace { .. })), "{result:?}");
}

#[test]
fn on_a_full_disk_the_store_opens_and_lists_and_says_that_it_is_full() {
    let Some(small) = Small::new() else { return };
    let store = Store::open(small.options()).unwrap().0;
    let ws = init(&store, small.place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    let before = shown(&store);
    small.fill();
    drop(store);
    let (store, _) = Store::open(small.options()).unwrap();
    assert_eq!(shown(&store), before);
    let usage = store.usage().unwrap();
    assert_eq!(usage.used, usage.total);
    small.place.write(&[("a", &noise(1, 100_000))]);
    for _ in 0..6 {
        is_full(store.checkpoint(&Peer::own(), &ws, &named("two")));
        is_full(store.rollback(&Peer::own(), &ws, &id("one")));
        assert_eq!(shown(&store), before);
    }
    assert_eq!(small.place.read("a"), noise(1, 100_000));
    small.free();
    assert_eq!(checkpoint(&store, &ws, "two"), "created");
    store.rollback(&Peer::own(), &ws, &id("one")).unwrap();
    assert_sound(&store, 2);
}

#[test]
fn a_disk_that_fills_up_in_the_middle_of_a_transaction_leaves_the_catalog_as_it_was() {
    let Some(small) = Small::new() else { return };
    let store = Store::open(small.options()).unwrap().0;
    let ws = init(&store, small.place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    let before = store.size().unwrap();
    // More rows than SQLite keeps in memory, and than the disk has space for.
    let object = |n: u64| PackedObject {
        id: ObjectId::of(ObjectKind::Data, &n.to_le_bytes()),
        kind: ObjectKind::Data,
        block: 0,
        offset: 0,
        len: 1,
    };
    let id = store.catalog.reserve_pack(&RandomIds).unwrap();
    let pack = NewPack { id, bytes: 1, raw_bytes: 1, objects: (0..60_000).map(object).collect() };
    let written = Written { pack: Some(pack), reused: Default::default() };
    let workspace = store.registered(&ws).unwrap().key;
    let manifest = ObjectId::of(ObjectKind::Manifest, b"");
    let published =
        store.catalog.publish(workspace, &Target::Capture, None, &manifest, &written, &RandomIds).unwrap();
    assert!(matches!(published, Publication::Refused(Error::NoSpace { .. })), "{published:?}");
    assert_eq!(store.size().unwrap().objects, before.objects);
    small.place.write(&[("a", "changed")]);
    store.delete(&Peer::own(), &ws, &[super::fixture::id("one")], Removal::Unlink).unwrap();
    assert_eq!(checkpoint(&store, &ws, "two"), "created");
    assert_sound(&store, 1);
}

/// Fills a disk, and lets `remove` take snapshots away; then everything they alone needed can be had again.
fn makes_room_on_a_full_disk(mount: &Mount, reopened: bool, remove: impl Fn(&Store, &WorkspaceId)) {
    let place = Place::new();
    let options = StoreOptions { state_dir: mount.path().join("state"), ..place.options(Disk::default()) };
    let mut store = Store::open(options.clone()).unwrap().0;
    let ws = init(&store, place.ws()).unwrap();
    for (n, name) in (0..).zip(["one", "two", "three"]) {
        place.write(&[("big", &noise(n, 4_000_000)), ("small", name)]);
        checkpoint(&store, &ws, name);
    }
    place.write(&[("big", "")]);
    checkpoint(&store, &ws, "four");
    mount.fill();
    if reopened {
        drop(store);
        store = Store::open(options).unwrap().0;
    }
    place.write(&[("big", &noise(9, 1_000_000))]);
    is_full(store.checkpoint(&Peer::own(), &ws, &named("five")));
    remove(&store, &ws);
    assert_eq!(shown(&store).len(), 1);
    collect_all(&store);
    assert_eq!(checkpoint(&store, &ws, "five"), "created");
    assert_sound(&store, 2);
    mount.free();
}

#[test]
fn on_a_disk_without_a_byte_left_snapshots_can_be_removed_and_that_makes_room() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    let names = ["one", "two", "three"].map(id);
    for reopened in [false, true] {
        for filesystem in ["tmpfs", "ext4"] {
            if let Some(why) = cofferdam_tests::mount::lacking(filesystem) {
                cofferdam_tests::skipped(format_args!("{why}"));
                continue;
            }
            let dir = tempfile::tempdir().unwrap();
            let mount = || match filesystem {
                "tmpfs" => Mount::tmpfs(&dir.path().join("disk"), 24 << 10),
                _ => Mount::idle(filesystem, &dir.path().join("disk")),
            };
            makes_room_on_a_full_disk(&mount(), reopened, |store, ws| {
                store.delete(&Peer::own(), ws, &names, Removal::Unlink).unwrap();
            });
            makes_room_on_a_full_disk(&mount(), reopened, |store, ws| {
                // One by one, as a user does.
                for name in &names {
                    store.delete(&Peer::own(), ws, std::slice::from_ref(name), Removal::Unlink).unwrap();
                }
            });
        }
    }
}
