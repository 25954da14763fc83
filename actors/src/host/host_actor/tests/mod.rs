//! The host before a core and live tasks that only say what they were told.

mod cleanup;
mod events;
mod mains;
mod rewinding;
mod show;
mod tasks;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use actix::prelude::{Actor, ActorContext, Addr, AsyncContext, Context, Handler};
use cofferdam_protocol::host::*;
use cofferdam_protocol::pod::{Config, Initialized, Method, PodErrorCode, PodEvent, TaskStatus, TaskSummary};
use cofferdam_storage::clock::IdGen;
use cofferdam_storage::pod::AgentDirs;
use cofferdam_storage::session::config::Places;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::host::agent::{AgentBackend, Preset};
use crate::host::core::sidecar::SidecarParts;
use crate::host::core::{CoreControl, CoreDescription, Describe, Restart};
use crate::host::live_task::*;
use crate::host::messages::{Ask, MainSession, Subscribe};
use crate::host::{Host, HostFailure};
use crate::pod::testing::{Said, VirtualClock};
use crate::pod::{Call, Failure};
use crate::session;

/// What is still to be answered, in order.
type Answers = VecDeque<Result<Value, Failure>>;

/// What is said to the mocks, and what they answer.
#[derive(Clone, Default)]
struct Script {
    said: Said,
    answers: Arc<Mutex<HashMap<String, Answers>>>,
}

impl Script {
    /// The next answer to what begins like that.
    fn answer(&self, what: &str, answer: Value) {
        self.queue(what, Ok(answer));
    }

    fn refuse(&self, what: &str, code: PodErrorCode) {
        let failure = Failure { code, message: format!("{what} refused"), data: Value::Null };
        self.queue(what, Err(failure));
    }

    fn queue(&self, what: &str, answer: Result<Value, Failure>) {
        self.answers.lock().unwrap().entry(what.to_owned()).or_default().push_back(answer);
    }

    /// Notes what is said, and gives the answer to it; `null` if there is none.
    fn hear(&self, what: &str, with: &Value) -> Result<Value, Failure> {
        self.said.say(format!("{what} {with}"));
        let next = self.answers.lock().unwrap().get_mut(what).and_then(VecDeque::pop_front);
        next.unwrap_or(Ok(Value::Null))
    }
}

/// Stands in for the pod's actors.
struct MockCore(Script);

impl Actor for MockCore {
    type Context = Context<Self>;
}

impl<M: Method> Handler<Call<M>> for MockCore {
    type Result = ();

    fn handle(&mut self, Call { request, reply }: Call<M>, _: &mut Context<Self>) {
        let request = serde_json::to_value(&request).unwrap();
        let task = request.get("taskId").cloned().unwrap_or(Value::Null);
        let answer = self.0.hear(M::NAME, &request).map(|answer| match answer {
            Value::Null => usual(M::NAME, &task),
            answer => answer,
        });
        reply.send(answer.map(|answer| serde_json::from_value(answer).unwrap()));
    }
}

/// What the core answers unless a test says otherwise.
fn usual(method: &str, id: &Value) -> Value {
    let task = || json!(task(id.as_str().unwrap_or("pod-x"), TaskStatus::Completed));
    match method {
        "task.cleanupFiles" => json!({"ok": true, "removed": true}),
        "task.delete" => json!({"ok": true, "taskId": id}),
        "export.list" => json!({"exports": []}),
        _ => json!({"task": task()}),
    }
}

impl Handler<Restart> for MockCore {
    type Result = Result<(), Failure>;
    fn handle(&mut self, _: Restart, _: &mut Context<Self>) -> Self::Result {
        self.0.hear("restart", &Value::Null).map(|_| ())
    }
}

impl Handler<Describe> for MockCore {
    type Result = actix::MessageResult<Describe>;
    fn handle(&mut self, _: Describe, _: &mut Context<Self>) -> Self::Result {
        let path = "/core".to_owned();
        actix::MessageResult(CoreDescription { state: ready(), path, stderr_tail: vec!["line".to_owned()] })
    }
}

