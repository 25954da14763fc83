//! The registry before an engine without a disk: with real workspace actors, or with probes in their place.

mod delete;
mod find;
mod init;
mod reads;
mod repeats;
mod schedule;
mod trash;
mod turns;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Mutex as StdMutex;

use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId, WsCkptErrorCode as Code};
use cofferdam_storage::ckpt::config::ConfigError;
use cofferdam_storage::ckpt::{Backend, Snapshot};
use cofferdam_storage::peer::Peer;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::messages::*;
use super::*;
use crate::ckpt::testing::*;
use crate::ckpt::{ConfigSource, Installation};
use crate::mailbox::Carries;

/// The daemon's actors, and the engine below them.
struct Daemon {
    ckpt: Ckpt,
    backend: Arc<FakeBackend>,
    source: Arc<Source>,
    /// The workspaces' probes, if it has any.
    inboxes: Inboxes,
    /// How often collection was announced, if its actor is a probe.
    announced: Rc<RefCell<usize>>,
}

type Inboxes = Rc<RefCell<HashMap<WorkspaceId, Inbox>>>;

/// Settings that a test changes; `None` cannot be read.
struct Source(StdMutex<Option<Config>>);

impl Source {
    fn set(&self, settings: Option<Config>) {
        *self.0.lock().unwrap() = settings;
    }
}

impl ConfigSource for Source {
    fn load(&self) -> Result<Config, ConfigError> {
        let broken =
            || ConfigError::Syntax { path: "c.toml".into(), line: Some(3), message: "no".to_owned() };
        self.0.lock().unwrap().clone().ok_or_else(broken)
    }
}

/// Stands in for the collector.
struct CollectProbe(Rc<RefCell<usize>>);

impl Actor for CollectProbe {
    type Context = Context<Self>;
}

impl Handler<Collect> for CollectProbe {
    type Result = ();

    fn handle(&mut self, _: Collect, _: &mut Context<Self>) {
        *self.0.borrow_mut() += 1;
    }
}

impl Daemon {
    /// With real workspace actors and a real collector.
    async fn start(backend: &Arc<FakeBackend>) -> Self {
        Self::start_with(backend, Config::default()).await
    }

    async fn start_with(backend: &Arc<FakeBackend>, settings: Config) -> Self {
        let (parts, source) = parts(backend, settings);
        let ckpt = start(parts).await.unwrap();
        let (inboxes, announced) = Default::default();
        Self { ckpt, backend: Arc::clone(backend), source, inboxes, announced }
    }

    /// With probes in place of the workspace actors and the collector.
    fn probed(backend: &Arc<FakeBackend>) -> Self {
        let settings = Config::default();
        let (parts, source) = parts(backend, settings.clone());
        let inboxes = Inboxes::default();
        let announced = Rc::<RefCell<usize>>::default();
        let opened = Rc::clone(&inboxes);
        let make_writer = Box::new(move |view: View| {
            let (sender, receiver) = mpsc::unbounded_channel();
            opened.borrow_mut().insert(view.workspace.id.clone(), Inbox(receiver));
            Writer::from(ProbeActor(sender).start())
        });
        let collector = CollectProbe(Rc::clone(&announced)).start().recipient();
        let states = backend.workspaces().unwrap();
        let usage = backend.usage().unwrap();
        let keeper = KeeperActor::new(Arc::clone(&parts.backend), collector.clone(), Vec::new()).start();
        let look_again = keeper.clone().recipient();
        let actor = SnapshotActor::new(parts, make_writer, collector, look_again, settings, usage, states);
        let ckpt = (actor.start(), keeper).into();
        Self { ckpt, backend: Arc::clone(backend), source, inboxes, announced }
    }

    /// Sends a request in the background.
    fn send<M, T>(&self, request: M) -> JoinHandle<Result<T, Failure>>
    where
        Ckpt: Carries<M>,
        M: Message<Result = Result<T, Failure>> + Send + 'static,
        T: Send + 'static,
    {
        let ckpt = self.ckpt.clone();
        actix::spawn(async move { ckpt.ask(request).await })
    }

    /// Sends a request and waits for its answer.
    async fn ask<M, T>(&self, request: M) -> Result<T, Failure>
    where
        Ckpt: Carries<M>,
        M: Message<Result = Result<T, Failure>> + Send + 'static,
        T: Send + 'static,
    {
        self.ckpt.ask(request).await
    }

