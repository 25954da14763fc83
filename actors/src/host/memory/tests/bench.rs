//! A memory over the real store of sessions and the real engine, whose own disk fails when the test wants it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use actix::prelude::{Actor, Context, Handler, ResponseFuture};
use cofferdam_protocol::ckpt::WsCkptErrorCode as Code;
use cofferdam_protocol::session::SessionId;
use cofferdam_storage::ckpt::{Store, StoreOptions};
use cofferdam_storage::clock::SystemClock;
use cofferdam_storage::disk::{Disk, FaultHook, Op};
use cofferdam_storage::session::config::Places;

use crate::Carries;
use crate::ckpt::{
    self, Ckpt, ConfigFile, Failure, ForgetTree, Installation, KeepTree, ListKept, RewindTree,
};
use crate::host::HostFailure;
use crate::host::memory::envelope::text;
use crate::host::memory::heard::message;
use crate::host::memory::*;
use crate::session::{self, LoadSession, OpenStore, PersistSession, Sessions};

/// A disk on which so many things can be done; everything after that fails. Negative: everything can.
#[derive(Debug)]
pub(super) struct Fuse(AtomicI64);

impl Fuse {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(-1)))
    }

    pub(super) fn set(&self, left: i64) {
        self.0.store(left, Ordering::Relaxed);
    }

    /// Whether it has blown.
    pub(super) fn is_blown(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    fn burn(&self) -> io::Result<()> {
        let burn = |left| if left > 0 { Some(left - 1) } else { None };
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, burn) {
            Err(0) => Err(io::ErrorKind::StorageFull.into()),
            // What was the last that could be done cannot be: so that it shows whether it was reached.
            Ok(1) => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

impl FaultHook for Fuse {
    fn before(&self, _: Op) -> io::Result<()> {
        self.burn()
    }

    fn step(&self, _: &str) -> io::Result<()> {
        self.burn()
    }
}

pub(super) const SESSION: &str = "11111111-2222-3333-4444-555555555555";

/// What there is of a task: its files, those of its agent, and what was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) files: BTreeMap<String, String>,
    pub(super) home: BTreeMap<String, String>,
    pub(super) said: Vec<String>,
}

/// Stands before those who take checkpoints; forgets nothing while the test does not want it.
struct Keeper {
    ckpt: Ckpt,
    forgets: Arc<AtomicBool>,
}

impl Actor for Keeper {
    type Context = Context<Self>;
}

macro_rules! passed_on {
    ($($message:ident)+) => {$(
        impl Handler<$message> for Keeper {
            type Result = ResponseFuture<<$message as actix::Message>::Result>;

            fn handle(&mut self, message: $message, _: &mut Context<Self>) -> Self::Result {
                let ckpt = self.ckpt.clone();
                Box::pin(async move { ckpt.ask(message).await })
            }
        }
    )+};
}
passed_on!(KeepTree RewindTree ListKept);

impl Handler<ForgetTree> for Keeper {
    type Result = ResponseFuture<Result<(), Failure>>;

    fn handle(&mut self, forget: ForgetTree, _: &mut Context<Self>) -> Self::Result {
        let (ckpt, forgets) = (self.ckpt.clone(), self.forgets.load(Ordering::Relaxed));
        Box::pin(async move {
            match forgets {
                true => ckpt.ask(forget).await,
                false => {
                    Err(Failure { code: Code::WriteLockConflict, message: "somebody is at it".to_owned() })
                }
            }
        })
    }
}

/// A memory and all it works with.
pub(super) struct Bench {
    temp: tempfile::TempDir,
    ckpt: Ckpt,
    /// Whether checkpoints can be forgotten.
    pub(super) forgets: Arc<AtomicBool>,
    pub(super) sessions: Sessions,
    pub(super) memory: Memory,
    /// The memory's own disk.
    pub(super) fuse: Arc<Fuse>,
    /// The disk of the store of sessions.
    pub(super) store_fuse: Arc<Fuse>,
    pub(super) whose: Whose,
}

impl Bench {
    pub(super) async fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let (home, state, root) =
            (temp.path().join("home"), temp.path().join("state"), temp.path().join("pods"));
        for dir in [&home, &state, &root.join("t")] {
            fs::create_dir_all(dir).unwrap();
        }
        let (store, _) = Store::open(StoreOptions::new(&state)).unwrap();
        let parts = ckpt::Parts {
            backend: Arc::new(store),
            config: Arc::new(ConfigFile(None)),
            installation: Installation::default(),
            clock: Arc::new(SystemClock::new()),
        };
        let ckpt = ckpt::start(parts).await.unwrap();
        let store_fuse = Fuse::new();
        let places = Places { home: Some(home), ..Places::default() };
        let parts =
            session::Parts { disk: Disk::with_faults(store_fuse.clone()), ..session::Parts::new(places) };
        let sessions = session::start(parts);
        let fuse = Fuse::new();
        let whose = whose("t", &root);
        let forgets = Arc::new(AtomicBool::new(true));
        let memory = memory(&temp, &ckpt, &forgets, &sessions, &fuse);
        Self { temp, ckpt, forgets, sessions, memory, fuse, store_fuse, whose }
    }

    /// The host has died, and another one has come.
    pub(super) fn restart(&mut self) {
        self.fuse.set(-1);
        self.memory = memory(&self.temp, &self.ckpt, &self.forgets, &self.sessions, &self.fuse);
    }

    pub(super) async fn ask<M>(&self, message: M) -> M::Result
    where
        M: actix::Message + Send + 'static,
        M::Result: Send,
        Memory: Carries<M>,
    {
        self.memory.recipient().send(message).await.unwrap()
    }

    pub(super) async fn begin(&self, turn: u64, told: &str) -> Result<Begun, HostFailure> {
        self.ask(BeginTurn { whose: self.whose.clone(), turn, told: told.to_owned() }).await
    }

    pub(super) async fn end(&self, heard: Heard) -> Vec<String> {
        self.ask(EndTurn { whose: self.whose.clone(), heard }).await
    }

    /// A whole turn, in which the agent writes into its directory, into its home, and says something.
    pub(super) async fn turn(&self, turn: u64, text: &str) -> Vec<String> {
        let told = format!("ask {text}");
        let mut notes = self.begin(turn, &told).await.unwrap().notes;
        fs::create_dir_all(self.agent("home")).unwrap();
        for file in
            [self.file("same"), self.file(text), self.agent("home/same"), self.agent("home").join(text)]
        {
            fs::write(file, text).unwrap();
        }
        let mut heard = Heard::new(turn, Some(&told));
        heard.said(&format!("answer {text}"));
        notes.extend(self.end(heard).await);
        notes
    }

    pub(super) async fn rewind(&self, turn: u64) -> Result<WentBack, HostFailure> {
        self.ask(RewindTo { whose: self.whose.clone(), turn }).await
    }

    pub(super) async fn undo(&self) -> Result<WentBack, HostFailure> {
        self.ask(UndoLastRewind { whose: self.whose.clone() }).await
    }

    pub(super) async fn turns(&self) -> TurnList {
        self.ask(ListKeptTurns(self.whose.clone())).await.unwrap()
    }

    /// How many checkpoints there are of a directory.
    pub(super) async fn checkpoints(&self, dir: &Path) -> usize {
        self.ckpt.ask(ListKept { dir: dir.to_owned() }).await.unwrap().len()
    }

    pub(super) async fn see(&self) -> Seen {
        Seen { files: files(&self.whose.dir), home: files(&self.agent("home")), said: self.said().await }
    }

    /// What the store of sessions has.
    pub(super) async fn said(&self) -> Vec<String> {
        let workspace = self.whose.root.clone();
        let open = OpenStore { workspace, project_settings: false };
        let store = self.sessions.ask(open).await.unwrap().store.unwrap();
        let load = LoadSession { store, session_id: SESSION.to_owned() };
        let messages = self.sessions.ask(load).await.map(|envelope| envelope.messages).unwrap_or_default();
        messages.iter().map(|message| format!("{}: {}", message.role, text(&message.content))).collect()
    }

    /// Another program goes on with the stored conversation.
    pub(super) async fn goes_on_elsewhere(&self, text: &str) {
        let workspace = self.whose.root.clone();
        let open = OpenStore { workspace, project_settings: false };
        let store = self.sessions.ask(open).await.unwrap().store.unwrap();
        let load = LoadSession { store: Arc::clone(&store), session_id: SESSION.to_owned() };
        let mut envelope = self.sessions.ask(load).await.unwrap();
        envelope.messages.push(message("user", text.to_owned()));
        self.sessions.ask(PersistSession { store, envelope }).await.unwrap().result.unwrap();
    }

    /// Keeps what a task and its agent have now.
    pub(super) async fn keep(&self, name: &str) {
        for dir in [self.whose.dir.clone(), self.agent("")] {
            let keep = KeepTree { dir, id: name.to_owned(), metadata: None };
            self.ckpt.recipient().send(keep).await.unwrap().unwrap();
        }
    }

    /// A rewind was begun and is not finished.
    pub(super) fn begun(&self, keep: &str, target: &str, files: bool) {
        let intent = serde_json::json!({
            "keep": keep, "target": target, "turn": 2, "undo": false, "files": files,
        });
        fs::create_dir_all(self.state("pod/rewinds")).unwrap();
        fs::write(self.state("pod/rewinds/t.json"), intent.to_string()).unwrap();
    }

    /// The file of the stored conversation.
    pub(super) fn stored(&self) -> PathBuf {
        let mut dirs = vec![self.temp.path().join("home")];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap().flatten() {
                match entry.path() {
                    path if path.is_dir() => dirs.push(path),
                    path if path.ends_with(format!("{SESSION}.json")) => return path,
                    _ => {}
                }
            }
        }
        panic!("nothing is stored");
    }

    /// A file in the task's directory.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.whose.dir.join(name)
    }

    /// A file in the agent's directory.
    pub(super) fn agent(&self, name: &str) -> PathBuf {
        self.state("pod/agents/t").join(name)
    }

    /// A file in the state directory.
    pub(super) fn state(&self, name: &str) -> PathBuf {
        self.temp.path().join("state").join(name)
    }
}

pub(super) fn whose(task: &str, root: &Path) -> Whose {
    Whose {
        task: cofferdam_protocol::pod::TaskId::new(task).unwrap(),
        session: SessionId::new(SESSION).unwrap(),
        root: root.to_owned(),
        dir: root.join(task),
        model: "a model".to_owned(),
    }
}

fn memory(
    temp: &tempfile::TempDir,
    ckpt: &Ckpt,
    forgets: &Arc<AtomicBool>,
    sessions: &Sessions,
    fuse: &Arc<Fuse>,
) -> Memory {
    let keeper = Keeper { ckpt: ckpt.clone(), forgets: Arc::clone(forgets) }.start();
    start(Kept {
        sessions: sessions.clone(),
        dirs: Some(AgentDirs::new(Disk::with_faults(fuse.clone()), temp.path().join("state/pod"))),
        trees: Some(keeper.into()),
        clock: Arc::new(SystemClock::new()),
        faster: 1,
    })
}

/// The files in a directory, with what is in them.
fn files(dir: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let read = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
    };
    entries.filter(|entry| entry.path().is_file()).map(read).collect()
}