/// Stands in for an actor that holds a task.
struct MockLive {
    task: String,
    script: Script,
    _held: watch::Receiver<()>,
}

impl Actor for MockLive {
    type Context = Context<Self>;

    /// As with the heartbeats of the real one, it is there until it stops.
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(actix::fut::wrap_future(std::future::pending()));
    }
}

impl MockLive {
    fn hear(&self, what: &str, with: Value) -> Result<(), HostFailure> {
        self.script.hear(what, &json!([self.task, with])).map(|_| ()).map_err(HostFailure::from)
    }
}

impl Handler<Begin> for MockLive {
    type Result = Result<(), HostFailure>;
    fn handle(&mut self, begin: Begin, _: &mut Context<Self>) -> Self::Result {
        let main = begin.main.map(|main| format!("{}@{}", main.id, main.cwd));
        self.hear("begin", json!([begin.policy.is_some(), begin.resume, main]))
    }
}

impl Handler<Tell> for MockLive {
    type Result = Result<(), HostFailure>;
    fn handle(&mut self, tell: Tell, _: &mut Context<Self>) -> Self::Result {
        self.hear("tell", json!(tell.text))
    }
}

impl Handler<GiveBackSlot> for MockLive {
    type Result = actix::MessageResult<GiveBackSlot>;
    fn handle(&mut self, _: GiveBackSlot, _: &mut Context<Self>) -> Self::Result {
        let answer = self.script.hear("give back", &json!(self.task)).unwrap_or_default();
        actix::MessageResult(serde_json::from_value(answer).unwrap())
    }
}

impl Handler<Cancel> for MockLive {
    type Result = ();
    fn handle(&mut self, cancel: Cancel, _: &mut Context<Self>) {
        let _ = self.hear("cancel", json!(format!("{:?}", cancel.cause)));
    }
}

impl Handler<Expired> for MockLive {
    type Result = ();
    fn handle(&mut self, expired: Expired, _: &mut Context<Self>) {
        let _ = self.hear("expired", json!(expired.turn));
    }
}

impl Handler<Release> for MockLive {
    type Result = Result<(), StillRunning>;
    fn handle(&mut self, Release(why): Release, ctx: &mut Context<Self>) -> Self::Result {
        self.hear("release", json!(format!("{why:?}"))).map_err(|_| StillRunning)?;
        ctx.stop();
        Ok(())
    }
}

impl Handler<Noted> for MockLive {
    type Result = ();
    fn handle(&mut self, Noted(text): Noted, _: &mut Context<Self>) {
        let _ = self.hear("note", json!(text));
    }
}

impl Handler<ReadTranscript> for MockLive {
    type Result = actix::MessageResult<ReadTranscript>;
    fn handle(&mut self, read: ReadTranscript, _: &mut Context<Self>) -> Self::Result {
        let _ = self.hear("transcript", json!(read.from));
        actix::MessageResult(Transcript { entries: Vec::new(), next: 7, truncated: false })
    }
}

/// Names of which each says how many came before it.
#[derive(Default)]
struct Counted(Mutex<u32>);

impl IdGen for Counted {
    fn fresh(&self) -> String {
        let mut last = self.0.lock().unwrap();
        *last += 1;
        format!("{:032}", *last)
    }
}

/// A host and everything around it.
struct Rig {
    host: Host,
    addr: Addr<HostActor>,
    script: Script,
}

