//! How long a write waits, and what is published when it has ended.

use super::*;
use crate::ckpt::operations::{Checkpoint, Recover, RollBack, Undo};
use cofferdam_storage::ckpt::RolledBack;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A daemon with one probed workspace at `/p`.
fn one_workspace(snapshots: &[&str]) -> (Daemon, WorkspaceId, Inbox) {
    let backend = FakeBackend::with(&[]);
    let ws = backend.registered("/p", ALICE, snapshots);
    let daemon = Daemon::probed(&backend);
    let inbox = daemon.inbox(&ws);
    (daemon, ws, inbox)
}

#[actix::test]
async fn a_write_that_does_not_begin_within_four_seconds_is_a_conflict_and_never_begins() {
    tokio::time::pause();
    let (daemon, ws, mut inbox) = one_workspace(&[]);
    let first = daemon.send(checkpoint(ALICE, "/p", "a"));
    let running = inbox.next::<Checkpoint>().await;
    running.begin();
    let before = tokio::time::Instant::now();
    assert_refused(daemon.ask(rollback("/p", "a")).await, Code::WriteLockConflict, CONFLICT);
    assert_eq!(before.elapsed().as_secs(), 4);
    assert!(inbox.next::<RollBack>().await.write.ticket.begin().is_none());
    running.done(created("a"), Some(view(&daemon.backend, &ws, &["a"], 1)));
    assert_eq!(first.await.unwrap().unwrap(), created("a"));
}

#[actix::test]
async fn a_write_that_has_begun_is_waited_for_however_long_it_takes() {
    tokio::time::pause();
    let (daemon, ws, mut inbox) = one_workspace(&["one"]);
    let mut asked = daemon.send(rollback("/p", "one"));
    let running = inbox.next::<RollBack>().await;
    assert_eq!(running.begin().to, "one");
    assert!(tokio::time::timeout(DAY, &mut asked).await.is_err(), "still running");
    let outcome = RolledBack { changed: 9, warnings: Vec::new() };
    let done = RollbackDone { workspace: ws.clone(), to: id("one"), outcome };
    running.done(done.clone(), Some(view(&daemon.backend, &ws, &["one"], 0)));
    assert_eq!(asked.await.unwrap().unwrap(), done);
}

