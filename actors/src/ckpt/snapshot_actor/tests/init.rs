//! Registering: by Init and by a first checkpoint.

use super::*;
use crate::ckpt::operations::{Adopt, Checkpoint, Prime};
use cofferdam_storage::ckpt::Error;

#[actix::test]
async fn init_registers_answers_and_then_reads_the_tree_in_the_background() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    let mut prime = backend.hold("prime");
    let ws = daemon.ask(init(ALICE, "/p/")).await.unwrap();
    prime.entered().await;
    assert_eq!(backend.changes(), ["init /p".to_owned(), format!("prime {ws}")]);
    // It is there although its tree is still being read, and asking again waits for nothing.
    assert_eq!(daemon.names(ws.as_str()).await, [""; 0]);
    assert_eq!(daemon.ask(init(ALICE, "/p")).await.unwrap(), ws);
    prime.release();
    assert_eq!(daemon.ask(checkpoint(ALICE, "/p", "one")).await.unwrap(), created("one"));
}

#[actix::test]
async fn two_inits_of_one_directory_at_once_give_one_registration() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    backend.link("/link", "/p");
    let daemon = Daemon::start(&backend).await;
    let mut held = backend.hold("init");
    let first = daemon.send(init(ALICE, "/p"));
    held.entered().await;
    let others = ["/p", "//p", "/link"].map(|path| daemon.send(init(ALICE, path)));
    held.release();
    let ws = first.await.unwrap().unwrap();
    for other in others {
        assert_eq!(other.await.unwrap().unwrap(), ws);
    }
    assert_eq!(daemon.ask(status(ALICE, None)).await.unwrap().workspaces.len(), 1);
}

#[actix::test]
async fn ten_first_checkpoints_at_once_all_succeed_in_one_workspace() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    let names: Vec<String> = (0..10).map(|n| format!("first-{n}")).collect();
    let sent: Vec<_> = names.iter().map(|name| daemon.send(checkpoint(ALICE, "/p", name))).collect();
    for (sent, name) in sent.into_iter().zip(&names) {
        assert_eq!(sent.await.unwrap().unwrap(), created(name));
    }
    assert_eq!(backend.count("init"), 1);
    let mut listed = daemon.names("/p").await;
    listed.sort();
    assert_eq!(listed, names);
    assert_eq!(daemon.ask(status(ALICE, None)).await.unwrap().workspaces.len(), 1);
}

#[actix::test]
async fn a_directory_that_cannot_be_a_workspace_is_an_invalid_path_for_init_and_checkpoint() {
    let backend = FakeBackend::with(&[("/home/bob", BOB)]);
    let daemon = Daemon::start(&backend).await;
    for (path, text) in [
        ("", "workspace path is empty"),
        ("  ", "workspace path is empty"),
        ("p", "workspace path is relative: p; give an absolute one"),
        ("ws-ffffff", "workspace path is relative: ws-ffffff; give an absolute one"),
        ("/nowhere", "path does not exist: /nowhere"),
        ("/home/bob", "not your directory: /home/bob"),
    ] {
        assert_refused(daemon.ask(init(ALICE, path)).await, Code::InvalidPath, text);
        assert_refused(daemon.ask(checkpoint(ALICE, path, "one")).await, Code::InvalidPath, text);
    }
    assert_eq!(daemon.ask(status(0, None)).await.unwrap().workspaces, []);
}

#[actix::test]
async fn a_failed_registration_does_not_stand_in_the_way_of_the_next() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    backend.panic("init");
    backend.fail("init", Error::Busy);
    assert_eq!(daemon.ask(init(ALICE, "/p")).await.unwrap_err().code, Code::InternalError);
    assert_refused(daemon.ask(init(ALICE, "/p")).await, Code::WriteLockConflict, CONFLICT);
    daemon.ask(init(ALICE, "/p")).await.unwrap();
}

#[actix::test]
async fn init_of_an_idle_workspace_asks_whether_its_directory_was_replaced() {
    let backend = FakeBackend::with(&[]);
    let ws = backend.registered("/p", ALICE, &["one"]);
    let daemon = Daemon::probed(&backend);
    let mut inbox = daemon.inbox(&ws);
    let asked = daemon.send(init(ALICE, "/p"));
    let adopt = inbox.next::<Adopt>().await;
    let state = backend.workspaces().unwrap().remove(0);
    adopt.done(state, Some(view(&backend, &ws, &["one", "two"], 1)));
    assert_eq!(asked.await.unwrap().unwrap(), ws);
    assert_eq!(daemon.names("/p").await, ["one", "two"]);

    // While something is being done to it, that has verified its directory.
    let writing = daemon.send(checkpoint(ALICE, "/p", "three"));
    let write = inbox.next::<Checkpoint>().await;
    assert_eq!(daemon.ask(init(ALICE, "/p")).await.unwrap(), ws);
    assert!(inbox.is_empty());
    write.done(created("three"), None);
    writing.await.unwrap().unwrap();
}

#[actix::test]
async fn init_of_a_path_that_became_a_link_does_not_register_what_it_leads_to() {
    let backend = FakeBackend::with(&[("/other", ALICE)]);
    backend.registered("/p", ALICE, &["one"]);
    backend.link("/p", "/other");
    let daemon = Daemon::start(&backend).await;
    let refused = daemon.ask(init(ALICE, "/p")).await.unwrap_err();
    assert_eq!(refused.code, Code::InvalidPath);
    assert_eq!(backend.changes(), [""; 0]);
}