    /// Until whatever was sent has arrived and waits for nothing that is not held.
    async fn arrived(&self) {
        tokio::task::yield_now().await;
        let barrier = GetConfig { peer: Peer::own() };
        self.ckpt.ask(barrier).await.unwrap();
    }

    /// The probe of a workspace.
    fn inbox(&self, id: &WorkspaceId) -> Inbox {
        self.inboxes.borrow_mut().remove(id).unwrap()
    }

    /// The names that Alice's list shows.
    async fn names(&self, workspace: &str) -> Vec<String> {
        let list = self.ask(list(ALICE, Some(workspace))).await.unwrap();
        list.entries().into_iter().map(|entry| entry.id).collect()
    }
}

fn parts(backend: &Arc<FakeBackend>, settings: Config) -> (Parts, Arc<Source>) {
    let source = Arc::new(Source(StdMutex::new(Some(settings))));
    let installation = Installation {
        state_dir: "/state".into(),
        socket: "/run/ckpt.sock".into(),
        log_level: "info".to_owned(),
    };
    let (config, clock) = (Arc::clone(&source) as _, backend.clock());
    (Parts { backend: Arc::clone(backend) as _, config, installation, clock }, source)
}

fn init(uid: u32, workspace: &str) -> InitWorkspace {
    InitWorkspace { peer: user(uid), workspace: workspace.to_owned() }
}

fn checkpoint(uid: u32, workspace: &str, id: &str) -> CreateCheckpoint {
    CreateCheckpoint {
        peer: user(uid),
        workspace: workspace.to_owned(),
        id: id.to_owned(),
        message: None,
        metadata: None,
        pin: false,
    }
}

fn rollback(workspace: &str, to: &str) -> Rollback {
    Rollback { peer: user(ALICE), workspace: workspace.to_owned(), to: to.to_owned(), exact: false }
}

fn undo(workspace: &str) -> UndoRollback {
    UndoRollback { peer: user(ALICE), workspace: workspace.to_owned(), expected: None }
}

fn delete(workspace: Option<&str>, snapshot: &str) -> DeleteSnapshot {
    DeleteSnapshot {
        peer: user(ALICE),
        workspace: workspace.map(str::to_owned),
        snapshot: snapshot.to_owned(),
        exact: false,
        force: false,
    }
}

fn cleanup(workspace: &str, keep: Option<u32>) -> Cleanup {
    Cleanup { peer: user(ALICE), workspace: workspace.to_owned(), keep }
}

fn recover(workspace: &str) -> RecoverWorkspace {
    RecoverWorkspace { peer: user(ALICE), workspace: workspace.to_owned() }
}

fn list(uid: u32, workspace: Option<&str>) -> ListSnapshots {
    ListSnapshots { peer: user(uid), workspace: workspace.map(str::to_owned) }
}

fn status(uid: u32, workspace: Option<&str>) -> WorkspaceStatus {
    WorkspaceStatus { peer: user(uid), workspace: workspace.map(str::to_owned) }
}

fn diff(workspace: &str, from: &str, to: &str) -> DiffSnapshots {
    DiffSnapshots {
        peer: user(ALICE),
        workspace: workspace.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
    }
}

fn id(text: &str) -> SnapshotId {
    SnapshotId::new(text).unwrap()
}

fn created(text: &str) -> CheckpointOutcome {
    CheckpointOutcome::Created(id(text))
}

/// What a workspace with these snapshots is, `version` changes later.
fn view(backend: &FakeBackend, workspace: &WorkspaceId, snapshots: &[&str], version: u64) -> View {
    let mut states = backend.workspaces().unwrap();
    states.retain(|state| state.workspace.id == *workspace);
    let snapshots: Vec<Snapshot> = snapshots.iter().map(|id| snapshot(id)).collect();
    View { snapshots: snapshots.into(), version, ..View::first(states.remove(0)) }
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(answer: Result<T, Failure>, code: Code, message: &str) {
    assert_eq!(answer.unwrap_err(), Failure { code, message: message.to_owned() });
}

const CONFLICT: &str = "Workspace has active write operations. Please wait and retry.";