#[actix::test]
async fn writes_of_different_workspaces_do_not_wait_for_each_other() {
    let backend = FakeBackend::with(&[("/a", ALICE), ("/b", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    let mut held = backend.hold("checkpoint");
    let slow = daemon.send(checkpoint(ALICE, "/a", "one"));
    held.entered().await;
    assert_eq!(daemon.ask(checkpoint(ALICE, "/b", "one")).await.unwrap(), created("one"));
    assert_eq!(daemon.names("/a").await, [""; 0], "a list waits for no write");
    held.release();
    slow.await.unwrap().unwrap();
}

#[actix::test]
async fn who_lists_after_the_answer_sees_what_was_written() {
    let (daemon, ws, mut inbox) = one_workspace(&["one"]);
    let asked = daemon.send(checkpoint(ALICE, "/p", "two"));
    let write = inbox.next::<Checkpoint>().await;
    assert_eq!(write.begin().0.id, id("two"));
    assert_eq!(write.write.peer, user(ALICE));
    assert_eq!(daemon.names("/p").await, ["one"]);
    write.done(created("two"), Some(view(&daemon.backend, &ws, &["one", "two"], 1)));
    asked.await.unwrap().unwrap();
    assert_eq!(daemon.names("/p").await, ["one", "two"]);
}

#[actix::test]
async fn what_a_failed_write_learnt_is_published_too() {
    let (daemon, ws, mut inbox) = one_workspace(&["one"]);
    let asked = daemon.send(checkpoint(ALICE, "/p", "two"));
    let write = inbox.next::<Checkpoint>().await;
    write.answer(Err(RoutingError::Panicked.into()), Some(view(&daemon.backend, &ws, &["one", "two"], 1)));
    assert_eq!(asked.await.unwrap().unwrap_err().code, Code::InternalError);
    assert_eq!(daemon.names("/p").await, ["one", "two"]);
}

#[actix::test]
async fn an_older_list_never_replaces_a_newer_one() {
    let (daemon, ws, mut inbox) = one_workspace(&[]);
    let first = daemon.send(checkpoint(ALICE, "/p", "a"));
    let older = inbox.next::<Checkpoint>().await;
    let second = daemon.send(checkpoint(ALICE, "/p", "b"));
    let newer = inbox.next::<Checkpoint>().await;
    newer.done(created("b"), Some(view(&daemon.backend, &ws, &["a", "b"], 2)));
    second.await.unwrap().unwrap();
    older.done(created("a"), Some(view(&daemon.backend, &ws, &["a"], 1)));
    first.await.unwrap().unwrap();
    assert_eq!(daemon.names("/p").await, ["a", "b"]);
}

#[actix::test]
async fn more_writes_than_there_are_places_are_refused_at_once() {
    tokio::time::pause();
    let (daemon, _, mut inbox) = one_workspace(&[]);
    let places = crate::ckpt::workspace_actor::MAX_WRITES;
    let mut waiting = Vec::new();
    for n in 0..places {
        waiting.push(daemon.send(checkpoint(ALICE, "/p", &n.to_string())));
    }
    let mut received = Vec::new();
    for _ in 0..places {
        received.push(inbox.next::<Checkpoint>().await);
    }
    let before = tokio::time::Instant::now();
    assert_refused(daemon.ask(undo("/p")).await, Code::WriteLockConflict, CONFLICT);
    assert_eq!(before.elapsed(), Duration::ZERO);
    for waiting in waiting {
        assert_refused(waiting.await.unwrap(), Code::WriteLockConflict, CONFLICT);
    }
    // Whoever gave up keeps the place until the workspace's actor has come by.
    assert_refused(daemon.ask(undo("/p")).await, Code::WriteLockConflict, CONFLICT);
    assert_eq!(before.elapsed().as_secs(), 4);
    drop(received);
    let asked = daemon.send(undo("/p"));
    drop(inbox.next::<Undo>().await);
    assert_eq!(asked.await.unwrap().unwrap_err().code, Code::InternalError);
}

#[actix::test]
async fn recover_forgets_the_workspace_and_its_actor() {
    let (daemon, ws, mut inbox) = one_workspace(&["one"]);
    let asked = daemon.send(recover(ws.as_str()));
    inbox.next::<Recover>().await.done("/p".to_owned(), None);
    assert_eq!(asked.await.unwrap().unwrap(), "/p");
    let gone = format!("workspace not found: {ws}");
    assert_refused(daemon.ask(list(ALICE, Some(ws.as_str()))).await, Code::WorkspaceNotFound, &gone);
    assert_refused(daemon.ask(recover("/p")).await, Code::WorkspaceNotFound, "workspace not found: /p");
    assert!(inbox.0.recv().await.is_none(), "its actor has stopped");
}

#[actix::test]
async fn a_workspace_that_was_recovered_can_be_registered_again() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    daemon.ask(checkpoint(ALICE, "/p", "one")).await.unwrap();
    assert_eq!(daemon.ask(recover("/p")).await.unwrap(), "/p");
    assert_eq!(daemon.ask(checkpoint(ALICE, "/p", "one")).await.unwrap(), created("one"));
    assert_eq!(daemon.names("/p").await, ["one"]);
}

#[actix::test]
async fn a_write_that_waited_while_its_workspace_was_recovered_finds_it_gone() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["one"]);
    let daemon = Daemon::start(&backend).await;
    let mut held = backend.hold("recover");
    let recovered = daemon.send(recover("/p"));
    held.entered().await;
    let waiting = daemon.send(rollback("/p", "one"));
    daemon.arrived().await;
    held.release();
    recovered.await.unwrap().unwrap();
    assert_refused(waiting.await.unwrap(), Code::WorkspaceNotFound, "workspace not found: /p");
}

#[actix::test]
async fn a_write_the_engine_cannot_place_is_told_by_the_name_it_was_sent_with() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["one"]);
    let daemon = Daemon::start(&backend).await;
    let ws = backend.workspaces().unwrap().remove(0).workspace.id;
    backend.fail("undo", Error::WorkspaceNotFound(ws));
    assert_refused(daemon.ask(undo("//p")).await, Code::WorkspaceNotFound, "workspace not found: //p");
}

#[actix::test]
async fn rollback_and_undo_say_what_they_did() {
    let backend = FakeBackend::with(&[]);
    let ws = backend.registered("/p", ALICE, &["one", "two"]);
    let daemon = Daemon::start(&backend).await;
    let done = daemon.ask(rollback("/p", "o")).await.unwrap();
    assert_eq!((done.workspace, done.to, done.outcome.changed), (ws.clone(), id("one"), 3));
    let undone = daemon.ask(undo("/p")).await.unwrap();
    assert_eq!((undone.workspace, undone.path, undone.outcome.changed), (ws, "/p".into(), 2));
    backend.fail("undo", Error::NothingToUndo);
    assert_eq!(daemon.ask(undo("/p")).await.unwrap_err().code, Code::SnapshotNotFound);
}
