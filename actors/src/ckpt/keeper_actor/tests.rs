//! What the program keeps for itself, before an engine without a disk, and beside workspaces that must not show it.

use std::time::Duration;

use cofferdam_protocol::ckpt::WsCkptErrorCode as Code;
use cofferdam_storage::ckpt::config::Config;

use super::*;
use crate::ckpt::testing::*;
use crate::ckpt::*;

/// The daemon's actors, all of them.
async fn start(backend: &Arc<FakeBackend>, config: Config) -> Ckpt {
    struct Settings(Config);
    impl ConfigSource for Settings {
        fn load(&self) -> Result<Config, cofferdam_storage::ckpt::config::ConfigError> {
            Ok(self.0.clone())
        }
    }
    let clock = backend.clock();
    let parts = Parts {
        backend: Arc::clone(backend) as _,
        config: Arc::new(Settings(config)),
        installation: Installation::default(),
        clock,
    };
    crate::ckpt::start(parts).await.unwrap()
}

/// A sandbox root with two tasks, and the daemon.
async fn tasks() -> (Arc<FakeBackend>, Ckpt) {
    let backend = FakeBackend::with(&[("/s", ALICE), ("/s/one", ALICE), ("/s/two", ALICE)]);
    let ckpt = start(&backend, Config::default()).await;
    (backend, ckpt)
}

fn keep(dir: &str, id: &str) -> KeepTree {
    KeepTree { dir: dir.into(), id: id.to_owned(), metadata: None }
}

fn rewind(dir: &str, to: &str) -> RewindTree {
    RewindTree { dir: dir.into(), to: to.to_owned() }
}

async fn names(ckpt: &Ckpt, dir: &str) -> Vec<String> {
    let kept = ckpt.ask(ListKept { dir: dir.into() }).await.unwrap();
    kept.iter().map(|snapshot| snapshot.id.to_string()).collect()
}

#[track_caller]
fn assert_failed<T: std::fmt::Debug>(answer: Result<T, Failure>, code: Code, message: &str) {
    assert_eq!(answer.unwrap_err(), Failure { code, message: message.to_owned() });
}

#[actix::test]
async fn a_directory_is_registered_once_and_its_snapshots_are_listed_from_memory() {
    let (backend, ckpt) = tasks().await;
    backend.write("/s/one", 0);
    assert_eq!(names(&ckpt, "/s/one").await, [""; 0]);
    let metadata = Some("{\"n\":1}".to_owned());
    ckpt.ask(KeepTree { metadata, ..keep("/s/one", "turn-1") }).await.unwrap();
    // Nothing has changed, and that is no reason to have no snapshot.
    ckpt.ask(keep("/s/one", "turn-2")).await.unwrap();
    ckpt.ask(keep("/s/two", "turn-1")).await.unwrap();
    let calls = backend.changes();
    let expected =
        ["keep /s/one", "checkpoint turn-1", "checkpoint turn-2", "keep /s/two", "checkpoint turn-1"];
    assert_eq!(calls, expected);
    let kept = ckpt.ask(ListKept { dir: "/s/one".into() }).await.unwrap();
    assert_eq!(kept[0].metadata.as_deref(), Some("{\"n\":1}"));
    assert_eq!(names(&ckpt, "/s/one").await, ["turn-1", "turn-2"]);
    assert_eq!(backend.changes(), calls);
    // The next start knows it.
    let ckpt = start(&backend, Config::default()).await;
    assert_eq!(names(&ckpt, "/s/one").await, ["turn-1", "turn-2"]);
}

#[actix::test]
async fn a_name_that_is_taken_or_none_at_all_is_an_error_and_changes_nothing() {
    let (_backend, ckpt) = tasks().await;
    ckpt.ask(keep("/s/one", "turn-1")).await.unwrap();
    let taken = "snapshot id 'turn-1' already exists in workspace";
    assert_failed(ckpt.ask(keep("/s/one", "turn-1")).await, Code::SnapshotAlreadyExists, taken);
    let none = ckpt.ask(keep("/s/one", "a/b")).await.unwrap_err();
    assert_eq!(none.code, Code::InvalidPath);
    let missing = ckpt.ask(keep("/s/none", "turn-1")).await;
    assert_failed(missing, Code::InvalidPath, "path does not exist: /s/none");
    assert_eq!(names(&ckpt, "/s/one").await, ["turn-1"]);
}

