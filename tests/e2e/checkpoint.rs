//! What may be snapshotted under which name, and what many clients at once get.

use std::os::unix::fs::MetadataExt;

use cofferdam_protocol::ckpt::{WsCkptErrorCode, WsCkptResponse};
use cofferdam_tests::files;
use cofferdam_tests::tree::Tree;
use cofferdam_tests::wire::ask;

use crate::site;

#[test]
fn a_snapshot_id_is_free_text_but_never_a_path() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let longest = "ü".repeat(127) + "x";
    for good in [
        "a",
        "before the refactor",
        " ",
        "-rf",
        "--force",
        "检查点 ✓",
        "...",
        "@live",
        "%s",
        "'; drop",
        &longest,
    ] {
        daemon.checkpoint(&ws, good);
        files::write(ws.join("file"), good);
        daemon.rollback(&ws, good);
    }
    let count = daemon.ids(&ws).len();
    let outside = Tree::read_without(&site.path(""), &["state", "ckpt.sock"]);
    let long = longest.clone() + "x";
    for bad in ["", ".", "..", "../../x", "/abs", "a/b", "a\nb", "a\0b", "\u{7f}", "\u{85}", "\t", &long] {
        let (code, message) = daemon.refused(&ask::checkpoint(&ws, bad));
        assert_eq!(code, WsCkptErrorCode::InvalidPath, "{bad:?}: {message}");
    }
    assert_eq!(daemon.ids(&ws).len(), count);
    outside.assert_same(
        &Tree::read_without(&site.path(""), &["state", "ckpt.sock"]),
        "outside of the state directory",
    );
}

#[test]
fn an_id_that_looks_like_a_path_names_nothing_anywhere() {
    let site = site();
    let daemon = site.start();
    let (ws, other) = (site.workspace("project"), site.workspace("other"));
    daemon.checkpoint(&ws, "one");
    daemon.checkpoint(&other, "one");
    let other_id = daemon.init(&other);
    let before = (Tree::read(&ws), Tree::read(&other));
    for bad in [
        "../../x",
        "/etc",
        "..",
        ".",
        &format!("../{other_id}/one"),
        &format!("../../{other_id}"),
        "one/../one",
    ] {
        for request in [
            ask::rollback(&ws, bad),
            ask::delete(&ws, bad, true),
            ask::delete_anywhere(bad, true),
            ask::diff(&ws, bad, "one"),
            ask::diff(&ws, "one", bad),
        ] {
            let (code, message) = daemon.refused(&request);
            assert_eq!(code, WsCkptErrorCode::SnapshotNotFound, "{request:?}: {message}");
        }
        for request in [ask::list(bad), ask::status(bad), ask::cleanup(bad, Some(0)), ask::recover(bad)] {
            let (code, message) = daemon.refused(&request);
            assert_eq!(code, WsCkptErrorCode::WorkspaceNotFound, "{request:?}: {message}");
        }
    }
    before.0.assert_same(&Tree::read(&ws), "the workspace");
    before.1.assert_same(&Tree::read(&other), "the other workspace");
    assert_eq!(site.check(), 2);
}

#[test]
fn metadata_that_is_not_json_is_refused_and_the_id_stays_free() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    for bad in ["", "{", "not json", "{\"a\":1} trailing", "\u{0}", "NaN", &deep] {
        let (code, message) = daemon.refused(&ask::checkpoint_with(&ws, "one", None, Some(bad), false));
        assert_eq!(code, WsCkptErrorCode::InternalError, "{message}");
        assert!(message.contains("metadata"), "{message}");
        assert!(message.len() < 1000, "an error text is not the place for {} bytes", message.len());
    }
    daemon.checkpoint(&ws, "one");
    assert_eq!(site.check(), 1);
}

#[test]
fn an_empty_directory_is_skipped_and_an_unchanged_one_is_not() {
    let site = site();
    let daemon = site.start();
    let ws = site.directory("project");
    let reason = "Empty workspace, no snapshot created.".to_owned();
    assert_eq!(daemon.call(&ask::checkpoint(&ws, "one")), WsCkptResponse::CheckpointSkipped { reason });
    files::mkdir(ws.join("an empty directory is something"));
    daemon.checkpoint(&ws, "one");
    daemon.checkpoint(&ws, "two");
    assert_eq!(daemon.ids(&ws), ["one", "two"]);
    assert_eq!(site.check(), 2);
}

#[test]
fn an_unchanged_tree_is_skipped_where_the_configuration_says_so() {
    let site = site();
    files::write(site.config(), "skip_unchanged = true\n");
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    let reason = "no changes since one".to_owned();
    assert_eq!(daemon.call(&ask::checkpoint(&ws, "two")), WsCkptResponse::CheckpointSkipped { reason });
    files::append(ws.join("file"), "more");
    daemon.checkpoint(&ws, "two");
    assert_eq!(daemon.ids(&ws), ["one", "two"]);
}

