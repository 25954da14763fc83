//! What one path of a tree holds.

use std::os::unix::fs::symlink;

use super::fixture::*;
use cofferdam_protocol::ckpt::WorkspaceId;

use crate::ckpt::error::Error;
use crate::ckpt::model::*;
use crate::ckpt::{Backend, Store};
use crate::path::RelPath;
use crate::peer::Peer;

const ENOUGH: usize = 1 << 20;

fn look(store: &Store, of: &WorkspaceId, tree: &TreeRef, path: &str, most: usize) -> Option<Seen> {
    store.look(&Peer::own(), of, tree, &RelPath::new(path.as_bytes()).unwrap(), most).unwrap()
}

/// The same of the live tree and of a snapshot of it.
fn check(store: &Store, of: &WorkspaceId, path: &str, most: usize, expected: Option<(FileKind, u64, &[u8])>) {
    let expected = expected.map(|(kind, size, bytes)| Seen { kind, size, bytes: Some(bytes.to_vec()) });
    for tree in [TreeRef::Live, TreeRef::Snapshot(id("one"))] {
        assert_eq!(look(store, of, &tree, path, most), expected, "{path} in {tree:?}");
    }
}

#[test]
fn each_kind_is_told_and_of_a_file_no_more_than_was_asked_for() {
    let place = Place::new();
    let long = noise(7, 300_000);
    place.write(&[("dir/f", "text"), ("empty", ""), ("long", &long)]);
    symlink("/etc/passwd", place.ws().join("link")).unwrap();
    let holes = std::fs::File::create(place.ws().join("holes")).unwrap();
    holes.set_len(1 << 30).unwrap();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    check(&store, &ws, "dir/f", ENOUGH, Some((FileKind::File, 4, b"text")));
    check(&store, &ws, "dir/f", 2, Some((FileKind::File, 4, b"te")));
    check(&store, &ws, "dir/f", 0, Some((FileKind::File, 4, b"")));
    check(&store, &ws, "empty", ENOUGH, Some((FileKind::File, 0, b"")));
    for most in [1, 65_536, 200_001, 300_000] {
        check(&store, &ws, "long", most, Some((FileKind::File, 300_000, &long.as_bytes()[..most])));
    }
    check(&store, &ws, "holes", 1000, Some((FileKind::File, 1 << 30, &[0; 1000])));
    check(&store, &ws, "dir", ENOUGH, Some((FileKind::Directory, 0, b"")));
    check(&store, &ws, "", ENOUGH, Some((FileKind::Directory, 0, b"")));
    check(&store, &ws, "link", ENOUGH, Some((FileKind::Symlink, 0, b"/etc/passwd")));
}

#[test]
fn nothing_is_found_through_a_link_or_below_a_file() {
    let place = Place::with_files();
    place.write(&[("dir/f", "text"), ("file", "text")]);
    std::fs::write(place.path("secret"), "secret").unwrap();
    symlink(place.path(""), place.ws().join("out")).unwrap();
    symlink("dir", place.ws().join("in")).unwrap();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    for path in ["out/secret", "in/f", "file/f", "none", "none/f"] {
        check(&store, &ws, path, ENOUGH, None);
    }
}

#[test]
fn a_snapshot_shows_what_was_and_one_that_is_not_there_is_an_error() {
    let place = Place::new();
    place.write(&[("f", "before")]);
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    place.write(&[("f", "after")]);
    let bytes = |tree: &TreeRef| look(&store, &ws, tree, "f", ENOUGH).unwrap().bytes.unwrap();
    assert_eq!(bytes(&TreeRef::Snapshot(id("one"))), b"before");
    assert_eq!(bytes(&TreeRef::Live), b"after");
    let path = RelPath::new(b"f").unwrap();
    let none = store.look(&Peer::own(), &ws, &TreeRef::Snapshot(id("none")), &path, 1);
    assert!(matches!(none, Err(Error::SnapshotNotFound(_))));
}

#[test]
fn another_user_s_workspace_is_not_there() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    let other = Peer { uid: 54321, gid: 54321, groups: Vec::new() };
    let seen = store.look(&other, &ws, &TreeRef::Live, &RelPath::new(b"f").unwrap(), 1);
    assert!(matches!(seen, Err(Error::WorkspaceNotFound(_))));
}
