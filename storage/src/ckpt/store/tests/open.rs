//! Opening a store.

use std::os::unix::fs::PermissionsExt;

use super::fixture::{Place, init};
use crate::ckpt::error::Error;
use crate::ckpt::{Backend, Store};
use crate::disk::Disk;

#[test]
fn a_second_owner_is_told_who_the_first_is() {
    let place = Place::new();
    let first = place.open();
    let Err(Error::Locked { holder, .. }) = Store::open(place.options(Disk::default())) else {
        panic!("opened twice");
    };
    assert_eq!(holder, format!("process {}", std::process::id()));
    drop(first);
    place.open();
}

#[test]
fn everything_below_the_state_directory_is_private() {
    let place = Place::new();
    let store = place.open();
    init(&store, place.ws()).unwrap();
    let mut dirs = vec![place.path("state")];
    while let Some(dir) = dirs.pop() {
        assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o7777, 0o700, "{}", dir.display());
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => dirs.push(path),
                false => {
                    let mode = path.metadata().unwrap().permissions().mode();
                    assert_eq!(mode & 0o7777, 0o600, "{}", path.display());
                }
            }
        }
    }
}

#[test]
fn registrations_survive_a_restart() {
    let place = Place::new();
    let store = place.open();
    let id = init(&store, place.ws()).unwrap();
    drop(store);
    let workspaces = place.open().workspaces().unwrap();
    assert_eq!(workspaces.len(), 1);
    assert_eq!((&workspaces[0].workspace.id, &workspaces[0].workspace.path), (&id, &place.ws()));
}

#[test]
fn a_pack_that_the_catalog_does_not_know_is_reported_and_left_alone() {
    let place = Place::new();
    drop(place.open());
    let foreign = place.path("state/ckpt/packs").join(format!("{}.pack", "0123456789abcdef".repeat(2)));
    std::fs::write(&foreign, "somebody's").unwrap();
    let (_store, report) = Store::open(place.options(Disk::default())).unwrap();
    assert!(report.lines.iter().any(|line| line.contains("not in the catalog")), "{report:?}");
    assert!(foreign.exists());
}

#[test]
fn a_store_of_a_newer_version_is_not_touched() {
    let place = Place::new();
    drop(place.open());
    let file = place.path("state/ckpt/catalog.sqlite3");
    let set_version = |version: u8| {
        let mut bytes = std::fs::read(&file).unwrap();
        // Offset 60 of the header: user_version, big-endian.
        bytes[60..64].copy_from_slice(&[0, 0, 0, version]);
        std::fs::write(&file, bytes).unwrap();
    };
    set_version(99);
    let before = std::fs::read(&file).unwrap();
    match Store::open(place.options(Disk::default())) {
        Err(Error::NewerFormat { found: 99, .. }) => {}
        other => panic!("{:?}", other.map(|_| ()).unwrap_err()),
    }
    assert!(std::fs::read(&file).unwrap() == before);
    set_version(2);
    place.open();
}
