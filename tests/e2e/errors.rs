//! Every error code that can occur, and what leads to it. `BtrfsError` cannot: there is no btrfs in this backend.

use std::fs::File;

use cofferdam_protocol::ckpt::{WsCkptErrorCode as Code, WsCkptRequest};
use cofferdam_tests::files;
use cofferdam_tests::tree::Tree;
use cofferdam_tests::wire::ask;
use rustix::fs::FlockOperation;

use crate::{site, site_of_ordinary_user};

#[test]
fn each_error_code_is_met_where_the_contract_names_it() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    files::mkdir(ws.join("sub"));
    for id in ["one", "only"] {
        daemon.checkpoint(&ws, id);
    }
    daemon.call(&ask::checkpoint_with(&ws, "pinned", None, None, true));
    let unknown = site.workspace("unknown");
    let before = Tree::read(&ws);
    let cases: Vec<(WsCkptRequest, Code, &str)> = vec![
        (ask::rollback(&unknown, "one"), Code::WorkspaceNotFound, "workspace not found: /"),
        (ask::delete(&unknown, "one", true), Code::WorkspaceNotFound, "workspace not found: /"),
        (ask::list(&unknown), Code::WorkspaceNotFound, "workspace not found: /"),
        (ask::diff(&unknown, "one", "only"), Code::WorkspaceNotFound, "workspace not found: /"),
        (ask::status(&unknown), Code::WorkspaceNotFound, "workspace not found: /"),
        (ask::cleanup(&unknown, None), Code::WorkspaceNotFound, "workspace not found: /"),
        (ask::recover(&unknown), Code::WorkspaceNotFound, "workspace not found: /"),
        (ask::list(""), Code::WorkspaceNotFound, "workspace not found"),
        (ask::list("ws-000000"), Code::WorkspaceNotFound, "workspace not found: ws-000000"),
        (ask::list(ws.join("sub")), Code::WorkspaceNotFound, "workspace not found: /"),
        (ask::rollback(&ws, "none"), Code::SnapshotNotFound, "snapshot not found: none"),
        (ask::rollback(&ws, "on"), Code::SnapshotNotFound, "ambiguous snapshot prefix 'on': 2 matches"),
        (ask::rollback(&ws, ""), Code::SnapshotNotFound, "ambiguous snapshot prefix '': 3 matches"),
        (ask::rollback(&ws, "@live"), Code::SnapshotNotFound, "snapshot not found: @live"),
        (ask::delete(&ws, "none", true), Code::SnapshotNotFound, "snapshot not found: none"),
        (ask::delete_anywhere("none", true), Code::SnapshotNotFound, "snapshot not found: none"),
        (ask::diff(&ws, "none", "one"), Code::SnapshotNotFound, "snapshot not found: none"),
        (ask::diff(&ws, "one", "none"), Code::SnapshotNotFound, "snapshot not found: none"),
        (ask::init(ws.join("sub")), Code::AlreadyInitialized, "workspace"),
        (ask::init("/"), Code::InvalidPath, "root '/' is not a supported workspace"),
        (ask::init(site.path("missing")), Code::InvalidPath, "path does not exist: /"),
        (ask::init(ws.join("file")), Code::InvalidPath, "not a directory: /"),
        (ask::checkpoint(&ws, "a/b"), Code::InvalidPath, "snapshot id"),
        (ask::delete(&ws, "pinned", false), Code::ConfirmationRequired, "Snapshot is pinned, use --force"),
        (ask::checkpoint_with(&ws, "x", None, Some("{"), false), Code::InternalError, "metadata"),
        (
            ask::checkpoint(&ws, "pinned"),
            Code::SnapshotAlreadyExists,
            "snapshot id 'pinned' already exists in workspace",
        ),
    ];
    for (request, expected, text) in cases {
        let (code, message) = daemon.refused(&request);
        assert_eq!(code, expected, "{request:?}: {message}");
        assert!(message.contains(text), "{request:?}: {message}");
        assert!(!message.contains('\n'), "{request:?}: {message}");
    }
    before.assert_same(&Tree::read(&ws), "the workspace");
    assert_eq!(daemon.ids(&ws).len(), 3);
}