#[actix::test]
async fn a_directory_is_rewound_to_the_snapshot_of_exactly_that_name() {
    let (backend, ckpt) = tasks().await;
    ckpt.ask(keep("/s/one", "turn-10")).await.unwrap();
    let missing = ckpt.ask(rewind("/s/one", "turn-1")).await;
    assert_failed(missing, Code::SnapshotNotFound, "snapshot not found: turn-1");
    assert_eq!(ckpt.ask(rewind("/s/one", "turn-10")).await.unwrap().changed, 3);
    let unknown = ckpt.ask(rewind("/s/two", "turn-10")).await;
    assert_failed(unknown, Code::WorkspaceNotFound, "workspace not found: /s/two");
    assert_eq!(backend.count("rollback"), 1);
}

#[actix::test]
async fn a_directory_that_was_replaced_is_taken_over_by_the_next_snapshot() {
    let (backend, ckpt) = tasks().await;
    ckpt.ask(keep("/s/one", "turn-1")).await.unwrap();
    backend.fail("checkpoint", Error::WorkspaceReplaced("/s/one".into()));
    ckpt.ask(keep("/s/one", "turn-2")).await.unwrap();
    assert_eq!(backend.count("keep"), 2);
    assert_eq!(names(&ckpt, "/s/one").await, ["turn-1", "turn-2"]);
    backend.fail("rollback", Error::WorkspaceReplaced("/s/one".into()));
    assert_eq!(ckpt.ask(rewind("/s/one", "turn-1")).await.unwrap_err().code, Code::InvalidPath);
}

#[actix::test]
async fn others_who_work_around_the_directory_are_waited_for_but_not_for_ever() {
    let (backend, ckpt) = tasks().await;
    for _ in 1..ATTEMPTS {
        backend.fail("checkpoint", Error::Busy);
    }
    ckpt.ask(keep("/s/one", "turn-1")).await.unwrap();
    for _ in 0..ATTEMPTS {
        backend.fail("rollback", Error::Busy);
    }
    assert_eq!(ckpt.ask(rewind("/s/one", "turn-1")).await.unwrap_err().code, Code::WriteLockConflict);
    ckpt.ask(rewind("/s/one", "turn-1")).await.unwrap();
}

#[actix::test]
async fn what_is_done_to_one_directory_is_done_in_turn_and_holds_no_other_up() {
    let (backend, ckpt) = tasks().await;
    let mut held = backend.hold("checkpoint");
    let ask = |request: KeepTree| {
        let ckpt = ckpt.clone();
        actix::spawn(async move { ckpt.ask(request).await })
    };
    let first = ask(keep("/s/one", "turn-1"));
    held.entered().await;
    let second = ask(keep("/s/one", "turn-2"));
    ckpt.ask(keep("/s/two", "turn-1")).await.unwrap();
    assert_eq!(backend.count("checkpoint"), 2);
    assert_eq!(names(&ckpt, "/s/one").await, [""; 0]);
    held.release();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(names(&ckpt, "/s/one").await, ["turn-1", "turn-2"]);
}

#[actix::test]
async fn what_is_forgotten_is_gone_at_once_and_its_directory_may_be_gone_before() {
    let (backend, ckpt) = tasks().await;
    backend.link("/link", "/s");
    let forget = |dir: &str| ckpt.ask(ForgetTree { dir: dir.into() });
    for unknown in ["/s/one", "/s/none", "/none/at/all", "/", "relative", ""] {
        forget(unknown).await.unwrap();
    }
    assert_eq!(backend.count("forget"), 0);
    ckpt.ask(keep("/link/one", "turn-1")).await.unwrap();
    assert_eq!(names(&ckpt, "/s/one").await, ["turn-1"]);
    backend.remove("/s/one");
    forget("/link/one").await.unwrap();
    assert_eq!(names(&ckpt, "/s/one").await, [""; 0]);
    // Somebody else forgot it.
    ckpt.ask(keep("/s/two", "turn-1")).await.unwrap();
    backend.fail("forget", Error::WorkspaceNotFound(WorkspaceId::from_digest([0; 3], 1)));
    forget("/s/two").await.unwrap();
    assert_eq!(names(&ckpt, "/s/two").await, [""; 0]);
    let io = || Error::io("removing", std::io::ErrorKind::StorageFull.into());
    ckpt.ask(keep("/s/two", "turn-2")).await.unwrap();
    backend.fail("forget", io());
    forget("/s/two").await.unwrap_err();
    forget("/s/two").await.unwrap();
}

