//! Registering directories.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::fixture::{Place, checkpoint, init, named};
use crate::ckpt::Backend;
use crate::ckpt::error::Error;
use crate::ckpt::model::TreeRef;
use crate::peer::Peer;

#[test]
fn what_cannot_be_a_workspace_is_refused_with_the_reason() {
    let place = Place::new();
    let store = place.open();
    std::fs::write(place.path("file"), "").unwrap();
    std::os::unix::fs::symlink("nowhere", place.path("dangling")).unwrap();
    let dir = place.path("");
    let dir = dir.display();
    let long = format!("/{}", "x/".repeat(3000));
    let long_name = format!("/{}", "x".repeat(300));
    for (path, reason) in [
        ("", "workspace path is empty"),
        ("  ", "workspace path is empty"),
        ("ws", "path is not absolute: ws"),
        ("a\0b", "path holds a NUL byte"),
        ("/", "root '/' is not a supported workspace"),
        ("/../", "root '/' is not a supported workspace"),
        (&format!("{dir}none"), "path does not exist: "),
        (&format!("{dir}dangling"), "path does not exist: "),
        (&format!("{dir}file"), "not a directory: "),
        (&format!("{dir}file/x"), "not a directory: "),
        (&format!("{dir}"), "path contains the state directory ("),
        (&format!("{dir}state"), "path is inside the state directory ("),
        (&format!("{dir}state/ckpt/packs"), "path is inside the state directory ("),
        (&long, "path is too long (6001 bytes)"),
        (&long_name, "path is too long (301 bytes)"),
    ] {
        match init(&store, path) {
            Err(Error::InvalidPath(text)) => assert!(text.starts_with(reason), "{reason}: {text:.200}"),
            other => panic!("{reason}: {other:?}"),
        }
    }
    assert!(store.workspaces().unwrap().is_empty());
}

#[test]
fn registering_waits_for_no_work_on_another_directory_or_on_the_same_one() {
    let place = Place::new();
    let inner = place.path("outer/inner");
    std::fs::create_dir_all(&inner).unwrap();
    let store = place.open_impatient();
    let ws = init(&store, &inner).unwrap();
    let held = store.hold(&Peer::own(), &ws).unwrap();
    init(&store, place.path("outer")).unwrap();
    assert_eq!(init(&store, &inner).unwrap(), ws);
    // But a directory that took its place is not taken over under somebody's hands.
    place.move_root("outer/inner", "outer/away");
    std::fs::create_dir(&inner).unwrap();
    assert!(matches!(init(&store, &inner), Err(Error::Busy)));
    drop(held);
    assert_eq!(init(&store, &inner).unwrap(), ws);
}

#[test]
fn the_same_directory_has_one_id_by_whatever_path() {
    let place = Place::new();
    let store = place.open();
    let id = init(&store, place.ws()).unwrap();
    std::os::unix::fs::symlink("ws", place.path("link")).unwrap();
    for path in ["ws", "ws/", "./ws/.", "ws/../ws", "link", "link/"] {
        assert_eq!(init(&store, place.path(path)).unwrap(), id, "{path}");
    }
    assert_eq!(store.workspaces().unwrap().len(), 1);
}

#[test]
fn an_id_is_made_of_the_path_and_a_second_path_with_the_same_digits_gets_a_number() {
    use sha2::{Digest, Sha256};
    let place = Place::new();
    let store = place.open();
    // Of 2^24 ids, two among some thousand paths agree.
    let mut seen = std::collections::HashMap::new();
    let (one, two) = (0..)
        .find_map(|n| {
            let path = place.path(&format!("p{n}"));
            let digits = Sha256::digest(path.as_os_str().as_bytes())[..3].to_vec();
            let other = seen.insert(digits, path.clone())?;
            Some((other, path))
        })
        .unwrap();
    for path in [&one, &two] {
        std::fs::create_dir(path).unwrap();
    }
    let first = init(&store, &one).unwrap();
    let second = init(&store, &two).unwrap();
    assert_eq!(second.as_str(), format!("{first}-2"));
}

#[test]
fn a_directory_inside_a_workspace_is_refused_and_one_around_it_is_not() {
    let place = Place::new();
    let store = place.open();
    std::fs::create_dir_all(place.path("around/ws/inner")).unwrap();
    let id = init(&store, place.path("around/ws")).unwrap();
    match init(&store, place.path("around/ws/inner")) {
        Err(Error::InsideWorkspace { workspace, path }) => {
            assert_eq!((&workspace, path), (&id, place.path("around/ws")));
        }
        other => panic!("{other:?}"),
    }
    init(&store, place.path("around")).unwrap();
    assert_eq!(init(&store, place.path("around/ws")).unwrap(), id);
}

