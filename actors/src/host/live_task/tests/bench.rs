//! A live task in virtual time, and what stands in for all it speaks with: a core and an agent that say what they are told,
//! and answer as the test wants.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::prelude::*;
use cofferdam_protocol::host::{CoreState, CoreStatus, Transcript};
use cofferdam_protocol::pod::{
    Config, LeaseId, LogLevel, Method, ModelChoice, PodErrorCode, Probe, SandboxCheck, SandboxMode,
    SandboxPolicy, TaskStatus, TaskSummary,
};
use cofferdam_protocol::session::Envelope;
use cofferdam_storage::disk::Disk;
use cofferdam_storage::pod::AgentDirs;
use cofferdam_storage::session::config::Places;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{pause, resume, sleep};

use crate::host::agent::{
    AgentError, AgentEvent, CancelCause, CancelTurn, DisposeAgent, FollowUpAgent, Preset, ReadyAgent,
    StartAgent,
};
use crate::host::core::{CoreControl, CoreDescription, Describe, PodCore, Restart};
use crate::host::live_task::*;
use crate::host::memory::{self, Kept, ListKeptTurns, Whose};
use crate::host::{HostFailure, MainSession};
use crate::mailbox::Carries;
use crate::pod::testing::{Said, VirtualClock};
use crate::pod::{Call, Failure};
use crate::session;

/// The conversation's id.
pub(super) const SESSION: &str = "11111111-2222-3333-4444-555555555555";
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// What the test wants of the core.
#[derive(Debug)]
struct Plan {
    /// The task, as the core answers.
    task: TaskSummary,
    /// What is refused, and as what, so many times.
    refused: HashMap<String, (PodErrorCode, u32)>,
    /// What is not answered until it is let go.
    held: HashSet<String>,
    waiting: Vec<oneshot::Sender<()>>,
    /// Whether heartbeats are written down.
    heartbeats: bool,
}

/// The core.
struct ProbeCore {
    said: Said,
    plan: Arc<Mutex<Plan>>,
}

impl Actor for ProbeCore {
    type Context = Context<Self>;
}

impl<M: Method> Handler<Call<M>> for ProbeCore {
    type Result = ();

    fn handle(&mut self, Call { request, reply }: Call<M>, ctx: &mut Context<Self>) {
        let mut params = serde_json::to_value(&request).unwrap();
        let fields = params.as_object_mut().unwrap();
        assert_eq!(fields.remove("taskId"), Some(json!("t")));
        assert!([None, Some(json!("lease"))].contains(&fields.remove("leaseId")));
        let mut plan = self.plan.lock().unwrap();
        if M::NAME != "task.heartbeat" || plan.heartbeats {
            self.said.say(match fields.is_empty() {
                true => M::NAME.to_owned(),
                false => format!("{} {params}", M::NAME),
            });
        }
        let answer = match plan.refused.get_mut(M::NAME) {
            Some((code, times)) if *times > 0 => {
                *times -= 1;
                Err(Failure { code: *code, message: "as planned".to_owned(), data: Value::Null })
            }
            _ => {
                plan.apply(M::NAME, &params);
                let answer = json!({"ok": true, "task": plan.task, "policy": policy()});
                Ok(serde_json::from_value(answer).unwrap())
            }
        };
        if plan.held.contains(M::NAME) {
            let (go, going) = oneshot::channel();
            plan.waiting.push(go);
            let answered = async move {
                let _ = going.await;
                reply.send(answer);
            };
            ctx.spawn(answered.into_actor(self));
        } else {
            reply.send(answer);
        }
    }
}

impl Plan {
    /// What the real core would make of the task.
    fn apply(&mut self, method: &str, params: &Value) {
        let ended = self.task.status.is_terminal();
        self.task.status = match (method, params["reason"].as_str()) {
            ("task.turnStarted", _) => TaskStatus::Running,
            ("task.markRunning", _) if !ended => TaskStatus::Running,
            ("task.setError", _) if !ended => TaskStatus::Failed,
            ("task.turnEnded", _) if ended => return,
            ("task.turnEnded", _) if params["timedOut"] == json!(true) => TaskStatus::Timeout,
            ("task.turnEnded", Some("completed")) => TaskStatus::Completed,
            ("task.turnEnded", Some("aborted")) => TaskStatus::Cancelled,
            ("task.turnEnded", _) => TaskStatus::Failed,
            _ => return,
        };
    }
}