#[actix::test]
async fn reading_a_new_tree_tries_nobodys_patience() {
    tokio::time::pause();
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::probed(&backend);
    let ws = daemon.ask(init(ALICE, "/p")).await.unwrap();
    let mut inbox = daemon.inbox(&ws);
    let prime = inbox.next::<Prime>().await;
    let mut first = daemon.send(checkpoint(ALICE, "/p", "one"));
    let write = inbox.next::<Checkpoint>().await;
    assert!(tokio::time::timeout(Duration::from_secs(3600), &mut first).await.is_err(), "still waiting");
    prime.done((), Some(view(&backend, &ws, &[], 0)));
    // From here on it waits as for anybody.
    let before = tokio::time::Instant::now();
    assert_refused(first.await.unwrap(), Code::WriteLockConflict, CONFLICT);
    assert_eq!(before.elapsed().as_secs(), 4);
    assert!(write.write.ticket.begin().is_none());
}

#[actix::test]
async fn new_trees_are_read_one_at_a_time_and_not_after_a_checkpoint_has() {
    let backend = FakeBackend::with(&[("/a", ALICE), ("/b", ALICE), ("/c", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    let (mut first, mut second) = (backend.hold("prime"), backend.hold("prime"));
    for path in ["/a", "/b", "/c"] {
        daemon.ask(init(ALICE, path)).await.unwrap();
    }
    first.entered().await;
    // One whose turn has not come keeps nobody waiting.
    assert_eq!(daemon.ask(checkpoint(ALICE, "/b", "one")).await.unwrap(), created("one"));
    assert_eq!(backend.count("prime"), 1);
    first.release();
    second.entered().await;
    second.release();
    let mut changes = backend.changes();
    changes.retain(|call| !call.starts_with("init"));
    assert_eq!(changes, ["prime ws-000000", "checkpoint one", "prime ws-000002"]);
}

#[actix::test]
async fn a_tree_that_somebody_works_on_is_not_read_in_advance_and_keeps_the_next_waiting_for_4_s_only() {
    tokio::time::pause();
    let backend = FakeBackend::with(&[("/a", ALICE), ("/b", ALICE)]);
    let daemon = Daemon::probed(&backend);
    let first = daemon.ask(init(ALICE, "/a")).await.unwrap();
    let prime = daemon.inbox(&first).next::<Prime>().await;
    let ws = daemon.ask(init(ALICE, "/b")).await.unwrap();
    let mut inbox = daemon.inbox(&ws);
    let running = daemon.send(checkpoint(ALICE, "/b", "one"));
    let write = inbox.next::<Checkpoint>().await;
    write.begin();
    prime.done((), Some(view(&backend, &first, &[], 0)));
    daemon.arrived().await;
    assert!(inbox.is_empty());
    let before = tokio::time::Instant::now();
    assert_refused(daemon.ask(rollback("/b", "one")).await, Code::WriteLockConflict, CONFLICT);
    assert_eq!(before.elapsed().as_secs(), 4);
    write.done(created("one"), Some(view(&backend, &ws, &["one"], 1)));
    running.await.unwrap().unwrap();
}

#[actix::test]
async fn a_tree_that_cannot_be_read_in_advance_is_registered_all_the_same() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    backend.panic("prime");
    daemon.ask(init(ALICE, "/p")).await.unwrap();
    assert_eq!(daemon.ask(checkpoint(ALICE, "/p", "one")).await.unwrap(), created("one"));
}

#[actix::test]
async fn a_snapshots_name_is_checked_before_anything_is_registered() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    for bad in ["", ".", "..", "../../x", "/abs", "a\nb", "a\0", &"x".repeat(256)] {
        let refused = daemon.ask(checkpoint(ALICE, "/p", bad)).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidPath, "{bad:?}");
        assert!(refused.message.starts_with("snapshot id"), "{refused}");
    }
    assert_eq!(backend.changes(), [""; 0]);
}

#[actix::test]
async fn a_checkpoint_carries_what_the_client_said_and_what_the_settings_say() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let settings = Config { skip_unchanged: true, ..Config::default() };
    let daemon = Daemon::start_with(&backend, settings).await;
    let (message, metadata) = (Some("why".to_owned()), Some(r#"{"a":1}"#.to_owned()));
    let full = CreateCheckpoint { message, metadata, pin: true, ..checkpoint(ALICE, "/p", "one") };
    assert_eq!(daemon.ask(full).await.unwrap(), created("one"));
    let entry = daemon.ask(list(ALICE, Some("/p"))).await.unwrap().entries().remove(0);
    assert_eq!((entry.meta.message.as_deref(), entry.meta.pinned), (Some("why"), true));
    assert_eq!(entry.meta.metadata.as_deref(), Some(r#"{"a":1}"#));
    let reason = "no changes since one".to_owned();
    let skipped = daemon.ask(checkpoint(ALICE, "/p", "two")).await.unwrap();
    assert_eq!(skipped, CheckpointOutcome::Skipped { reason });
}