fn preset(id: &str) -> Preset {
    struct Nobody;
    impl Actor for Nobody {
        type Context = Context<Self>;
    }
    macro_rules! never {
        ($($message:ty)+) => {$(
            impl Handler<$message> for Nobody {
                type Result = <$message as actix::Message>::Result;
                fn handle(&mut self, _: $message, _: &mut Context<Self>) -> Self::Result {
                    unreachable!()
                }
            }
        )+};
    }
    use crate::host::agent::{CancelTurn, DisposeAgent, FollowUpAgent, StartAgent};
    never!(StartAgent FollowUpAgent CancelTurn DisposeAgent);
    let backend: AgentBackend = Nobody.start().into();
    Preset {
        id: id.to_owned(),
        name: id.to_uppercase(),
        broken: (id == "broken").then(|| "its program is not there".to_owned()),
        needs: if id == "writer" { vec!["write".to_owned()] } else { Vec::new() },
        resumable: id != "forgetful",
        backend,
    }
}

impl Rig {
    /// A host whose core is there, with these tasks.
    async fn with(tasks: Vec<TaskSummary>) -> Self {
        let rig = Self::new();
        rig.up(ready(), Some(initialized(config(), tasks))).await;
        rig.script.said.take();
        rig
    }

    fn new() -> Self {
        Self::keeping(None)
    }

    /// With what is kept of tasks.
    fn keeping(agents: Option<AgentDirs>) -> Self {
        let script = Script::default();
        let parts = Parts {
            core: CoreParts {
                database: PathBuf::from("/state/pod.db"),
                legacy: None,
                keeper: Keeper::Sidecar(SidecarParts {
                    program: PathBuf::from("/core"),
                    state_dir: None,
                    patience: std::time::Duration::from_secs(30),
                    faster: 1,
                }),
            },
            presets: ["one", "writer", "broken", "forgetful"].map(preset).into(),
            clock: VirtualClock::new(),
            faster: 1,
            ids: Arc::new(Counted::default()),
            compat: Compat { bootstrap: true, index_inject: false, events: true, follow_up: true },
            temp_dirs: Vec::new(),
            agents,
        };
        let (core, live) = (script.clone(), script.clone());
        let subordinates = Subordinates {
            core: Box::new(move |_, _| {
                let core = MockCore(core.clone()).start();
                let control: CoreControl = core.clone().into();
                PodCore { pod: (core.clone(), core).into(), control }
            }),
            live_task: Box::new(move |parts| {
                let (task, script, _held) = (parts.task_id, live.clone(), parts._held);
                script.said.say(format!("hold {task} {}", parts.preset.id));
                MockLive { task, script, _held }.start().into()
            }),
        };
        let sessions = session::start(session::Parts::new(Places::default()));
        let addr = HostActor::new(parts, sessions, None, subordinates).start();
        Self { host: addr.clone().into(), addr, script }
    }

    async fn up(&self, state: CoreState, said: Option<Initialized>) {
        self.addr.send(CoreEvent::Up { state, initialized: said.map(Box::new) }).await.unwrap();
        self.settle().await;
    }

    /// The core says something.
    async fn event(&self, event: PodEvent) {
        self.addr.send(CoreEvent::Pod(event)).await.unwrap();
        self.settle().await;
    }

    async fn changed(&self, task: TaskSummary) {
        self.event(PodEvent::changed(&task)).await;
    }

    /// A live task has an agent now, or none any more.
    async fn agent(&self, task: &str, lease: &str, live: bool) {
        let what = LiveChange::Agent { live };
        self.addr.send(LiveNotice { task_id: task.to_owned(), lease: lease.to_owned(), what }).await.unwrap();
    }

    /// Lets everything go on that can.
    async fn settle(&self) {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }

    async fn ask<M: HostMethod>(&self, method: M) -> Result<M::Answer, HostFailure>
    where
        Host: crate::Carries<Ask<M>>,
    {
        let answer = self.host.ask(method).await;
        self.settle().await;
        answer
    }

    /// The code and text of a refusal.
    async fn refusal<M: HostMethod>(&self, method: M) -> (String, String)
    where
        Host: crate::Carries<Ask<M>>,
    {
        let failure = self.ask(method).await.unwrap_err();
        (failure.code.word(), failure.message)
    }