#[test]
fn a_root_directory_that_cannot_be_read_is_an_io_error() {
    let site = site_of_ordinary_user();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    files::chmod(&ws, 0o300);
    let (code, message) = daemon.refused(&ask::checkpoint(&ws, "two"));
    assert_eq!(code, Code::IoError, "{message}");
    files::chmod(&ws, 0o700);
    daemon.checkpoint(&ws, "two");
}

#[test]
fn a_failing_disk_is_an_io_error_and_a_full_one_says_so() {
    let cases = [
        ("checkpoint.captured", Code::IoError, "eio"),
        ("checkpoint.captured", Code::DiskSpaceInsufficient, "enospc"),
        ("checkpoint.pack-synced", Code::IoError, "eio"),
        ("checkpoint.pack-synced", Code::DiskSpaceInsufficient, "enospc"),
        ("rollback.safety-published", Code::IoError, "eio"),
        ("rollback.journaled", Code::DiskSpaceInsufficient, "enospc"),
        ("rollback.staged", Code::IoError, "eio"),
        ("rollback.switch-journaled", Code::IoError, "eio"),
        ("rollback.switching", Code::IoError, "eio"),
        ("rollback.switching#2", Code::DiskSpaceInsufficient, "enospc"),
    ];
    std::thread::scope(|scope| {
        for (step, expected, fault) in cases {
            scope.spawn(move || {
                let site = site();
                let ws = site.workspace("project");
                let first = site.start();
                first.checkpoint(&ws, "one");
                first.stop();
                files::write(ws.join("file"), "changed");
                files::write(ws.join("new"), "new");
                let before = Tree::read(&ws);
                let daemon = site.start_with_fault(&format!("{step}={fault}"));
                let request = match step.starts_with("checkpoint") {
                    true => ask::checkpoint(&ws, "two"),
                    false => ask::rollback(&ws, "one"),
                };
                let (code, message) = daemon.refused(&request);
                assert_eq!(code, expected, "{step}: {message}");
                before.assert_same(&Tree::read(&ws), step);
                assert_eq!(daemon.ids(&ws), ["one"], "{step}");
                // The fault was a single one; the same request now succeeds.
                daemon.call(&request);
                daemon.rollback(&ws, "one");
                assert_eq!(files::read(ws.join("file")), b"content\n", "{step}");
                site.check();
            });
        }
    });
}

#[test]
fn a_workspace_that_another_process_holds_is_a_write_lock_conflict() {
    let site = site();
    let daemon = site.start();
    let (ws, free) = (site.workspace("project"), site.workspace("free"));
    daemon.checkpoint(&ws, "one");
    let root = File::open(&ws).unwrap();
    rustix::fs::flock(&root, FlockOperation::LockExclusive).unwrap();
    let before = Tree::read(&ws);
    std::thread::scope(|scope| {
        for request in [ask::checkpoint(&ws, "two"), ask::rollback(&ws, "one")] {
            let daemon = &daemon;
            scope.spawn(move || {
                let (code, message) = daemon.refused(&request);
                assert_eq!(code, Code::WriteLockConflict, "{message}");
                assert_eq!(message, "Workspace has active write operations. Please wait and retry.");
            });
        }
        // Meanwhile everything else is answered.
        assert_eq!(daemon.ids(&ws), ["one"]);
        daemon.checkpoint(&free, "one");
    });
    before.assert_same(&Tree::read(&ws), "the workspace");
    drop(root);
    daemon.checkpoint(&ws, "two");
    assert_eq!(site.check(), 3);
}

#[test]
fn a_failing_start_says_in_one_line_what_is_wrong() {
    let site = site();
    files::write(site.path("not-a-directory"), "");
    let too_long = site.path("s".repeat(120));
    for (what, arguments) in [
        ("a state directory that is a file", ["--state-dir", "not-a-directory", "--socket", "sock"]),
        ("a socket path that is too long", ["--state-dir", "state", "--socket", too_long.to_str().unwrap()]),
    ] {
        let mut command = site.cofferdam(&["serve"]);
        let ran = cofferdam_tests::site::run(command.args(arguments));
        assert_eq!(ran.code, 1, "{what}: {ran:?}");
        assert_eq!(ran.stdout, "", "{what}");
        assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{what}: {}", ran.stderr);
    }
}