impl Handler<Restart> for ProbeCore {
    type Result = Result<(), Failure>;

    fn handle(&mut self, _: Restart, _: &mut Context<Self>) -> Self::Result {
        panic!("a live task restarts no core")
    }
}

impl Handler<Describe> for ProbeCore {
    type Result = MessageResult<Describe>;

    fn handle(&mut self, _: Describe, _: &mut Context<Self>) -> Self::Result {
        let state = CoreState {
            status: CoreStatus::Ready,
            message: String::new(),
            code: None,
            embedded: true,
            version: String::new(),
            protocol: 0,
            schema_version: 0,
            pid: 0,
            starts: 0,
        };
        MessageResult(CoreDescription { state, path: String::new(), stderr_tail: Vec::new() })
    }
}

/// What the test wants of the agent.
#[derive(Debug)]
struct Manners {
    ready: Result<ReadyAgent, AgentError>,
    follow_up: Result<(), AgentError>,
    /// Which messages are never answered.
    deaf: HashSet<&'static str>,
    /// What it was deaf to, and could still answer.
    late: Vec<oneshot::Sender<()>>,
    started: Option<StartAgent>,
    /// What the agent was given last.
    given: Option<Arc<Envelope>>,
}

/// The agent's backend.
struct ProbeBackend {
    said: Said,
    manners: Arc<Mutex<Manners>>,
}

impl ProbeBackend {
    /// Answers, unless it is deaf to that.
    fn answer<T: 'static>(&self, to: &'static str, answer: T) -> ResponseFuture<T> {
        let mut manners = self.manners.lock().unwrap();
        if !manners.deaf.contains(to) {
            return Box::pin(async { answer });
        }
        let (go, going) = oneshot::channel();
        manners.late.push(go);
        Box::pin(async move {
            match going.await {
                Ok(()) => answer,
                Err(_) => std::future::pending().await,
            }
        })
    }
}

impl Actor for ProbeBackend {
    type Context = Context<Self>;
}

impl Handler<StartAgent> for ProbeBackend {
    type Result = ResponseFuture<Result<ReadyAgent, AgentError>>;

    fn handle(&mut self, start: StartAgent, _: &mut Context<Self>) -> Self::Result {
        let resume = if start.resume { " again" } else { "" };
        self.said.say(format!("agent: start{resume} {} {}", start.mode.as_str(), start.tools.join(",")));
        let ready = self.manners.lock().unwrap().ready.clone();
        self.manners.lock().unwrap().started = Some(start);
        self.answer("start", ready)
    }
}

impl Handler<FollowUpAgent> for ProbeBackend {
    type Result = ResponseFuture<Result<(), AgentError>>;

    fn handle(&mut self, told: FollowUpAgent, _: &mut Context<Self>) -> Self::Result {
        let FollowUpAgent { prompt, conversation, .. } = told;
        self.manners.lock().unwrap().given = conversation;
        self.said.say(format!("agent: told {prompt}"));
        let answer = self.manners.lock().unwrap().follow_up.clone();
        self.answer("follow up", answer)
    }
}

impl Handler<CancelTurn> for ProbeBackend {
    type Result = ();

    fn handle(&mut self, CancelTurn { cause, .. }: CancelTurn, _: &mut Context<Self>) {
        self.said.say(format!("agent: cancel {cause:?}"));
    }
}

impl Handler<DisposeAgent> for ProbeBackend {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: DisposeAgent, _: &mut Context<Self>) -> Self::Result {
        self.said.say("agent: dispose");
        self.answer("dispose", ())
    }
}

/// The host.
struct ProbeHost(Said);

impl Actor for ProbeHost {
    type Context = Context<Self>;
}

impl Handler<LiveNotice> for ProbeHost {
    type Result = ();

