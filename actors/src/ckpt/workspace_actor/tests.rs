//! One workspace's actor over an engine whose calls wait until the test lets them go on.

use std::io::ErrorKind;

use cofferdam_protocol::ckpt::{CleanupRetention, WsCkptErrorCode as Code};
use cofferdam_storage::ckpt::NewSnapshot;
use tokio::sync::Semaphore;

use super::*;
use crate::ckpt::messages::CheckpointOutcome;
use crate::ckpt::testing::{ALICE, FakeBackend, user};
use crate::mailbox::Carries;

struct Workspace {
    backend: Arc<FakeBackend>,
    writer: Writer,
    places: Arc<Semaphore>,
}

/// A workspace with these snapshots.
fn workspace(snapshots: &[&str]) -> Workspace {
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, snapshots);
    open(backend)
}

fn open(backend: Arc<FakeBackend>) -> Workspace {
    let state = backend.workspaces().unwrap().remove(0);
    let actor = WorkspaceActor::new(backend.clone(), backend.clock(), View::first(state));
    Workspace { backend, writer: actor.start().into(), places: Arc::new(Semaphore::new(MAX_WRITES)) }
}

impl Workspace {
    /// Sends an operation; the reply comes when it is awaited.
    fn send<O: Operation>(
        &self,
        operation: O,
    ) -> impl Future<Output = Result<Written<O::Done>, MailboxError>> + use<O>
    where
        Writer: Carries<Write<O>>,
    {
        self.send_ticket(Ticket::new(operation))
    }

    fn send_ticket<O: Operation>(
        &self,
        ticket: Ticket<O>,
    ) -> impl Future<Output = Result<Written<O::Done>, MailboxError>> + use<O>
    where
        Writer: Carries<Write<O>>,
    {
        let place = Arc::clone(&self.places).try_acquire_owned().unwrap();
        self.writer.recipient().send(Write { peer: user(ALICE), ticket, place })
    }

    async fn run<O: Operation>(&self, operation: O) -> Written<O::Done>
    where
        Writer: Carries<Write<O>>,
    {
        self.send(operation).await.unwrap()
    }
}

fn checkpoint(id: &str) -> Checkpoint {
    let id = SnapshotId::new(id).unwrap();
    Checkpoint(NewSnapshot {
        id,
        message: None,
        metadata: None,
        pin: false,
        skip_unchanged: false,
        even_empty: false,
    })
}

fn delete(snapshot: &str, force: bool) -> Delete {
    Delete { snapshot: snapshot.to_owned(), exact: false, force }
}

fn created(id: &str) -> CheckpointOutcome {
    CheckpointOutcome::Created(SnapshotId::new(id).unwrap())
}

fn names<T>(written: &Written<T>) -> Vec<&str> {
    written.view.as_ref().unwrap().snapshots.iter().map(|snapshot| snapshot.id.as_str()).collect()
}

fn code<T: std::fmt::Debug>(written: Written<T>) -> Code {
    written.result.unwrap_err().code
}

#[actix::test]
async fn writes_run_one_after_another_in_the_order_in_which_they_came() {
    let ws = workspace(&["old"]);
    let mut held = ws.backend.hold("checkpoint");
    let first = ws.send(checkpoint("a"));
    let second = ws.send(delete("a", false));
    held.entered().await;
    assert_eq!(ws.backend.changes(), ["checkpoint a"]);
    held.release();
    let first = first.await.unwrap();
    assert_eq!((names(&first), first.view.as_ref().unwrap().version), (vec!["old", "a"], 1));
    assert_eq!(first.result.unwrap(), created("a"));
    let second = second.await.unwrap();
    assert_eq!((names(&second), second.view.as_ref().unwrap().version), (vec!["old"], 2));
    assert_eq!(second.result.unwrap().as_str(), "a");
    assert_eq!(ws.backend.changes(), ["checkpoint a", "delete a Unlink"]);
}