#[test]
fn a_name_that_is_taken_stays_with_the_first_snapshot() {
    let site = site();
    let daemon = site.start();
    let (ws, other) = (site.workspace("project"), site.workspace("other"));
    daemon.call(&ask::checkpoint_with(&ws, "one", Some("the first"), None, false));
    files::write(ws.join("file"), "changed");
    let (code, message) = daemon.refused(&ask::checkpoint_with(&ws, "one", Some("the second"), None, false));
    assert_eq!(code, WsCkptErrorCode::SnapshotAlreadyExists);
    assert_eq!(message, "snapshot id 'one' already exists in workspace");
    // Names belong to a workspace.
    daemon.checkpoint(&other, "one");
    daemon.rollback(&ws, "one");
    assert_eq!(files::read(ws.join("file")), b"content\n");
    assert_eq!(daemon.list(&ws)[0].meta.message.as_deref(), Some("the first"));
}

#[test]
fn ten_first_checkpoints_at_once_all_succeed_in_one_workspace() {
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    cofferdam_tests::project::make(&ws);
    std::thread::scope(|scope| {
        for n in 0..10 {
            let (daemon, ws) = (&daemon, &ws);
            scope.spawn(move || daemon.checkpoint(ws, &format!("first-{n}")));
        }
    });
    let mut ids = daemon.ids(&ws);
    ids.sort();
    assert_eq!(ids, (0..10).map(|n| format!("first-{n}")).collect::<Vec<_>>());
    let WsCkptResponse::StatusOk { report } = daemon.call(&ask::status_all()) else { panic!() };
    assert_eq!(report.workspaces.len(), 1);
    assert_eq!(site.check(), 10);
}

#[test]
fn the_same_request_at_the_same_time_is_one_snapshot_and_one_answer() {
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    cofferdam_tests::project::make(&ws);
    // All are sent before any answer is awaited.
    let mut wires: Vec<_> = (0..5).map(|_| daemon.connect()).collect();
    for wire in &mut wires {
        wire.send(&ask::checkpoint(&ws, "one"));
    }
    let answers: Vec<_> = wires.iter_mut().map(|wire| wire.receive().unwrap()).collect();
    let created =
        answers.iter().filter(|answer| matches!(answer, WsCkptResponse::CheckpointOk { .. })).count();
    assert!(created >= 1);
    // One that comes when the first has been answered is told so.
    for answer in answers.into_iter().filter(|answer| !matches!(answer, WsCkptResponse::CheckpointOk { .. }))
    {
        assert_eq!(cofferdam_tests::wire::error_of(answer).0, WsCkptErrorCode::SnapshotAlreadyExists);
    }
    assert_eq!(daemon.ids(&ws), ["one"]);
}

#[test]
fn a_client_that_went_away_gets_the_answer_when_it_asks_again() {
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    cofferdam_tests::project::make(&ws);
    let mut impatient = daemon.connect();
    impatient.send(&ask::checkpoint(&ws, "one"));
    drop(impatient);
    daemon.checkpoint(&ws, "one");
    assert_eq!(daemon.ids(&ws), ["one"]);
}

/// Of files and directories: no call reads a link without moving its own.
#[test]
fn a_checkpoint_does_not_move_access_times() {
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    files::write(ws.join("dir/file"), "read me");
    // Older than the last change, so that reading would move it on a filesystem that keeps such times at all.
    for path in ["dir/file", "dir", ""] {
        files::set_mtime(ws.join(path), 1_000_000_000, 0);
    }
    daemon.checkpoint(&ws, "one");
    assert_eq!(daemon.diff(&ws, "one", "@live"), []);
    for path in ["dir/file", "dir", ""] {
        assert_eq!(std::fs::symlink_metadata(ws.join(path)).unwrap().atime(), 1_000_000_000, "{path:?}");
    }
}

#[test]
fn a_file_that_is_being_written_does_not_hold_a_checkpoint_up() {
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};

    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut log = std::fs::File::options().create(true).append(true).open(ws.join("log")).unwrap();
            while !done.load(Ordering::Relaxed) {
                log.write_all(b"a line of a log that never ends\n").unwrap();
                // Not faster than a loop that fills the disk.
                if log.metadata().unwrap().len() > 8 << 20 {
                    log.set_len(0).unwrap();
                }
            }
        });
        for n in 0..5 {
            let answer = daemon.call(&ask::checkpoint(&ws, &format!("c{n}")));
            done.store(n == 4, Ordering::Relaxed);
            assert_eq!(answer, WsCkptResponse::CheckpointOk { snapshot_id: format!("c{n}") });
        }
    });
    assert_eq!(site.check(), 5);
}

#[test]
fn an_edit_right_after_a_checkpoint_is_seen_by_the_next() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    for n in 0..20 {
        // The same length each time, as fast as a program can.
        files::write(ws.join("file"), format!("{n:08}"));
        daemon.checkpoint(&ws, &format!("c{n}"));
    }
    for n in (0..20).rev() {
        daemon.rollback(&ws, &format!("c{n}"));
        assert_eq!(files::read(ws.join("file")), format!("{n:08}").into_bytes());
    }
}