    async fn state(&self, main: &str) -> State {
        let Prepared(body) = self.ask(GetState { main_session_id: main.to_owned() }).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// Somebody who listens.
    async fn listener(&self, main: Option<MainSession>, room: usize) -> mpsc::Receiver<Arc<HostEvent>> {
        let (events, heard) = mpsc::channel(room);
        self.addr.send(Subscribe { main, events }).await.unwrap();
        heard
    }

    /// Starts a task that gets a slot at once and an agent; returns its id and its lease.
    async fn running(&self) -> (String, String) {
        self.script.answer("task.reserve", reserved(task("pod-1", TaskStatus::Starting), true));
        let started = self.ask(start("do it")).await.unwrap();
        let lease = self.lease_of("task.reserve");
        self.agent_of(&started.task_id, &lease, TaskStatus::Running).await;
        self.script.said.take();
        (started.task_id, lease)
    }

    /// The mocked core answers with its own id; the host knows the task by the one it chose.
    async fn agent_of(&self, id: &str, lease: &str, status: TaskStatus) {
        self.changed(task(id, status)).await;
        self.agent(id, lease, true).await;
    }

    /// The lease of the newest request of that method; what was said stays.
    fn lease_of(&self, method: &str) -> String {
        let said = self.script.said.take();
        let request = said.iter().rev().find_map(|line| line.strip_prefix(method)).unwrap().to_owned();
        for line in said {
            self.script.said.say(line);
        }
        let request: Value = serde_json::from_str(request.trim()).unwrap();
        request["leaseId"].as_str().unwrap().to_owned()
    }
}

fn ready() -> CoreState {
    CoreState {
        status: CoreStatus::Ready,
        message: String::new(),
        code: None,
        embedded: false,
        version: "0.2.0".to_owned(),
        protocol: 1,
        schema_version: 1,
        pid: 7,
        starts: 1,
    }
}

fn config() -> Config {
    Config { sandbox_root: "/pods".to_owned(), preset_id: "one".to_owned(), ..Config::default() }
}

fn initialized(config: Config, tasks: Vec<TaskSummary>) -> Initialized {
    Initialized {
        protocol: 1,
        core_version: "0.2.0".to_owned(),
        schema_version: 1,
        db_path: "/state/pod.db".to_owned(),
        config,
        tasks,
        exports: Vec::new(),
        diagnostics: Vec::new(),
        truncated: false,
    }
}

/// The id the host chose first: the mocked core is to answer with it.
const FIRST: &str = "pod-00000000000000000000000000000001";

fn task(id: &str, status: TaskStatus) -> TaskSummary {
    let id = if id == "pod-1" { FIRST } else { id };
    serde_json::from_value(json!({
        "id": id, "sessionId": format!("pod-session-{id}"), "mainSessionId": "main", "label": "l",
        "description": "d", "status": status, "subdir": "", "taskDir": "/", "sandboxRoot": "/pods",
        "createdAt": 1, "queuedAt": 0, "startedAt": 0, "endedAt": 0, "turns": 1, "timeoutMs": 600_000,
        "allow": ["read"], "availableTools": [], "presetId": "one",
        "model": {"provider": "", "model": "", "reasoningEffort": null}, "sandboxMode": "",
        "sandboxProbe": "", "fsDenied": false, "lastText": "", "error": "", "legacy": false,
        "turnDeadline": 0, "queuedPosition": 0,
    }))
    .unwrap()
}

fn reserved(task: TaskSummary, start_now: bool) -> Value {
    let place = u8::from(!start_now);
    let policy = start_now.then(|| {
        json!({"root": "/pods", "rootDisplay": "/pods", "taskDir": "/pods/x", "caseInsensitive": false,
               "separator": "/", "longPathPrefix": ""})
    });
    json!({"task": task, "startNow": start_now, "queuedPosition": place, "policy": policy})
}

fn start(description: &str) -> StartTask {
    StartTask {
        main_session_id: "main".to_owned(),
        description: description.to_owned(),
        ..StartTask::default()
    }
}