#[actix::test]
async fn a_write_that_was_given_up_is_not_run() {
    let ws = workspace(&[]);
    let mut held = ws.backend.hold("checkpoint");
    let (running, waiting) = (Ticket::new(checkpoint("a")), Ticket::new(checkpoint("b")));
    let first = ws.send_ticket(running.clone());
    let second = ws.send_ticket(waiting.clone());
    held.entered().await;
    assert!(!running.give_up(), "what has begun cannot be given up");
    assert!(waiting.give_up());
    held.release();
    assert_eq!(first.await.unwrap().result.unwrap(), created("a"));
    let second = second.await.unwrap();
    assert_eq!(names(&second), ["a"]);
    assert_eq!(code(second), Code::WriteLockConflict);
    assert_eq!(ws.backend.changes(), ["checkpoint a"]);
    assert_eq!(ws.places.available_permits(), MAX_WRITES);
}

#[actix::test]
async fn a_panic_is_an_internal_error_and_the_actor_lives() {
    let ws = workspace(&["old"]);
    ws.backend.panic("checkpoint");
    assert_eq!(code(ws.run(checkpoint("a")).await), Code::InternalError);
    let next = ws.run(checkpoint("a")).await;
    assert_eq!(names(&next), ["old", "a"]);
    assert_eq!(next.result.unwrap(), created("a"));
}

#[actix::test]
async fn after_a_failure_that_leaves_the_catalog_in_doubt_the_snapshots_are_read_again() {
    let io = || Error::io("commit", ErrorKind::Other.into());
    for error in [Some(Error::Catalog("commit".to_owned())), Some(io()), None] {
        let ws = workspace(&["old"]);
        // What the failing call published before it failed.
        let id = ws.backend.workspaces().unwrap().remove(0).workspace.id;
        let new = checkpoint("published").0;
        ws.backend.checkpoint(&user(ALICE), &id, &new).unwrap();
        match error {
            Some(error) => ws.backend.fail("checkpoint", error),
            None => ws.backend.panic("checkpoint"),
        }
        let failed = ws.run(checkpoint("other")).await;
        assert_eq!(names(&failed), ["old", "published"]);
        assert!(failed.result.is_err());
        assert_eq!(code(ws.run(checkpoint("published")).await), Code::SnapshotAlreadyExists);
    }
}

#[actix::test]
async fn a_plain_refusal_costs_no_reading() {
    let ws = workspace(&["old"]);
    let before = ws.backend.count("workspaces");
    ws.backend.fail("checkpoint", Error::Busy);
    assert_eq!(code(ws.run(checkpoint("a")).await), Code::WriteLockConflict);
    assert_eq!(code(ws.run(checkpoint("old")).await), Code::SnapshotAlreadyExists);
    assert_eq!(code(ws.run(delete("none", true)).await), Code::SnapshotNotFound);
    assert_eq!(ws.backend.count("workspaces"), before);
}

#[actix::test]
async fn recover_stops_the_actor_after_its_reply_and_turns_away_whoever_waits() {
    let ws = workspace(&["old"]);
    let mut held = ws.backend.hold("recover");
    let recovered = ws.send(Recover);
    let waiting = ws.send(checkpoint("a"));
    held.entered().await;
    held.release();
    let recovered = recovered.await.unwrap();
    assert!(recovered.view.is_none());
    assert_eq!(recovered.result.unwrap(), "/p");
    assert_eq!(waiting.await.unwrap_err(), MailboxError::Closed);
    assert_eq!(ws.send(Prime).await.unwrap_err(), MailboxError::Closed);
    assert_eq!(ws.backend.changes().len(), 1);
}

#[actix::test]
async fn an_empty_or_unchanged_directory_is_skipped_with_a_reason() {
    let ws = workspace(&[]);
    ws.run(checkpoint("a")).await.result.unwrap();
    let mut again = checkpoint("b");
    again.0.skip_unchanged = true;
    let skipped = |reason: &str| CheckpointOutcome::Skipped { reason: reason.to_owned() };
    assert_eq!(ws.run(again).await.result.unwrap(), skipped("no changes since a"));
    assert_eq!(ws.run(checkpoint("b")).await.result.unwrap(), created("b"));
    ws.backend.write("/p", 0);
    let empty = ws.run(checkpoint("c")).await;
    assert_eq!(names(&empty), ["a", "b"]);
    assert_eq!(empty.result.unwrap(), skipped("Empty workspace, no snapshot created."));
}

