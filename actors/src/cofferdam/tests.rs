//! Starting and stopping, from threads and from tasks.

use std::sync::Weak;

use cofferdam_protocol::ckpt::WsCkptErrorCode as Code;
use cofferdam_protocol::session::{ListRequest, SessionData};
use cofferdam_storage::peer::Peer;
use tokio::runtime::{self, Runtime};

use super::*;
use crate::ckpt::testing::{ALICE, FakeBackend, user};
use crate::ckpt::{CheckpointOutcome, CreateCheckpoint, Failure, GetConfig, HealthAdvisory, InitWorkspace};

/// Somebody else's runtime.
fn runtime() -> Runtime {
    runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn start(backend: &Arc<FakeBackend>) -> Cofferdam {
    Cofferdam::builder().backend(Arc::clone(backend) as _).start().unwrap()
}

fn config(ckpt: &Ckpt) -> impl Future<Output = Result<String, Failure>> + use<> {
    let ckpt = ckpt.clone();
    async move { Ok(ckpt.ask(GetConfig { peer: Peer::own() }).await?.log_level) }
}

fn checkpoint(workspace: &str, id: &str) -> CreateCheckpoint {
    CreateCheckpoint {
        peer: user(ALICE),
        workspace: workspace.to_owned(),
        id: id.to_owned(),
        message: None,
        metadata: None,
        pin: false,
    }
}

/// Drops the test's own hold on the engine and says whether anybody else has one.
fn is_let_go(backend: Arc<FakeBackend>) -> bool {
    let left: Weak<FakeBackend> = Arc::downgrade(&backend);
    drop(backend);
    left.upgrade().is_none()
}

#[test]
fn it_starts_and_stops_again_and_again_and_lets_go_of_its_engine() {
    let runtime = runtime();
    for _ in 0..3 {
        let backend = FakeBackend::with(&[("/p", ALICE)]);
        let cofferdam = start(&backend);
        let done = runtime.block_on(cofferdam.ckpt().ask(checkpoint("/p", "one"))).unwrap();
        assert!(matches!(done, CheckpointOutcome::Created(_)));
        cofferdam.stop();
        assert!(is_let_go(backend));
    }
}

#[test]
fn two_at_once_know_nothing_of_each_other() {
    let runtime = runtime();
    let (one, other) = (FakeBackend::with(&[("/p", ALICE)]), FakeBackend::with(&[]));
    let (first, second) = (start(&one), start(&other));
    runtime.block_on(first.ckpt().ask(checkpoint("/p", "one"))).unwrap();
    let missing = runtime.block_on(second.ckpt().ask(checkpoint("/p", "one"))).unwrap_err();
    assert_eq!(missing.code, Code::InvalidPath);
    first.stop();
    runtime.block_on(config(&second.ckpt())).unwrap();
}

#[test]
fn it_starts_and_stops_inside_a_task_of_another_runtime() {
    runtime().block_on(async {
        let backend = FakeBackend::with(&[]);
        let cofferdam = start(&backend);
        assert_eq!(config(&cofferdam.ckpt()).await.unwrap(), "");
        cofferdam.stop();
        assert!(is_let_go(backend));
    });
    System::new().block_on(async {
        let cofferdam = start(&FakeBackend::with(&[]));
        assert_eq!(config(&cofferdam.ckpt()).await.unwrap(), "");
    });
}

#[test]
fn after_the_stop_a_request_is_told_so() {
    let runtime = runtime();
    let cofferdam = start(&FakeBackend::with(&[]));
    let ckpt = cofferdam.ckpt();
    drop(cofferdam);
    let failure = runtime.block_on(config(&ckpt)).unwrap_err();
    assert_eq!((failure.code, failure.message.as_str()), (Code::InternalError, "the daemon is stopping"));
}

#[test]
fn it_keeps_sessions_too_until_it_is_stopped() {
    let runtime = runtime();
    let home = tempfile::tempdir().unwrap();
    let places = Places { home: Some(home.path().to_owned()), ..Places::default() };
    let builder = Cofferdam::builder().backend(FakeBackend::with(&[]));
    let cofferdam = builder.sessions(session::Parts::new(places)).start().unwrap();
    let sessions = cofferdam.sessions();
    let list = || {
        let workspace_scope = home.path().to_str().unwrap().to_owned();
        let request = ListRequest { workspace_scope, limit: 1, cursor: None, all_workspaces: false };
        runtime.block_on(sessions.ask(session::ListSessions(request)))
    };
    assert_eq!(list(), Ok(SessionData::List { sessions: Vec::new(), next_cursor: None }));
    cofferdam.stop();
    let error = list().unwrap_err();
    assert_eq!((error.code.as_str(), error.message.contains("stopping")), ("io", true));
}

#[test]
fn stopping_waits_for_what_is_being_done_to_a_disk() {
    let runtime = runtime();
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let cofferdam = start(&backend);
    let mut held = backend.hold("checkpoint");
    let ckpt = cofferdam.ckpt();
    let asked = runtime.spawn(async move { ckpt.ask(checkpoint("/p", "one")).await });
    runtime.block_on(held.entered());
    let stopping = thread::spawn(move || cofferdam.stop());
    // The actors go first; only the engine's call is left.
    assert_eq!(runtime.block_on(asked).unwrap().unwrap_err().code, Code::InternalError);
    assert!(!stopping.is_finished());
    held.release();
    stopping.join().unwrap();
    assert_eq!(backend.changes(), ["init /p", "checkpoint one"]);
    assert!(is_let_go(backend));
}

#[test]
fn an_adapter_runs_on_the_actors_own_thread() {
    let cofferdam = start(&FakeBackend::with(&[]));
    let ran = cofferdam.run(|ckpt| async move {
        let answer = ckpt.ask(HealthAdvisory { peer: Peer::own() }).await;
        (answer.is_ok(), thread::current().name().map(str::to_owned))
    });
    assert_eq!(ran.blocking_recv().unwrap(), (true, Some("cofferdam".to_owned())));
    let endless = cofferdam.run(|_| std::future::pending::<()>());
    cofferdam.stop();
    assert!(endless.blocking_recv().is_err(), "it ends with the actors");
}

#[test]
fn an_adapter_that_panics_takes_nobody_with_it() {
    let runtime = runtime();
    let cofferdam = start(&FakeBackend::with(&[]));
    let panicked = cofferdam.run(|_| async { panic!("planned") });
    let panicked: Result<(), _> = panicked.blocking_recv();
    assert!(panicked.is_err());
    runtime.block_on(config(&cofferdam.ckpt())).unwrap();
}

#[test]
fn what_cannot_be_started_says_why_and_leaves_nothing_behind() {
    let none = Cofferdam::builder().start().unwrap_err();
    assert!(matches!(none, StartError::NoBackend));
    let backend = FakeBackend::with(&[]);
    backend.fail("workspaces", Error::Catalog("torn".to_owned()));
    let failed = Cofferdam::builder().backend(backend.clone()).start().unwrap_err();
    assert_eq!(failed.to_string(), "catalog: torn");
    assert_eq!(backend.count("workspaces"), 1);
}

#[test]
fn the_builder_passes_on_what_the_command_line_says() {
    let runtime = runtime();
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let installation =
        Installation { state_dir: "/state".into(), socket: "/s".into(), log_level: "debug".to_owned() };
    let builder = Cofferdam::builder().backend(backend.clone()).installation(installation);
    let cofferdam = builder.config(ConfigFile(None)).clock(backend.clock()).start().unwrap();
    let ckpt = cofferdam.ckpt();
    assert_eq!(runtime.block_on(config(&ckpt)).unwrap(), "debug");
    let init = InitWorkspace { peer: user(ALICE), workspace: "/p".to_owned() };
    assert_eq!(runtime.block_on(ckpt.ask(init)).unwrap().as_str(), "ws-000000");
}