    fn handle(&mut self, LiveNotice { task_id, lease, what }: LiveNotice, _: &mut Context<Self>) {
        assert_eq!((task_id.as_str(), lease.as_str()), ("t", "lease"));
        match what {
            LiveChange::Agent { live } => self.0.say(if live { "live" } else { "not live" }),
            LiveChange::Diagnostic { level: LogLevel::Warn, message } => {
                self.0.say(format!("warning {message}"))
            }
            LiveChange::Diagnostic { level, .. } => panic!("{level:?}"),
            LiveChange::Ended => self.0.say("ended"),
            LiveChange::Missed => self.0.say("missed"),
            // The transcript says the same.
            LiveChange::Entry(_) => {}
        }
    }
}

thread_local! {
    /// How many there are in this test. Time is virtual as long as there is one.
    static BENCHES: Cell<usize> = const { Cell::new(0) };
}

/// A live task and all it speaks with.
pub(super) struct Bench {
    pub(super) task: Addr<LiveTask>,
    said: Said,
    plan: Arc<Mutex<Plan>>,
    manners: Arc<Mutex<Manners>>,
    pub(super) config: Config,
    pub(super) main: Option<MainSession>,
    pub(super) parts: LiveParts,
    home: tempfile::TempDir,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::with(|_| ())
    }

    /// With a preset of its own.
    pub(super) fn with(change: impl FnOnce(&mut Preset)) -> Self {
        BENCHES.with(|benches| {
            if benches.replace(benches.get() + 1) == 0 {
                pause();
            }
        });
        let (said, home) = (Said::default(), tempfile::tempdir().unwrap());
        let plan = Arc::new(Mutex::new(Plan {
            task: task(),
            refused: HashMap::new(),
            held: HashSet::new(),
            waiting: Vec::new(),
            heartbeats: false,
        }));
        let check = SandboxCheck {
            mode: SandboxMode::WorkspaceWrite,
            root: "/root".to_owned(),
            probe: Probe::Denied,
            fs_denied: true,
            note: String::new(),
            at: 7,
        };
        let manners = Arc::new(Mutex::new(Manners {
            ready: Ok(ReadyAgent { check, tools: Vec::new() }),
            follow_up: Ok(()),
            deaf: HashSet::new(),
            late: Vec::new(),
            started: None,
            given: None,
        }));
        let core = ProbeCore { said: said.clone(), plan: Arc::clone(&plan) }.start();
        let backend = ProbeBackend { said: said.clone(), manners: Arc::clone(&manners) }.start();
        let mut preset = Preset {
            id: "p".to_owned(),
            name: "a preset".to_owned(),
            broken: None,
            needs: Vec::new(),
            resumable: true,
            backend: backend.into(),
        };
        change(&mut preset);
        let places = Places { home: Some(home.path().to_owned()), ..Places::default() };
        let sessions = session::start(session::Parts::new(places));
        let clock = VirtualClock::new();
        let root = home.path().join("pods");
        std::fs::create_dir_all(root.join("t")).unwrap();
        plan.lock().unwrap().task.sandbox_root = root.display().to_string();
        let dirs = AgentDirs::new(Disk::default(), home.path().join("state"));
        let memory = memory::start(Kept {
            sessions: sessions.clone(),
            dirs: Some(dirs),
            trees: None,
            clock: clock.clone(),
            faster: 1,
        });
        let parts = LiveParts {
            task_id: "t".to_owned(),
            lease: LeaseId("lease".to_owned()),
            preset,
            core: PodCore { pod: (core.clone(), core.clone()).into(), control: CoreControl::from(core) },
            sessions,
            memory,
            clock,
            faster: 1,
            notices: ProbeHost(said.clone()).start().recipient(),
            _held: watch::Sender::new(()).subscribe(),
        };
        let config = Config { read_context: false, ..Config::default() };
        let task = LiveTask::new(parts.clone()).start();
        Self { task, said, plan, manners, config, main: None, parts, home }
    }

    /// One whose agent waits after its first turn. What was said is forgotten.
    pub(super) async fn idle() -> Self {
        let bench = Self::in_turn().await;
        bench
            .agent(AgentEvent::TurnEnded { turn: 1, reason: "completed".to_owned(), error: String::new() })
            .await;
        bench.said.take();
        bench
    }

    /// One whose agent is in its first turn. What was said is forgotten.
    pub(super) async fn in_turn() -> Self {
        let bench = Self::new();
        bench.begin().await.unwrap();
        bench.agent(AgentEvent::TurnStarted { turn: 1 }).await;
        bench.said.take();
        bench
    }

    /// The usual beginning, without a policy.
    pub(super) fn message(&self) -> Begin {
        let task = self.plan.lock().unwrap().task.clone();
        let (config, main) = (self.config.clone(), self.main.clone());
        Begin { task, policy: Some(policy()), config, main, resume: false }
    }

    pub(super) async fn begin(&self) -> Result<(), HostFailure> {
        let begun = self.task.send(self.message()).await.unwrap();
        self.settle().await;
        begun
    }

    /// A beginning that is not waited for.
    pub(super) fn begins(&self) -> JoinHandle<Result<(), HostFailure>> {
        let sent = self.task.send(self.message());
        tokio::task::spawn_local(async { sent.await.unwrap() })
    }

    /// The agent does something, and everybody has heard of it.
    pub(super) async fn agent(&self, event: AgentEvent) {
        self.task.send(event).await.unwrap();
        self.settle().await;
    }

    pub(super) async fn tell(&self, text: &str) -> Result<(), HostFailure> {
        let told = self.task.send(Tell { text: text.to_owned() }).await.unwrap();
        self.settle().await;
        told
    }

    pub(super) async fn cancel(&self) {
        let cause = CancelCause::User { reason: "no".to_owned() };
        self.task.send(Cancel { cause }).await.unwrap();
        self.settle().await;
    }

    pub(super) async fn release(&self, why: LetGo) -> Result<(), StillRunning> {
        let released = self.task.send(Release(why)).await.unwrap();
        self.settle().await;
        released
    }

    /// Time passes, and everything that is up happens.
    pub(super) async fn after(&self, seconds: u32) {
        sleep(seconds * SECOND).await;
        self.settle().await;
    }

    /// Everybody waits.
    pub(super) async fn settle(&self) {
        sleep(Duration::from_millis(1)).await;
    }

    /// What was said since the last time.
    pub(super) fn take(&self) -> Vec<String> {
        self.said.take()
    }

    /// What was said since the last time, where its order is not one: to the core, to the agent, to the host.
    pub(super) fn take_sorted(&self) -> Vec<String> {
        let mut said = self.said.take();
        said.sort();
        said
    }

    pub(super) async fn transcript(&self) -> Transcript {
        self.task.send(ReadTranscript { from: 0 }).await.unwrap()
    }

    /// The transcript, a line for each entry.
    pub(super) async fn entries(&self) -> Vec<String> {
        let entries = self.transcript().await.entries;
        entries.into_iter().map(|entry| format!("{:?}: {}", entry.kind, entry.text)).collect()
    }

    /// The core shows the task so from now on.
    pub(super) fn shows(&self, change: impl FnOnce(&mut TaskSummary)) {
        change(&mut self.plan.lock().unwrap().task);
    }

    /// The core refuses a method so many times.
    pub(super) fn refuses(&self, method: &str, code: PodErrorCode, times: u32) {
        self.plan.lock().unwrap().refused.insert(method.to_owned(), (code, times));
    }

    /// The core does not answer a method until it is let go.
    pub(super) fn holds(&self, method: &str) {
        self.plan.lock().unwrap().held.insert(method.to_owned());
    }

    /// The core answers everything that it held back.
    pub(super) async fn let_go(&self) {
        {
            let mut plan = self.plan.lock().unwrap();
            plan.held.clear();
            for go in std::mem::take(&mut plan.waiting) {
                let _ = go.send(());
            }
        }
        self.settle().await;
    }

    pub(super) fn hear_heartbeats(&self) {
        self.plan.lock().unwrap().heartbeats = true;
    }

    /// The agent is ready so.
    pub(super) fn ready(&self, change: impl FnOnce(&mut ReadyAgent)) {
        change(self.manners.lock().unwrap().ready.as_mut().unwrap());
    }

    /// The agent does not start.
    pub(super) fn start_fails(&self, error: AgentError) {
        self.manners.lock().unwrap().ready = Err(error);
    }

    /// The agent begins no turn.
    pub(super) fn follow_up_fails(&self, error: AgentError) {
        self.manners.lock().unwrap().follow_up = Err(error);
    }

    /// The agent does not answer this any more.
    pub(super) fn deaf(&self, to: &'static str) {
        self.manners.lock().unwrap().deaf.insert(to);
    }

    /// The agent answers everything.
    pub(super) fn hears(&self) {
        self.manners.lock().unwrap().deaf.clear();
    }

    /// The agent answers everything, also what it was deaf to.
    pub(super) async fn answers_late(&self) {
        self.hears();
        for go in std::mem::take(&mut self.manners.lock().unwrap().late) {
            let _ = go.send(());
        }
        self.settle().await;
    }

    /// The agent begins turns.
    pub(super) fn follow_up_works(&self) {
        self.manners.lock().unwrap().follow_up = Ok(());
    }

    /// The turns of which something is kept, with what was asked.
    pub(super) async fn turns(&self) -> Vec<String> {
        let whose = Whose::of(&self.plan.lock().unwrap().task).unwrap();
        let kept = self.parts.memory.recipient().send(ListKeptTurns(whose)).await.unwrap().unwrap();
        kept.turns.iter().map(|row| format!("{} {}", row.turn, row.asked)).collect()
    }

    /// The conversation that the agent was given last.
    pub(super) fn conversation(&self) -> Option<Envelope> {
        self.manners.lock().unwrap().given.as_deref().cloned()
    }

    /// The same, a line for each message.
    pub(super) fn given(&self) -> Vec<String> {
        let messages = self.conversation().map(|conversation| conversation.messages).unwrap_or_default();
        let line = |message: &cofferdam_protocol::session::Message| {
            format!("{}: {}", message.role, message.content.pieces().collect::<Vec<_>>().join("\n"))
        };
        messages.iter().map(line).collect()
    }

    /// The same task, held anew.
    pub(super) fn again(mut self) -> Self {
        self.task = LiveTask::new(self.parts.clone()).start();
        self
    }

    /// Damages every copy of the conversation.
    pub(super) fn damage(&self) {
        let mut dirs = vec![self.home.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                match entry.path() {
                    path if path.is_dir() => dirs.push(path),
                    path if path.extension().is_some_and(|ending| ending == "json") => {
                        std::fs::write(path, "{").unwrap();
                    }
                    _ => {}
                }
            }
        }
    }

    /// How the agent was started.
    pub(super) fn started(&self) -> StartAgent {
        self.manners.lock().unwrap().started.clone().unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        BENCHES.with(|benches| {
            benches.set(benches.get() - 1);
            if benches.get() == 0 && !std::thread::panicking() {
                resume();
            }
        });
    }
}

