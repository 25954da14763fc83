//! Who may do what: root's daemon serves everybody, each within what is his; a user's daemon serves that user.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use cofferdam_protocol::ckpt::{WsCkptErrorCode as Code, WsCkptRequest, WsCkptResponse};
use cofferdam_tests::site::{Daemon, Site};
use cofferdam_tests::tree::Tree;
use cofferdam_tests::user::{NOBODY, SOMEBODY, as_user, give, give_all};
use cofferdam_tests::wire::{Wire, ask, error_of};
use cofferdam_tests::{files, project, skip, user};

use crate::{site, site_of_ordinary_user};

fn call_as(uid: u32, daemon: &Daemon, request: &WsCkptRequest) -> WsCkptResponse {
    as_user(uid, || daemon.call(request))
}

/// Root's daemon, a project of nobody's, and a snapshot `one` that nobody took.
fn nobodys_project(site: &Site) -> (Daemon, std::path::PathBuf) {
    let ws = site.path("project");
    project::make(&ws);
    give_all(&ws, NOBODY);
    let daemon = site.start();
    let answer = call_as(NOBODY, &daemon, &ask::checkpoint(&ws, "one"));
    assert_eq!(answer, WsCkptResponse::CheckpointOk { snapshot_id: "one".into() });
    (daemon, ws)
}

#[test]
fn roots_daemon_serves_a_users_directory_as_that_user_would() {
    if !user::is_root() {
        skip!("needs root to be root's daemon");
    }
    let site = site();
    let (daemon, ws) = nobodys_project(&site);
    let before = Tree::read(&ws);
    project::break_it(&ws);
    give_all(&ws, NOBODY);
    let answer = call_as(NOBODY, &daemon, &ask::rollback(&ws, "one"));
    assert!(matches!(answer, WsCkptResponse::RollbackOk { .. }), "{answer:?}");
    before.assert_same(&Tree::read(&ws), "after the rollback");
    // Root sees it as well.
    assert_eq!(daemon.ids(&ws), ["one"]);
    daemon.checkpoint(&ws, "two");
    assert_eq!(site.check(), 2);
}

#[test]
fn another_users_workspace_does_not_exist() {
    if !user::is_root() {
        skip!("needs root to be root's daemon");
    }
    let site = site();
    let (daemon, ws) = nobodys_project(&site);
    let id = daemon.init(&ws);
    let before = Tree::read(&ws);
    let path = ws.to_str().unwrap();
    for name in [path, &id] {
        for request in [
            ask::list(name),
            ask::status(name),
            ask::rollback(name, "one"),
            ask::delete(name, "one", true),
            ask::diff(name, "one", "@live"),
            ask::cleanup(name, Some(0)),
            ask::recover(name),
        ] {
            let (code, message) = error_of(call_as(SOMEBODY, &daemon, &request));
            assert_eq!((code, message), (Code::WorkspaceNotFound, format!("workspace not found: {name}")));
        }
    }
    let empty = WsCkptResponse::ListOk { snapshots: vec![] };
    assert_eq!(call_as(SOMEBODY, &daemon, &ask::list_all()), empty);
    let WsCkptResponse::StatusOk { report } = call_as(SOMEBODY, &daemon, &ask::status_all()) else {
        panic!()
    };
    assert_eq!(report.workspaces, []);
    let (code, _) = error_of(call_as(SOMEBODY, &daemon, &ask::delete_anywhere("one", true)));
    assert_eq!(code, Code::SnapshotNotFound);
    for request in [ask::init(&ws), ask::checkpoint(&ws, "mine now"), ask::init(ws.join("src"))] {
        let (code, message) = error_of(call_as(SOMEBODY, &daemon, &request));
        assert_eq!(code, Code::InvalidPath, "{message}");
        assert!(!message.contains(&id), "{message}");
    }
    before.assert_same(&Tree::read(&ws), "the other user's directory");
    assert_eq!(daemon.ids(&ws), ["one"]);
}