#[actix::test]
async fn a_pinned_snapshot_goes_only_by_force_and_then_into_the_trash() {
    let ws = workspace(&["pin", "plain"]);
    let id = ws.backend.workspaces().unwrap().remove(0).workspace.id;
    ws.backend.change(&id, "pin", |snapshot| snapshot.pinned = true);
    let ws = open(ws.backend);
    let refused = ws.run(delete("pin", false)).await.result.unwrap_err();
    assert_eq!(refused.code, Code::ConfirmationRequired);
    assert_eq!(refused.message, "Snapshot is pinned, use --force to confirm deletion");
    assert_eq!(ws.run(delete("pi", true)).await.result.unwrap().as_str(), "pin");
    assert_eq!(ws.run(delete("plain", false)).await.result.unwrap().as_str(), "plain");
    assert_eq!(ws.backend.changes(), ["delete pin Trash", "delete plain Unlink"]);
}

#[actix::test]
async fn a_rollback_to_a_snapshot_whose_data_is_lost_is_refused() {
    let ws = workspace(&["lost", "good"]);
    let id = ws.backend.workspaces().unwrap().remove(0).workspace.id;
    ws.backend.change(&id, "lost", |snapshot| snapshot.missing = true);
    let ws = open(ws.backend);
    let refused = ws.run(RollBack { to: "lost".to_owned(), exact: false }).await.result.unwrap_err();
    assert_eq!(refused.code, Code::SnapshotNotFound);
    assert!(refused.message.starts_with("Snapshot 'lost' subvolume is missing (data lost)."), "{refused}");
    let done = ws.run(RollBack { to: "g".to_owned(), exact: false }).await.result.unwrap();
    assert_eq!((done.workspace, done.to.as_str(), done.outcome.changed), (id, "good", 3));
    assert_eq!(ws.run(Undo { expected: None }).await.result.unwrap().outcome.changed, 2);
    assert_eq!(ws.backend.changes(), ["rollback good", "undo ws-000000"]);
}

#[actix::test]
async fn clean_up_deletes_all_it_removes_in_one_step() {
    let ws = workspace(&["a", "b", "c", "d"]);
    let clean = |keep| Clean(CleanupRetention::Count(keep));
    let cleaned = ws.run(clean(2)).await;
    assert_eq!(names(&cleaned), ["c", "d"]);
    let removed = cleaned.result.unwrap();
    assert_eq!(removed.iter().map(SnapshotId::as_str).collect::<Vec<_>>(), ["a", "b"]);
    assert!(ws.run(clean(2)).await.result.unwrap().is_empty());
    assert_eq!(ws.backend.changes(), ["delete a b Unlink"]);
}

#[actix::test]
async fn an_adopted_directory_keeps_its_snapshots() {
    let ws = workspace(&["a"]);
    let adopted = ws.run(Adopt).await;
    assert_eq!((names(&adopted), adopted.view.as_ref().unwrap().version), (vec!["a"], 1));
    assert_eq!(adopted.result.unwrap().workspace.path, std::path::Path::new("/p"));
}

async fn adopt_as_root(ws: &Workspace) -> Written<WorkspaceState> {
    let place = Arc::clone(&ws.places).try_acquire_owned().unwrap();
    ws.writer.recipient().send(Write { peer: user(0), ticket: Ticket::new(Adopt), place }).await.unwrap()
}

#[actix::test]
async fn a_directory_that_now_belongs_to_somebody_else_begins_afresh() {
    let ws = workspace(&["a"]);
    ws.backend.registered("/p", 0, &["theirs"]);
    let adopted = adopt_as_root(&ws).await;
    assert_eq!(names(&adopted), ["theirs"]);
    assert_eq!(adopted.result.unwrap().workspace.owner, 0);
}

#[actix::test]
async fn a_workspace_whose_directory_is_registered_by_another_id_is_no_more() {
    let ws = workspace(&["a"]);
    let before = ws.backend.workspaces().unwrap().remove(0).workspace.id;
    ws.backend.recover(&user(ALICE), &before).unwrap();
    ws.backend.registered("/q", ALICE, &[]);
    let after = ws.backend.registered("/p", 0, &["theirs"]);
    assert_ne!(after, before);
    let adopted = adopt_as_root(&ws).await;
    assert!(adopted.view.is_none());
    assert_eq!(adopted.result.unwrap().workspace.id, after);
}