#[test]
fn two_at_once_give_one_registration() {
    let place = Place::new();
    let store = place.open();
    let ids: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| init(&store, place.ws()).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(store.workspaces().unwrap().len(), 1);
}

#[test]
fn a_name_that_is_not_utf8_can_be_a_workspace() {
    let place = Place::new();
    let path = place.path("").join(OsStr::from_bytes(b"\xff\n%?#"));
    std::fs::create_dir(&path).unwrap();
    let id = init(&place.open(), &path).unwrap();
    let workspaces = place.open().workspaces().unwrap();
    assert_eq!((&workspaces[0].workspace.path, &workspaces[0].workspace.id), (&path, &id));
}

#[test]
fn a_state_directory_may_have_any_name() {
    let mut place = Place::new();
    let odd = place.path("").join(OsStr::from_bytes(b"\xff ?mode=ro#%41"));
    std::fs::create_dir(&odd).unwrap();
    let _outer = std::mem::replace(&mut place.dir, tempfile::tempdir_in(&odd).unwrap());
    std::fs::create_dir(place.ws()).unwrap();
    init(&place.open(), place.ws()).unwrap();
    assert_eq!(place.open().workspaces().unwrap().len(), 1);
}

#[test]
fn another_users_directory_is_refused() {
    let place = Place::new();
    let store = place.open();
    // `/usr` is root's; a peer with any other uid may list it but does not own it.
    let peer = Peer { uid: 54_321, gid: 54_321, groups: Vec::new() };
    if !rustix::process::geteuid().is_root() {
        match init(&store, "/usr") {
            Err(Error::InvalidPath(text)) => assert!(text.contains("another user"), "{text}"),
            other => panic!("{other:?}"),
        }
        return;
    }
    match store.init(&peer, Path::new("/usr")) {
        Err(Error::InvalidPath(text)) => assert!(text.contains("another user"), "{text}"),
        other => panic!("{other:?}"),
    }
    // What the peer may not search does not tell whether anything is in it.
    std::fs::set_permissions(place.ws(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    match store.init(&peer, &place.ws().join("x")) {
        Err(Error::InvalidPath(text)) => assert!(text.starts_with("cannot stat path"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_another_users_does_not_exist_for_a_peer() {
    let place = Place::new();
    let store = place.open();
    let id = init(&store, place.ws()).unwrap();
    if !rustix::process::geteuid().is_root() {
        cofferdam_tests::skipped(format_args!("only root's daemon has other peers"));
        return;
    }
    let peer = Peer { uid: 54_321, gid: 54_321, groups: Vec::new() };
    assert!(matches!(store.recover(&peer, &id), Err(Error::WorkspaceNotFound(_))));
    assert!(matches!(store.prime(&peer, &id), Err(Error::WorkspaceNotFound(_))));
    assert!(matches!(store.undo(&peer, &id), Err(Error::WorkspaceNotFound(_))));
}

#[test]
fn a_forgotten_workspace_can_be_registered_afresh() {
    let place = Place::new();
    let store = place.open();
    let id = init(&store, place.ws()).unwrap();
    store.recover(&Peer::own(), &id).unwrap();
    assert!(store.workspaces().unwrap().is_empty());
    assert!(matches!(store.recover(&Peer::own(), &id), Err(Error::WorkspaceNotFound(_))));
    assert_eq!(init(&store, place.ws()).unwrap(), id);
}

#[test]
fn a_directory_that_was_given_away_is_registered_afresh_for_its_new_owner() {
    if !rustix::process::geteuid().is_root() {
        cofferdam_tests::skipped(format_args!("only root can give a directory away"));
        return;
    }
    let place = Place::with_files();
    let store = place.open();
    let id = init(&store, place.ws()).unwrap();
    checkpoint(&store, &id, "secret");
    std::os::unix::fs::chown(place.ws(), Some(54_321), None).unwrap();
    let result = store.checkpoint(&Peer::own(), &id, &named("two"));
    assert!(matches!(result, Err(Error::WorkspaceReplaced(_))), "{result:?}");

    std::fs::set_permissions(place.dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let peer = Peer { uid: 54_321, gid: 54_321, groups: Vec::new() };
    let state = store.init(&peer, &place.ws()).unwrap();
    assert_eq!((state.workspace.owner, state.snapshots.len()), (54_321, 0));
    assert!(matches!(
        store.rollback(&peer, &state.workspace.id, &super::fixture::id("secret")),
        Err(Error::SnapshotNotFound(_))
    ));
    // The new owner's own work goes as usual, with that user's rights.
    store.checkpoint(&peer, &state.workspace.id, &named("mine")).unwrap();
    std::fs::write(place.ws().join("a"), "changed").unwrap();
    let from = TreeRef::Snapshot(super::fixture::id("mine"));
    assert_eq!(store.diff(&peer, &state.workspace.id, &from, &TreeRef::Live).unwrap().len(), 1);
}