#[test]
fn a_user_cannot_have_directories_of_root_managed_nor_learn_of_them() {
    if !user::is_root() {
        skip!("needs root to be root's daemon");
    }
    let site = site();
    let daemon = site.start();
    let open = site.workspace("of-root");
    let secret = site.workspace("secret/inside");
    files::chmod(site.path("secret"), 0o700);
    let before = Tree::read(&site.path("of-root"));
    for path in [&open, &secret, Path::new("/etc"), Path::new("/root"), Path::new("/usr/share")] {
        for request in [ask::init(path), ask::checkpoint(path, "one")] {
            let (code, message) = error_of(call_as(NOBODY, &daemon, &request));
            assert_eq!(code, Code::InvalidPath, "{}: {message}", path.display());
        }
    }
    // What lies behind a directory one may not search looks the same whether it is there or not.
    let answer = |name: &str| {
        let path = site.path("secret").join(name);
        let (code, message) = error_of(call_as(NOBODY, &daemon, &ask::init(&path)));
        (code, message.replace(name, "NAME"))
    };
    assert_eq!(answer("inside"), answer("absent"));
    before.assert_same(&Tree::read(&site.path("of-root")), "root's directory");
    let WsCkptResponse::StatusOk { report } = daemon.call(&ask::status_all()) else { panic!() };
    assert_eq!(report.workspaces, []);
}

#[test]
fn no_set_id_bit_and_no_foreign_owner_is_restored_for_a_user() {
    if !user::is_root() {
        skip!("needs root to be root's daemon");
    }
    let site = site();
    let ws = site.directory("project");
    give(&ws, NOBODY);
    for (name, uid, mode) in
        [("tool", NOBODY, 0o4755), ("group-tool", NOBODY, 0o2755), ("of-root", 0, 0o4755)]
    {
        files::write(ws.join(name), "one");
        give(ws.join(name), uid);
        files::chmod(ws.join(name), mode);
    }
    let daemon = site.start();
    let answer = call_as(NOBODY, &daemon, &ask::checkpoint(&ws, "one"));
    assert!(matches!(answer, WsCkptResponse::CheckpointOk { .. }), "{answer:?}");
    for name in ["tool", "group-tool", "of-root"] {
        files::remove(ws.join(name));
        files::write(ws.join(name), "two");
        give(ws.join(name), NOBODY);
    }
    let answer = call_as(NOBODY, &daemon, &ask::rollback(&ws, "one"));
    assert!(matches!(answer, WsCkptResponse::RollbackOk { .. }), "{answer:?}");
    for name in ["tool", "group-tool", "of-root"] {
        let meta = std::fs::metadata(ws.join(name)).unwrap();
        assert_eq!(files::read(ws.join(name)), b"one", "{name}");
        assert_eq!(meta.uid(), NOBODY, "{name}");
        assert_eq!(meta.permissions().mode() & 0o7777, 0o755, "{name}");
    }
    // For root they are.
    daemon.rollback(&ws, "one");
    let meta = std::fs::metadata(ws.join("of-root")).unwrap();
    assert_eq!((meta.uid(), meta.permissions().mode() & 0o7777), (0, 0o4755));
}

#[test]
fn a_link_into_somewhere_else_gives_a_user_nothing_he_may_not_read() {
    if !user::is_root() {
        skip!("needs root to be root's daemon");
    }
    let site = site();
    let secret = site.directory("secret");
    files::write(secret.join("key"), "of root only");
    files::chmod(&secret, 0o700);
    let ws = site.directory("project");
    files::write(ws.join("file"), "x");
    files::symlink(&secret, ws.join("way-in"));
    files::write(ws.join("unreadable"), "of root only");
    give(&ws, NOBODY);
    files::chmod(ws.join("unreadable"), 0o600);
    let daemon = site.start();
    let answer = call_as(NOBODY, &daemon, &ask::checkpoint(&ws, "one"));
    assert!(matches!(answer, WsCkptResponse::CheckpointOk { .. }), "{answer:?}");
    // A workspace path through the link is refused like any path he may not search.
    let (code, _) = error_of(call_as(NOBODY, &daemon, &ask::init(ws.join("way-in"))));
    assert_eq!(code, Code::InvalidPath);
    let answer = call_as(NOBODY, &daemon, &ask::rollback(&ws, "one"));
    assert!(matches!(answer, WsCkptResponse::RollbackOk { .. }), "{answer:?}");
    assert_eq!(files::read(ws.join("unreadable")), b"of root only");
    let meta = std::fs::metadata(ws.join("unreadable")).unwrap();
    assert_eq!((meta.uid(), meta.permissions().mode() & 0o777), (0, 0o600));
}

