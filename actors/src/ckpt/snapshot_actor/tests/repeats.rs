//! Requests that come twice.

use super::*;
use cofferdam_storage::ckpt::Error;

/// Tells the daemon that an answer got lost.
async fn lost<M: Repeatable>(daemon: &Daemon, request: M, answer: M::Answer)
where
    Ckpt: Carries<Undelivered<M>>,
{
    daemon.ckpt.recipient().send(Undelivered { request, answer }).await.unwrap();
}

#[actix::test]
async fn an_identical_request_joins_the_one_that_is_under_way() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    let mut held = backend.hold("checkpoint");
    let first = daemon.send(checkpoint(ALICE, "/p", "one"));
    held.entered().await;
    let again = [(); 3].map(|()| daemon.send(checkpoint(ALICE, "/p", "one")));
    let other = daemon.send(checkpoint(ALICE, "/p", "two"));
    daemon.arrived().await;
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), created("one"));
    for again in again {
        assert_eq!(again.await.unwrap().unwrap(), created("one"));
    }
    assert_eq!(other.await.unwrap().unwrap(), created("two"));
    assert_eq!(backend.changes(), ["init /p", "checkpoint one", "checkpoint two"]);
}

#[actix::test]
async fn identical_rollbacks_undos_deletes_and_recovers_run_once() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["one"]);
    let daemon = Daemon::start(&backend).await;

    async fn twice<M, T>(daemon: &Daemon, call: &'static str, request: M)
    where
        Ckpt: Carries<M>,
        M: Message<Result = Result<T, Failure>> + Clone + Send + 'static,
        T: PartialEq + std::fmt::Debug + Send + 'static,
    {
        let mut held = daemon.backend.hold(call);
        let first = daemon.send(request.clone());
        held.entered().await;
        let again = daemon.send(request);
        daemon.arrived().await;
        held.release();
        assert_eq!(first.await.unwrap().unwrap(), again.await.unwrap().unwrap(), "{call}");
        assert_eq!(daemon.backend.count(call), 1, "{call}");
    }
    twice(&daemon, "rollback", rollback("/p", "one")).await;
    twice(&daemon, "undo", undo("/p")).await;
    twice(&daemon, "delete", delete(Some("/p"), "one")).await;
    twice(&daemon, "recover", recover("/p")).await;
}

#[actix::test]
async fn a_joined_failure_fails_everybody_and_is_not_remembered() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    let mut held = backend.hold("init");
    backend.panic("checkpoint");
    let first = daemon.send(checkpoint(ALICE, "/p", "one"));
    held.entered().await;
    let again = daemon.send(checkpoint(ALICE, "/p", "one"));
    daemon.arrived().await;
    held.release();
    let failure = first.await.unwrap().unwrap_err();
    assert_eq!(failure.code, Code::InternalError);
    assert_eq!(again.await.unwrap().unwrap_err(), failure);
    assert_eq!(daemon.ask(checkpoint(ALICE, "/p", "one")).await.unwrap(), created("one"));
}

#[actix::test]
async fn the_request_of_another_user_or_with_another_content_is_not_the_same() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    let mut held = backend.hold("checkpoint");
    let first = daemon.send(checkpoint(ALICE, "/p", "one"));
    held.entered().await;
    let text = "not your directory: /p";
    assert_refused(daemon.ask(checkpoint(BOB, "/p", "one")).await, Code::InvalidPath, text);
    let pinned = daemon.send(CreateCheckpoint { pin: true, ..checkpoint(ALICE, "/p", "one") });
    daemon.arrived().await;
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), created("one"));
    assert_eq!(pinned.await.unwrap().unwrap_err().code, Code::SnapshotAlreadyExists);
}

#[actix::test]
async fn an_answer_that_got_lost_is_given_to_the_identical_request_for_a_minute() {
    tokio::time::pause();
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    let request = checkpoint(ALICE, "/p", "one");
    let answer = daemon.ask(request.clone()).await.unwrap();
    let exists = "snapshot id 'one' already exists in workspace";
    assert_refused(daemon.ask(request.clone()).await, Code::SnapshotAlreadyExists, exists);
    lost(&daemon, request.clone(), answer.clone()).await;
    assert_eq!(daemon.ask(request.clone()).await.unwrap(), answer);
    let other = CreateCheckpoint { message: Some("other".to_owned()), ..request.clone() };
    assert_refused(daemon.ask(other).await, Code::SnapshotAlreadyExists, exists);
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(daemon.ask(request.clone()).await.unwrap(), answer);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_refused(daemon.ask(request).await, Code::SnapshotAlreadyExists, exists);
    assert_eq!(backend.count("checkpoint"), 1);
}

#[actix::test]
async fn an_answer_that_got_lost_twice_is_kept_for_a_minute_from_the_second_time() {
    tokio::time::pause();
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    let request = checkpoint(ALICE, "/p", "one");
    let answer = daemon.ask(request.clone()).await.unwrap();
    lost(&daemon, request.clone(), answer.clone()).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    lost(&daemon, request.clone(), answer.clone()).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(daemon.ask(request).await.unwrap(), answer);
}

#[actix::test]
async fn a_lost_answer_never_stands_in_for_work_that_can_be_done() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    let make = checkpoint(ALICE, "/p", "one");
    let remove = delete(Some("/p"), "one");
    let made = daemon.ask(make.clone()).await.unwrap();
    lost(&daemon, make.clone(), made).await;
    let removed = daemon.ask(remove.clone()).await.unwrap();
    lost(&daemon, remove.clone(), removed.clone()).await;
    assert_eq!(daemon.ask(remove.clone()).await.unwrap(), removed);
    assert_eq!(daemon.ask(make).await.unwrap(), created("one"));
    assert_eq!(daemon.names("/p").await, ["one"], "it was made again");
    daemon.ask(remove).await.unwrap();
    assert_eq!(daemon.names("/p").await, [""; 0], "and removed again");

    let forget = recover("/p");
    let forgotten = daemon.ask(forget.clone()).await.unwrap();
    lost(&daemon, forget.clone(), forgotten).await;
    assert_eq!(daemon.ask(forget).await.unwrap(), "/p");
}

