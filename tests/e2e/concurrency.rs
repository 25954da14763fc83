//! Many at once: workspaces within workspaces, checks beside writers, two daemons on one directory.

use std::sync::atomic::{AtomicBool, Ordering};

use cofferdam_protocol::ckpt::{WsCkptErrorCode as Code, WsCkptResponse};
use cofferdam_tests::tree::Tree;
use cofferdam_tests::wire::ask;
use cofferdam_tests::{files, project, skip, user};

use crate::{site, site_of_ordinary_user};

#[test]
fn workspaces_within_workspaces_are_written_one_after_another() {
    let site = site();
    let daemon = site.start();
    let (outer, inner) = (site.path("outer"), site.path("outer/inner"));
    project::make(&inner);
    files::write(outer.join("beside"), "b");
    let inside = Tree::read(&inner);
    daemon.checkpoint(&inner, "start");
    daemon.checkpoint(&outer, "start");
    std::thread::scope(|scope| {
        for (name, ws) in [("inner", &inner), ("outer", &outer)] {
            let daemon = &daemon;
            scope.spawn(move || {
                for n in 0..6 {
                    daemon.checkpoint(ws, &format!("{name}-{n}"));
                    daemon.rollback(ws, "start");
                }
            });
        }
        for _ in 0..3 {
            // What is read meanwhile is never half of a rollback.
            let changes = daemon.diff(&outer, "start", "@live");
            assert!(changes.is_empty(), "{changes:?}");
        }
    });
    inside.assert_same(&Tree::read(&inner), "the inner workspace");
    assert_eq!((daemon.ids(&inner).len(), daemon.ids(&outer).len()), (7, 7));
    assert_eq!(site.check(), 14);
}

#[test]
fn a_check_beside_writers_finds_no_damage_that_is_not_there() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..15 {
                files::write(ws.join("file"), project::noise(30_000 + n));
                daemon.checkpoint(&ws, &format!("c{n}"));
                if n % 4 == 3 {
                    let answer = daemon.call(&ask::cleanup(&ws, Some(2)));
                    assert!(matches!(answer, WsCkptResponse::CleanupOk { .. }), "{answer:?}");
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            site.check();
        }
    });
    assert_eq!(site.check(), daemon.ids(&ws).len() as u64);
}

#[test]
fn roots_daemon_and_a_users_daemon_take_turns_on_one_directory() {
    if !user::is_root() {
        skip!("needs root to be two users");
    }
    let (of_user, of_root) = (site_of_ordinary_user(), site());
    let ws = of_user.path("project");
    project::make(&ws);
    of_user.hand_over(&ws);
    let before = Tree::read(&ws);
    let daemons = [of_user.start(), of_root.start()];
    std::thread::scope(|scope| {
        for daemon in &daemons {
            let ws = &ws;
            scope.spawn(move || {
                daemon.checkpoint(ws, "start");
                for n in 0..4 {
                    match daemon.call(&ask::checkpoint(ws, &format!("c{n}"))) {
                        WsCkptResponse::CheckpointOk { .. } => {}
                        // Four seconds are long, but not for ever.
                        WsCkptResponse::Error { code: Code::WriteLockConflict, .. } => {}
                        other => panic!("{other:?}"),
                    }
                    daemon.rollback(ws, "start");
                }
            });
        }
    });
    before.assert_same(&Tree::read(&ws), "after both");
    of_user.check();
    of_root.check();
}

#[test]
fn a_fast_request_is_not_held_up_by_a_slow_one() {
    let site = site();
    let daemon = site.start();
    let (slow, quick) = (site.path("slow"), site.workspace("quick"));
    files::write(slow.join("big"), project::noise(48 << 20));
    daemon.checkpoint(&quick, "one");
    let mut wire = daemon.connect();
    wire.send(&ask::checkpoint(&slow, "big"));
    // Asked on another connection while the first still reads and compresses.
    for _ in 0..5 {
        assert_eq!(daemon.ids(&quick), ["one"]);
        assert!(matches!(daemon.call(&ask::status_all()), WsCkptResponse::StatusOk { .. }));
    }
    assert!(
        !wire.receives_within(std::time::Duration::from_nanos(1000)),
        "the slow request was over too soon"
    );
    assert!(matches!(wire.receive(), Some(WsCkptResponse::CheckpointOk { .. })));
}

#[test]
fn a_workspace_can_be_forgotten_while_others_ask_for_it() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "start");
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (daemon, ws) = (&daemon, &ws);
            scope.spawn(move || {
                for round in 0..5 {
                    // Each is answered by what is true when its turn comes.
                    for request in [
                        ask::checkpoint(ws, &format!("c{n}-{round}")),
                        ask::rollback(ws, "start"),
                        ask::list(ws),
                        ask::recover(ws),
                    ] {
                        if let WsCkptResponse::Error { code, message } = daemon.call(&request) {
                            let known = matches!(code, Code::WorkspaceNotFound | Code::SnapshotNotFound);
                            assert!(known, "{request:?}: {code}: {message}");
                        }
                    }
                }
            });
        }
    });
    assert_eq!(files::read(ws.join("file")), b"content\n");
    daemon.checkpoint(&ws, "end");
    assert!(daemon.ids(&ws).contains(&"end".to_owned()));
    site.check();
}