#[actix::test]
async fn after_a_failure_or_a_panic_the_engine_is_asked_what_there_is() {
    let (backend, ckpt) = tasks().await;
    ckpt.ask(keep("/s/one", "turn-1")).await.unwrap();
    let lost = |snapshots: &mut Vec<Snapshot>| snapshots[0].missing = true;
    backend.change_kept("/s/one", lost);
    backend.fail("rollback", Error::SnapshotMissing(SnapshotId::new("turn-1").unwrap()));
    ckpt.ask(rewind("/s/one", "turn-1")).await.unwrap_err();
    assert!(ckpt.ask(ListKept { dir: "/s/one".into() }).await.unwrap()[0].missing);
    // Without looking at the disk.
    ckpt.ask(rewind("/s/one", "turn-1")).await.unwrap_err();
    assert_eq!(backend.count("rollback"), 1);
    backend.panic("checkpoint");
    backend.change_kept("/s/one", |snapshots| snapshots.push(snapshot("turn-2")));
    let panicked = ckpt.ask(keep("/s/one", "turn-2")).await.unwrap_err();
    assert_eq!(panicked.code, Code::InternalError);
    assert_eq!(names(&ckpt, "/s/one").await, ["turn-1", "turn-2"]);
}

#[actix::test]
async fn what_a_check_finds_lost_is_listed_as_lost() {
    let (backend, ckpt) = tasks().await;
    ckpt.ask(keep("/s/one", "turn-1")).await.unwrap();
    backend.change_kept("/s/one", |snapshots| snapshots[0].missing = true);
    tokio::time::pause();
    ckpt.ask(CheckStore { peer: Peer::own(), read_data: false }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(ckpt.ask(ListKept { dir: "/s/one".into() }).await.unwrap()[0].missing);
}

#[actix::test]
async fn no_request_of_a_client_and_no_schedule_knows_of_it() {
    tokio::time::pause();
    let backend = FakeBackend::with(&[("/s", ALICE), ("/s/one", ALICE)]);
    backend.registered("/a", ALICE, &["a1"]);
    let rule = "0".parse().unwrap();
    let settings = Config { auto_cleanup: true, auto_cleanup_keep: rule, ..Config::default() };
    let ckpt = start(&backend, settings).await;
    for turn in ["turn-1", "turn-2"] {
        ckpt.ask(keep("/s/one", turn)).await.unwrap();
    }
    let id = backend.kept().unwrap()[0].workspace.id.to_string();
    for peer in [Peer::own(), user(ALICE), user(0)] {
        let list = ListSnapshots { peer: peer.clone(), workspace: None };
        assert_eq!(ckpt.ask(list).await.unwrap().entries().len(), 1);
        let status = WorkspaceStatus { peer: peer.clone(), workspace: None };
        assert_eq!(ckpt.ask(status).await.unwrap().workspaces.len(), 1);
        let delete = DeleteSnapshot {
            peer: peer.clone(),
            workspace: None,
            snapshot: "turn-1".into(),
            exact: false,
            force: true,
        };
        assert_eq!(ckpt.ask(delete).await.unwrap_err().code, Code::SnapshotNotFound);
        for workspace in ["/s/one", "/s/one/", id.as_str()] {
            let (peer, workspace) = (peer.clone(), workspace.to_owned());
            let unknown = format!("workspace not found: {workspace}");
            macro_rules! is_unknown {
                ($request:ident { $($field:tt)* }) => {
                    let (peer, workspace) = (peer.clone(), workspace.clone().into());
                    let answer = ckpt.ask($request { peer, workspace, $($field)* }).await;
                    assert_failed(answer, Code::WorkspaceNotFound, &unknown);
                };
            }
            is_unknown!(ListSnapshots {});
            is_unknown!(WorkspaceStatus {});
            is_unknown!(Rollback { to: "turn-1".into(), exact: false });
            is_unknown!(UndoRollback { expected: None });
            is_unknown!(GetLastRollback {});
            is_unknown!(NewestRollback {});
            is_unknown!(DeleteSnapshot { snapshot: "turn-1".into(), exact: false, force: true });
            is_unknown!(DiffSnapshots { from: "turn-1".into(), to: "turn-2".into() });
            is_unknown!(SnapshotWarnings { snapshot: "turn-1".into() });
            is_unknown!(Cleanup { keep: Some(0) });
            is_unknown!(RecoverWorkspace {});
            is_unknown!(RestoreTrashed { item: 0, id: None, pin: false });
        }
    }
    tokio::time::sleep(Duration::from_secs(2 * 24 * 60 * 60)).await;
    let calls = backend.changes();
    assert_eq!(calls, ["keep /s/one", "checkpoint turn-1", "checkpoint turn-2", "delete a1 Unlink"]);
    // The same directory as a workspace is another thing.
    let init = InitWorkspace { peer: user(ALICE), workspace: "/s/one".to_owned() };
    assert_ne!(ckpt.ask(init).await.unwrap().as_str(), id);
    let list = ListSnapshots { peer: user(ALICE), workspace: Some("/s/one".to_owned()) };
    assert!(ckpt.ask(list).await.unwrap().entries().is_empty());
    assert_eq!(names(&ckpt, "/s/one").await, ["turn-1", "turn-2"]);
}
