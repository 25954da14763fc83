//! Workspaces that vanish, are replaced, or cannot be read, behind the daemon's back.

use cofferdam_protocol::ckpt::{WsCkptErrorCode as Code, WsCkptRequest, WsCkptResponse};
use cofferdam_tests::files;
use cofferdam_tests::mount::Mount;
use cofferdam_tests::site::Daemon;
use cofferdam_tests::tree::Tree;
use cofferdam_tests::wire::ask;
use cofferdam_tests::{skip, user};

use crate::site;

/// The requests that read or change the tree.
fn touching(ws: &str) -> [WsCkptRequest; 3] {
    [ask::checkpoint(ws, "new"), ask::rollback(ws, "one"), ask::diff(ws, "one", "@live")]
}

/// What a workspace without its directory must still answer, by its id.
fn bookkeeping_works(daemon: &Daemon, id: &str) {
    assert!(daemon.ids(id).contains(&"one".to_owned()));
    assert!(matches!(daemon.call(&ask::status(id)), WsCkptResponse::StatusOk { .. }));
    assert!(matches!(daemon.call(&ask::status_all()), WsCkptResponse::StatusOk { .. }));
    assert!(matches!(daemon.call(&WsCkptRequest::HealthAdvisory), WsCkptResponse::HealthAdvisoryOk { .. }));
    assert_eq!(daemon.diff(id, "one", "two").len(), 1);
}

#[test]
fn a_workspace_that_is_gone_is_an_error_until_it_is_put_back() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    files::write(ws.join("file"), "two");
    daemon.checkpoint(&ws, "two");
    let id = daemon.init(&ws);
    files::rename(&ws, site.path("elsewhere"));
    for request in touching(&id) {
        let (code, message) = daemon.refused(&request);
        assert_eq!(code, Code::InvalidPath, "{request:?}: {message}");
        assert!(message.contains("does not exist"), "{message}");
    }
    assert!(!ws.exists(), "nothing may be put where the directory was");
    bookkeeping_works(&daemon, &id);
    // Also for a daemon that starts while it is gone.
    daemon.kill();
    let daemon = site.start();
    bookkeeping_works(&daemon, &id);
    files::rename(site.path("elsewhere"), &ws);
    daemon.rollback(&ws, "one");
    assert_eq!(files::read(ws.join("file")), b"content\n");
    assert_eq!(site.check(), 2);
}

#[test]
fn snapshots_of_a_workspace_that_is_gone_can_be_removed() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    daemon.checkpoint(&ws, "two");
    daemon.checkpoint(&ws, "three");
    files::remove(&ws);
    // The path that was registered still names it, though there is nothing.
    assert_eq!(
        daemon.call(&ask::delete(&ws, "two", false)),
        WsCkptResponse::DeleteOk { target: "two".into() }
    );
    assert_eq!(
        daemon.call(&ask::cleanup(&ws, Some(1))),
        WsCkptResponse::CleanupOk { removed: vec!["one".into()] }
    );
    let path = ws.to_str().unwrap().to_owned();
    assert_eq!(daemon.call(&ask::recover(&ws)), WsCkptResponse::RecoverOk { workspace: path });
    assert!(!ws.exists());
    assert_eq!(site.check(), 0);
}

#[test]
fn a_workspace_that_was_replaced_is_an_error_until_init_adopts_what_is_there_now() {
    type Replace = fn(&std::path::Path, &std::path::Path);
    let cases: &[(&str, Replace, bool)] = &[
        ("a new directory", |ws, _| files::write(ws.join("newer"), "n"), true),
        ("an empty directory", |ws, _| files::mkdir(ws), true),
        ("a link to another directory", |ws, other| files::symlink(other, ws), false),
        ("a dangling link", |ws, _| files::symlink("/nowhere", ws), false),
        ("a file", |ws, _| files::write(ws, "a file"), false),
        ("a FIFO", |ws, _| files::fifo(ws), false),
    ];
    for (what, replace, adoptable) in cases {
        let site = site();
        let daemon = site.start();
        let (ws, other) = (site.workspace("project"), site.workspace("other"));
        daemon.checkpoint(&ws, "one");
        files::write(ws.join("file"), "two");
        daemon.checkpoint(&ws, "two");
        let id = daemon.init(&ws);
        files::remove(&ws);
        replace(&ws, &other);
        let outside = Tree::read_without(&site.path(""), &["state", "ckpt.sock"]);
        for request in touching(&id) {
            let (code, message) = daemon.refused(&request);
            assert_eq!(code, Code::InvalidPath, "{what}: {request:?}: {message}");
        }
        let same = |when: &str| {
            let now = Tree::read_without(&site.path(""), &["state", "ckpt.sock"]);
            outside.assert_same(&now, &format!("{what}: {when}"));
        };
        same("after the requests that were refused");
        bookkeeping_works(&daemon, &id);
        if *adoptable {
            assert_eq!(daemon.init(&ws), id, "{what}");
            same("after it was adopted");
            assert_eq!(daemon.ids(&ws), ["one", "two"], "{what}: the snapshots are kept");
            daemon.rollback(&ws, "one");
            assert_eq!(files::read(ws.join("file")), b"content\n", "{what}");
            assert!(!ws.join("newer").exists(), "{what}");
        } else {
            daemon.call(&ask::recover(&id));
            same("after recover");
        }
        assert_eq!(site.check(), if *adoptable { 2 } else { 0 }, "{what}");
    }
}

