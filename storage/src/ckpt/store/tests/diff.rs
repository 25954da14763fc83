//! How two trees differ.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::fixture::*;
use crate::ckpt::Backend;
use crate::ckpt::error::Error;
use crate::ckpt::model::*;
use crate::peer::Peer;

/// The changes as text, one a line.
fn text(changes: &[Change]) -> String {
    let line = |change: &Change| match &change.kind {
        ChangeKind::Added(kind) => format!("+ {} {kind:?}\n", change.path),
        ChangeKind::Modified => format!("M {}\n", change.path),
        ChangeKind::Deleted(kind) => format!("- {} {kind:?}\n", change.path),
        ChangeKind::Renamed { from } => format!("R {from} → {}\n", change.path),
    };
    changes.iter().map(line).collect()
}

/// What `change` changes, seen from a snapshot before to the live tree and to a snapshot after.
fn check(before: &[(&str, &str)], change: impl FnOnce(&Place), expected: &str) {
    let place = Place::new();
    place.write(before);
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "before");
    change(&place);
    let before = TreeRef::Snapshot(id("before"));
    let live = store.diff(&Peer::own(), &ws, &before, &TreeRef::Live).unwrap();
    checkpoint(&store, &ws, "after");
    let after = store.diff(&Peer::own(), &ws, &before, &TreeRef::Snapshot(id("after"))).unwrap();
    assert_eq!(text(&live), expected);
    assert_eq!(text(&after), expected);
}

#[test]
fn added_modified_and_deleted_files_come_sorted_by_path() {
    check(
        &[("b", "1"), ("dir/x", "2"), ("dir-x", "3"), ("same", "4")],
        |place| {
            place.write(&[("a", "new"), ("b", "changed"), ("z", "also new")]);
            place.remove("dir/x");
        },
        "+ a File\nM b\n- dir/x File\n+ z File\n",
    );
}

#[test]
fn everything_in_an_added_or_deleted_directory_is_listed() {
    check(
        &[("old/one", "1"), ("old/deep/two", "2")],
        |place| {
            std::fs::remove_dir(place.ws().join("x")).unwrap_err();
            place.remove("old/one");
            place.remove("old/deep/two");
            std::fs::remove_dir(place.ws().join("old/deep")).unwrap();
            std::fs::remove_dir(place.ws().join("old")).unwrap();
            place.write(&[("new/three", "3")]);
        },
        "+ new Directory\n+ new/three File\n- old Directory\n- old/deep Directory\n- old/deep/two File\n- old/one File\n",
    );
}

#[test]
fn modes_and_link_targets_count_and_times_do_not() {
    check(
        &[("mode", "1"), ("time", "2")],
        |place| {
            std::fs::set_permissions(place.ws().join("mode"), PermissionsExt::from_mode(0o751)).unwrap();
            let time = std::fs::File::options().write(true).open(place.ws().join("time")).unwrap();
            time.set_modified(std::time::UNIX_EPOCH).unwrap();
        },
        "M mode\n",
    );
    check(
        &[("f", "1")],
        |place| {
            symlink("target", place.ws().join("link")).unwrap();
        },
        "+ link Symlink\n",
    );
}

#[test]
fn another_kind_of_file_is_a_modification_and_what_is_inside_is_listed() {
    check(
        &[("x", "1"), ("y/in", "2")],
        |place| {
            place.remove("x");
            place.write(&[("x/in", "3")]);
            place.remove("y/in");
            std::fs::remove_dir(place.ws().join("y")).unwrap();
            symlink("x", place.ws().join("y")).unwrap();
        },
        "M x\n+ x/in File\nM y\n- y/in File\n",
    );
}

#[test]
fn a_file_that_moved_is_a_rename_if_its_content_is_unique_on_both_sides() {
    check(
        &[("a", "unique"), ("twin1", "twin"), ("twin2", "twin"), ("empty", "")],
        |place| {
            place.move_to("a", "dir/b");
            place.move_to("twin1", "twin3");
            place.move_to("twin2", "twin4");
            place.move_to("empty", "nothing");
        },
        "+ dir Directory\nR a → dir/b\n- empty File\n+ nothing File\n\
         - twin1 File\n- twin2 File\n+ twin3 File\n+ twin4 File\n",
    );
}

#[test]
fn a_file_that_is_saved_by_replacing_it_is_modified() {
    check(
        &[("f", "old")],
        |place| {
            place.write(&[("f.tmp", "new")]);
            place.move_to("f.tmp", "f");
        },
        "M f\n",
    );
}

#[test]
fn names_are_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"\xff\n -rf");
    check(
        &[("f", "1")],
        |place| std::fs::write(place.ws().join(odd), "x").unwrap(),
        "+ \\xff\\x0a -rf File\n",
    );
}

#[test]
fn a_snapshot_does_not_differ_from_itself_and_an_unknown_one_is_not_found() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    let one = TreeRef::Snapshot(id("one"));
    assert_eq!(store.diff(&Peer::own(), &ws, &one, &one).unwrap(), []);
    assert_eq!(store.diff(&Peer::own(), &ws, &TreeRef::Live, &TreeRef::Live).unwrap(), []);
    let none = TreeRef::Snapshot(id("none"));
    for (from, to) in [(&one, &none), (&none, &one), (&none, &TreeRef::Live)] {
        assert!(matches!(store.diff(&Peer::own(), &ws, from, to), Err(Error::SnapshotNotFound(_))));
    }
}