#[actix::test]
async fn a_lost_undo_is_answered_again_instead_of_being_taken_back() {
    tokio::time::pause();
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["one"]);
    let daemon = Daemon::start(&backend).await;
    let undone = daemon.ask(undo("/p")).await.unwrap();
    lost(&daemon, undo("/p"), undone.clone()).await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(daemon.ask(undo("/p")).await.unwrap(), undone);
    assert_eq!(backend.count("undo"), 1);
    // Having been told, who asks again means it.
    assert_ne!(daemon.ask(undo("/p")).await.unwrap(), undone);
    assert_eq!(backend.count("undo"), 2);
}

#[actix::test]
async fn an_undo_that_was_joined_is_lost_only_if_nobody_got_its_answer() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["one"]);
    let daemon = Daemon::start(&backend).await;
    let twice = async || {
        let mut held = backend.hold("undo");
        let first = daemon.send(undo("/p"));
        held.entered().await;
        let again = daemon.send(undo("/p"));
        daemon.arrived().await;
        held.release();
        let undone = first.await.unwrap().unwrap();
        assert_eq!(again.await.unwrap().unwrap(), undone);
        undone
    };
    // The first client has lost patience, and the second one knows: who asks a third time wants it taken back.
    let undone = twice().await;
    lost(&daemon, undo("/p"), undone.clone()).await;
    assert_ne!(daemon.ask(undo("/p")).await.unwrap(), undone);
    assert_eq!(backend.count("undo"), 2);

    let undone = twice().await;
    for _ in 0..2 {
        lost(&daemon, undo("/p"), undone.clone()).await;
    }
    assert_eq!(daemon.ask(undo("/p")).await.unwrap(), undone);
    assert_eq!(backend.count("undo"), 3);
}

#[actix::test]
async fn a_lost_undo_is_forgotten_after_a_minute_and_by_what_is_rolled_back_or_undone_since() {
    tokio::time::pause();
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["one"]);
    let ws = backend.registered("/q", ALICE, &["one"]);
    let daemon = Daemon::start(&backend).await;
    let lose = async || {
        let undone = daemon.ask(undo("/p")).await.unwrap();
        lost(&daemon, undo("/p"), undone.clone()).await;
        undone
    };
    let undone = lose().await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_ne!(daemon.ask(undo("/p")).await.unwrap(), undone);

    let undone = lose().await;
    daemon.ask(rollback("/p", "one")).await.unwrap();
    assert_ne!(daemon.ask(undo("/p")).await.unwrap(), undone, "the rollback is undone");

    let undone = lose().await;
    // By another name of the workspace: another request, which may not be answered by that one either.
    let by_id = UndoRollback { peer: user(0), workspace: ws.to_string(), expected: None };
    daemon.ask(by_id).await.unwrap();
    assert_eq!(daemon.ask(undo("/p")).await.unwrap(), undone, "that was another workspace");
}

#[actix::test]
async fn a_lost_answer_hides_no_other_failure() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    let make = checkpoint(ALICE, "/p", "one");
    let made = daemon.ask(make.clone()).await.unwrap();
    lost(&daemon, make.clone(), made).await;
    daemon.ask(delete(Some("/p"), "one")).await.unwrap();
    backend.fail("checkpoint", Error::NoSpace { what: "writing a pack".to_owned() });
    assert_eq!(daemon.ask(make).await.unwrap_err().code, Code::DiskSpaceInsufficient);
}

#[actix::test]
async fn few_and_small_answers_are_remembered() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    let message = Some("x".repeat(70_000));
    let large = CreateCheckpoint { message, ..checkpoint(ALICE, "/p", "large") };
    let answer = daemon.ask(large.clone()).await.unwrap();
    lost(&daemon, large.clone(), answer).await;
    assert_eq!(daemon.ask(large).await.unwrap_err().code, Code::SnapshotAlreadyExists);

    let requests: Vec<_> = (0..130).map(|n| checkpoint(ALICE, "/p", &n.to_string())).collect();
    for request in &requests {
        let answer = daemon.ask(request.clone()).await.unwrap();
        lost(&daemon, request.clone(), answer).await;
    }
    let (forgotten, remembered) = requests.split_at(2);
    for request in forgotten {
        assert_eq!(daemon.ask(request.clone()).await.unwrap_err().code, Code::SnapshotAlreadyExists);
    }
    for request in remembered {
        daemon.ask(request.clone()).await.unwrap();
    }
}

#[actix::test]
async fn more_requests_than_the_daemon_holds_are_refused() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    let mut held = backend.hold("checkpoint");
    let mut waiting = vec![daemon.send(checkpoint(ALICE, "/p", "one"))];
    held.entered().await;
    waiting.extend((1..MAX_REQUESTS).map(|_| daemon.send(checkpoint(ALICE, "/p", "one"))));
    daemon.arrived().await;
    let busy = "the daemon is busy with too many requests; try again";
    assert_refused(daemon.ask(rollback("/p", "one")).await, Code::InternalError, busy);
    assert_eq!(daemon.names("/p").await, [""; 0], "memory still answers");
    held.release();
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap().unwrap(), created("one"));
    }
    daemon.ask(rollback("/p", "one")).await.unwrap();
}