#[test]
fn what_root_has_captured_is_not_shown_nor_given_to_a_user_who_could_not_read_it() {
    if !user::is_root() {
        skip!("needs root to be root's daemon");
    }
    let site = site();
    let ws = site.directory("project");
    files::write(ws.join("mine"), "one");
    give_all(&ws, NOBODY);
    files::write(ws.join("secret"), "of root only");
    files::chmod(ws.join("secret"), 0o600);
    files::write(ws.join("closed/hidden-name"), "of root only");
    files::chmod(ws.join("closed"), 0o700);
    let daemon = site.start();
    daemon.checkpoint(&ws, "of-root");
    files::remove(ws.join("secret"));
    files::remove(ws.join("closed/hidden-name"));
    files::write(ws.join("closed/other-name"), "of root only");
    files::write(ws.join("mine"), "two");
    daemon.checkpoint(&ws, "of-root-too");
    files::remove(ws.join("closed"));
    let paths = |uid, to| match call_as(uid, &daemon, &ask::diff(&ws, "of-root", to)) {
        WsCkptResponse::DiffOk { changes } => changes.into_iter().map(|c| c.path).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    for to in ["of-root-too", "@live"] {
        let shown = paths(NOBODY, to);
        assert!(shown.iter().any(|path| path == "secret"), "{shown:?}");
        assert!(!shown.iter().any(|path| path.starts_with("closed/")), "{shown:?}");
    }
    assert!(paths(0, "@live").iter().any(|path| path == "closed/hidden-name"));
    let answer = call_as(NOBODY, &daemon, &ask::rollback(&ws, "of-root"));
    assert!(matches!(answer, WsCkptResponse::RollbackOk { .. }), "{answer:?}");
    assert_eq!(files::read(ws.join("mine")), b"one");
    for path in ["secret", "closed/hidden-name"] {
        assert!(!ws.join(path).exists(), "{path}");
    }
    // Nor is it lost: root gets all of it.
    daemon.rollback(&ws, "of-root");
    for path in ["secret", "closed/hidden-name"] {
        let meta = std::fs::metadata(ws.join(path)).unwrap();
        assert_eq!((files::read(ws.join(path)), meta.uid()), (b"of root only".to_vec(), 0), "{path}");
    }
}

#[test]
fn a_users_daemon_serves_that_user() {
    if !user::is_root() {
        skip!("needs root to be two users");
    }
    let site = site_of_ordinary_user();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    let socket = site.socket();
    let refused = as_user(SOMEBODY, || std::os::unix::net::UnixStream::connect(&socket).map(drop));
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    // Nor does it manage what is not its user's.
    let theirs = site.path("theirs");
    files::write(theirs.join("file"), "x");
    give_all(&theirs, SOMEBODY);
    let (code, message) = error_of(call_as(NOBODY, &daemon, &ask::init(&theirs)));
    assert_eq!(code, Code::InvalidPath, "{message}");
}

#[test]
fn a_user_who_never_ends_large_requests_does_not_hold_up_those_of_another() {
    if !user::is_root() {
        skip!("needs root to be root's daemon");
    }
    let site = site();
    let (daemon, ws) = nobodys_project(&site);
    let half = [&(15u32 << 20).to_le_bytes()[..], &[0; 100 << 10]].concat();
    let held: Vec<Wire> = as_user(SOMEBODY, || {
        let connect = |_| {
            let mut wire = daemon.connect();
            wire.send_bytes(&half);
            wire
        };
        (0..60).map(connect).collect()
    });
    // Fits the socket's buffer: sending it does not wait for the daemon.
    let message = "x".repeat(150 << 10);
    let request = ask::checkpoint_with(&ws, "large", Some(&message), None, false);
    let mut wire = as_user(NOBODY, || daemon.connect());
    wire.send(&request);
    // Half of the time after which the daemon gives the others up.
    assert!(wire.receives_within(Duration::from_secs(5)));
    drop(held);
}
