//! Delete and Cleanup.

use super::*;
use crate::ckpt::operations::{Clean, Delete};
use cofferdam_protocol::ckpt::CleanupRetention;

#[actix::test]
async fn without_a_workspace_the_only_one_that_has_such_a_snapshot_is_meant() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/a", ALICE, &["shared", "a-1", "a-2"]);
    backend.registered("/b", ALICE, &["shared-too", "b-1"]);
    backend.registered("/c", BOB, &["b-1"]);
    let daemon = Daemon::start(&backend).await;
    let several = |name: &str| {
        format!("snapshot '{name}' matches in multiple workspaces, please specify --workspace/-w")
    };
    for (reference, expected) in [
        // An exact name in one and a prefix in another are two.
        ("shared", Err(several("shared"))),
        ("", Err(several(""))),
        ("a-", Err("ambiguous snapshot prefix 'a-': 2 matches".to_owned())),
        ("c", Err("snapshot not found: c".to_owned())),
        ("shared-", Ok("shared-too")),
        ("b-1", Ok("b-1")),
        ("a-2", Ok("a-2")),
        ("a-", Ok("a-1")),
        ("shared", Ok("shared")),
    ] {
        let answer = daemon.ask(delete(None, reference)).await;
        match expected {
            Ok(name) => assert_eq!(answer.unwrap(), id(name)),
            Err(text) => assert_refused(answer, Code::SnapshotNotFound, &text),
        }
    }
    assert_eq!(daemon.ask(list(BOB, Some("/c"))).await.unwrap().entries().len(), 1);
}

#[actix::test]
async fn a_delete_reaches_the_workspace_as_it_was_sent() {
    let backend = FakeBackend::with(&[]);
    let ws = backend.registered("/p", ALICE, &["one"]);
    let daemon = Daemon::probed(&backend);
    let mut inbox = daemon.inbox(&ws);
    let asked = daemon.send(DeleteSnapshot { exact: true, force: true, ..delete(Some("/p"), "o") });
    let received = inbox.next::<Delete>().await;
    let Delete { snapshot, exact, force } = received.begin();
    assert_eq!((snapshot.as_str(), exact, force), ("o", true, true));
    received.done(id("one"), Some(view(&backend, &ws, &[], 1)));
    assert_eq!(asked.await.unwrap().unwrap(), id("one"));
    assert_eq!(daemon.names("/p").await, [""; 0]);
    assert_eq!(*daemon.announced.borrow(), 1, "there may be something to collect");
}

#[actix::test]
async fn cleanup_keeps_twenty_unless_it_is_told() {
    let backend = FakeBackend::with(&[]);
    let ws = backend.registered("/p", ALICE, &["one"]);
    let daemon = Daemon::probed(&backend);
    let mut inbox = daemon.inbox(&ws);
    for (keep, expected) in [(None, 20), (Some(0), 0), (Some(7), 7)] {
        let asked = daemon.send(cleanup("/p", keep));
        let received = inbox.next::<Clean>().await;
        assert_eq!(received.begin().0, CleanupRetention::Count(expected));
        received.done(vec![id("x")], Some(view(&backend, &ws, &[], 1)));
        assert_eq!(asked.await.unwrap().unwrap(), [id("x")]);
    }
    assert_eq!(*daemon.announced.borrow(), 3);
}