pub(super) fn policy() -> SandboxPolicy {
    SandboxPolicy {
        root: "/root".to_owned(),
        root_display: "/root".to_owned(),
        task_dir: "/root/t".to_owned(),
        case_insensitive: false,
        separator: "/".to_owned(),
        long_path_prefix: String::new(),
    }
}

/// A task that has a slot.
fn task() -> TaskSummary {
    TaskSummary {
        id: "t".to_owned(),
        session_id: format!("pod-session-{SESSION}"),
        main_session_id: String::new(),
        label: "label".to_owned(),
        description: "the task".to_owned(),
        status: TaskStatus::Starting,
        subdir: String::new(),
        task_dir: "/root/t".to_owned(),
        sandbox_root: "/root".to_owned(),
        created_at: 1,
        queued_at: 0,
        started_at: 0,
        ended_at: 0,
        turns: 0,
        timeout_ms: 600_000,
        allow: ["read", "bash", "write"].map(str::to_owned).into(),
        available_tools: Vec::new(),
        preset_id: "p".to_owned(),
        model: ModelChoice::default(),
        sandbox_mode: String::new(),
        sandbox_probe: String::new(),
        fs_denied: false,
        last_text: String::new(),
        error: String::new(),
        legacy: false,
        turn_deadline: 0,
        queued_position: 0,
    }
}