#[test]
fn a_mount_over_a_workspace_is_another_directory() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    let site = site();
    let daemon = site.start();
    let (ws, other) = (site.workspace("project"), site.workspace("other"));
    daemon.checkpoint(&ws, "one");
    let id = daemon.init(&ws);
    let mount = Mount::bind(&other, &ws);
    let before = Tree::read(&other);
    for request in touching(&id) {
        let (code, message) = daemon.refused(&request);
        assert_eq!(code, Code::InvalidPath, "{request:?}: {message}");
    }
    before.assert_same(&Tree::read(&other), "the directory that was mounted over it");
    drop(mount);
    daemon.rollback(&ws, "one");
}

#[test]
fn a_mount_inside_a_workspace_is_recorded_and_never_entered() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    files::write(ws.join("dir/below"), "under the mount");
    let other = site.directory("other");
    files::write(other.join("precious"), "somebody's disk");
    let mount = Mount::bind(&other, &ws.join("dir"));
    daemon.checkpoint(&ws, "one");
    files::write(ws.join("file"), "changed");
    files::write(ws.join("dir/later"), "written to the mounted disk");
    daemon.rollback(&ws, "one");
    assert_eq!(files::read(ws.join("file")), b"content\n");
    assert_eq!(files::read(other.join("precious")), b"somebody's disk");
    assert_eq!(files::read(other.join("later")), b"written to the mounted disk");
    drop(mount);
    assert_eq!(files::read(ws.join("dir/below")), b"under the mount");
}

#[test]
fn a_rollback_that_would_remove_a_mount_is_not_begun() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    let other = site.directory("other");
    files::write(other.join("precious"), "somebody's disk");
    files::write(ws.join("file"), "changed");
    let mount = Mount::bind(&other, &ws.join("new/mount"));
    let before = Tree::read(&ws);
    let (code, message) = daemon.refused(&ask::rollback(&ws, "one"));
    assert_eq!(code, Code::IoError, "{message}");
    assert!(message.contains("new/mount") || message.contains("new"), "the place is named: {message}");
    before.assert_same(&Tree::read(&ws), "the tree with the mount in it");
    drop(mount);
    daemon.rollback(&ws, "one");
    assert!(!ws.join("new").exists());
    assert_eq!(files::read(other.join("precious")), b"somebody's disk");
}

#[test]
fn an_immutable_file_in_the_way_is_found_before_anything_is_touched() {
    if !user::is_root() {
        skip!("needs root to make a file immutable");
    }
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    files::write(ws.join("a"), "one");
    files::write(ws.join("z"), "one");
    daemon.checkpoint(&ws, "one");
    for name in ["a", "file", "z"] {
        files::write(ws.join(name), "changed");
    }
    let immutable = |flag: &str| {
        let status =
            std::process::Command::new("chattr").arg(flag).arg(ws.join("file")).output().unwrap().status;
        status.success()
    };
    if !immutable("+i") {
        skip!("needs root and a filesystem with immutable files");
    }
    let before = Tree::read(&ws);
    let (code, message) = daemon.refused(&ask::rollback(&ws, "one"));
    let after = Tree::read(&ws);
    assert!(immutable("-i"));
    assert_eq!(code, Code::IoError, "{message}");
    assert!(message.contains("file") && message.contains("immutable"), "{message}");
    before.assert_same(&after, "the tree");
    daemon.rollback(&ws, "one");
    assert_eq!(files::read(ws.join("z")), b"one");
}
