//! The actor over a real database, in virtual time.

mod batch;
mod files;
mod lifecycle;
mod time;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use cofferdam_protocol::pod::*;
use cofferdam_storage::clock::RandomIds;
use cofferdam_storage::pod::{Loaded, Surroundings, TaskRecord};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::pod::failure::Failure;
use crate::pod::mailboxes::Pod;
use crate::pod::queue::verbs::{Facts, Outcome};
use crate::pod::testing::{Commits, Said, VirtualClock};

const SECOND: Duration = Duration::from_secs(1);
const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// A method that does what the test wants.
#[derive(Serialize, Deserialize)]
struct Do {
    #[serde(skip)]
    change: Option<Change>,
}

type Change = Box<dyn FnOnce(&mut Queue, i64) -> Result<Outcome<Done>, Refusal> + Send>;

impl fmt::Debug for Do {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Do")
    }
}

impl Method for Do {
    const NAME: &'static str = "test.do";
    type Result = Done;
}

impl Verb for Do {
    type Found = ();

    fn apply(self, queue: &mut Queue, facts: Facts<()>) -> Result<Outcome<Done>, Refusal> {
        (self.change.unwrap())(queue, facts.at)
    }
}

const DONE: Result<Outcome<Done>, Refusal> = Ok(Outcome::Done(Done { ok: true }));

struct Fixture {
    dir: TempDir,
    clock: Arc<VirtualClock>,
    commits: Arc<Commits>,
    said: Said,
    queue: Addr<TaskQueueActor>,
    pod: Pod,
}

impl Fixture {
    /// Before `initialize`.
    fn closed() -> Self {
        tokio::time::pause();
        let (clock, commits, said) = (VirtualClock::new(), Arc::<Commits>::default(), Said::default());
        let (queue, pod) = crate::pod::assemble(Parts {
            disk: commits.disk(),
            clock: clock.clone(),
            ids: Arc::new(RandomIds),
            tick: SECOND / 2,
            events: Arc::new(said.clone()),
            surroundings: Surroundings::default(),
            logs: Arc::new(said.clone()),
        });
        Self { dir: tempfile::tempdir().unwrap(), clock, commits, said, pod, queue }
    }

    /// After it.
    async fn open() -> Self {
        let fixture = Self::closed();
        fixture.ask(fixture.initialize()).await.unwrap();
        fixture.said.take();
        fixture
    }

    /// The same with a sandbox root, and at most `max` tasks at a time.
    async fn with_slots(max: u32) -> Self {
        let fixture = Self::open().await;
        let root = fixture.dir.path().join("root");
        let patch = json!({"sandboxRoot": root, "maxConcurrent": max});
        let set = fixture.ask(params::<ConfigSet>(json!({"patch": patch}))).await.unwrap();
        assert_eq!(set.messages, [""; 0]);
        fixture
    }

    fn db_path(&self) -> PathBuf {
        self.dir.path().join("isolation-pod/pod.db")
    }

    fn initialize(&self) -> Initialize {
        params(json!({"protocol": 1, "pluginVersion": CORE_VERSION, "dbPath": self.db_path()}))
    }

    async fn ask<M: Method>(&self, request: M) -> Result<M::Result, Failure>
    where
        Pod: Carries<Call<M>>,
    {
        self.pod.ask(request).await
    }

    /// Asks for what must succeed.
    async fn done<M: Method>(&self, args: Value) -> M::Result
    where
        Pod: Carries<Call<M>>,
    {
        self.ask(params::<M>(args)).await.unwrap()
    }

    /// Sends a request; that it was answered, and how, is said.
    fn call<M: Method>(&self, name: &str, request: M)
    where
        TaskQueueActor: Handler<Call<M>>,
    {
        let (said, name) = (self.said.clone(), name.to_owned());
        let reply = Reply::new(move |answer: Result<M::Result, Failure>| {
            said.say(match answer {
                Ok(_) => format!("{name} ok"),
                Err(failure) => format!("{name} {}", json!(failure.code).as_str().unwrap()),
            });
        });
        self.queue.do_send(Call { request, reply });
    }

    /// Sends a change of memory.
    fn change(
        &self,
        name: &str,
        change: impl FnOnce(&mut Queue, i64) -> Result<Outcome<Done>, Refusal> + Send + 'static,
    ) {
        self.call(name, Do { change: Some(Box::new(change)) });
    }

    /// Inserts a task.
    fn insert(&self, id: &str, status: TaskStatus) {
        let summary = summary(id, status);
        self.change(&format!("insert {id}"), move |queue, at| {
            queue.insert(summary, at)?;
            DONE
        });
    }

    /// Changes a task's description, which is told.
    fn describe(&self, id: &str, text: &str) {
        let (id, text) = (id.to_owned(), text.to_owned());
        self.change(&format!("describe {id}"), move |queue, at| {
            queue.edit(&id, at, |task| task.summary.description = text)?;
            DONE
        });
    }

    /// Changes a task's last text.
    fn text(&self, id: &str, text: &str) {
        let (id, text) = (id.to_owned(), text.to_owned());
        self.change("text", move |queue, at| {
            queue.edit(&id, at, |task| task.summary.last_text = text)?;
            DONE
        });
    }

    /// What was said until everything that was sent so far is settled.
    async fn heard(&self) -> Vec<String> {
        let _ = self.ask(Health {}).await;
        self.said.take()
    }

    async fn reserve(&self, id: &str) -> Reserved {
        self.done::<TaskReserve>(json!({
            "taskId": id, "sessionId": format!("s-{id}"), "mainSessionId": "m", "label": "l",
            "description": "d", "leaseId": format!("L-{id}"), "timeoutMs": 30_000,
        }))
        .await
    }

    /// A task that has had its turn.
    async fn ended(&self, id: &str) {
        self.reserve(id).await;
        self.done::<TaskTurnStarted>(turn(id, 1)).await;
        self.done::<TaskTurnEnded>(turn(id, 1)).await;
    }

    async fn task(&self, id: &str) -> TaskSummary {
        self.done::<TaskGet>(json!({"taskId": id})).await.task
    }

    async fn diagnostics(&self) -> Vec<String> {
        let report = self.done::<DiagnosticsGet>(json!({})).await;
        report.diagnostics.into_iter().map(|one| format!("{:?} {}", one.level, one.message)).collect()
    }

    /// Until everything that was sent so far is carried out in memory, durable or not.
    async fn applied(&self) {
        let (sender, applied) = tokio::sync::oneshot::channel();
        self.silently(move |_, _| {
            sender.send(()).unwrap();
            DONE
        });
        applied.await.unwrap();
    }

    /// Memory, which is what the database says.
    async fn agreed(&self) -> Loaded {
        let (sender, found) = tokio::sync::oneshot::channel();
        self.silently(move |queue, _| {
            let memory: Vec<TaskRecord> = queue.all().cloned().collect();
            let config = queue.config().clone();
            Ok(Outcome::Read(Box::new(move |db| {
                sender.send((memory, config, db.load()?)).unwrap();
                Ok(Done { ok: true })
            })))
        });
        let (memory, config, loaded) = found.await.unwrap();
        assert_eq!(memory, loaded.tasks);
        assert_eq!(config, loaded.config);
        loaded
    }

    fn silently(
        &self,
        change: impl FnOnce(&mut Queue, i64) -> Result<Outcome<Done>, Refusal> + Send + 'static,
    ) {
        let request = Do { change: Some(Box::new(change)) };
        self.queue.do_send(Call { request, reply: Reply::new(drop) });
    }
}

fn params<M: DeserializeOwned>(args: Value) -> M {
    serde_json::from_value(args).unwrap()
}

/// Lets time pass.
async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

fn held(id: &str) -> Value {
    json!({"taskId": id, "leaseId": format!("L-{id}")})
}

fn turn(id: &str, turn: u64) -> Value {
    json!({"taskId": id, "leaseId": format!("L-{id}"), "turn": turn, "reason": "completed"})
}

fn summary(id: &str, status: TaskStatus) -> TaskSummary {
    params(json!({
        "id": id, "sessionId": format!("s-{id}"), "mainSessionId": "m", "label": "l", "description": "d",
        "status": status, "subdir": "", "taskDir": format!("/root/{id}"), "sandboxRoot": "/root",
        "createdAt": 1, "queuedAt": 0, "startedAt": 0, "endedAt": 0, "turns": 0, "timeoutMs": 30_000,
        "allow": [], "availableTools": [], "presetId": "", "model": {}, "sandboxMode": "", "sandboxProbe": "",
        "fsDenied": false, "lastText": "", "error": "", "legacy": false, "turnDeadline": 0, "queuedPosition": 0,
    }))
}
