//! From a slot to an agent that can be told something. All of it can be left off at any moment: it changes nothing of the
//! actor.

use std::path::PathBuf;

use actix::prelude::{Message, Recipient};
use cofferdam_protocol::host::EntryKind;
use cofferdam_protocol::pod::{
    PodErrorCode, Probe, SandboxCheck, SandboxMode, SandboxPolicy, SandboxPrepare, SandboxProbeMode,
    TaskMarkRunning, TaskMarkStarting, TaskSetAvailableTools, TaskSetSandboxCheck, TaskStatus, TaskSummary,
};
use tokio::time::timeout;

use super::core_line::is_lost;
use super::messages::{Begin, LetGo};
use super::{LiveParts, PATIENCE, START_LIMIT};
use crate::Carries;
use crate::host::agent::{AgentBackend, AgentError, AgentEvent, DisposeAgent, ReadyAgent, StartAgent};
use crate::host::context::{self, ReadContext};
use crate::host::failure::{HostFailure, HostRefusal};
use crate::host::memory::{MakeReady, Remembered, Whose};
use crate::host::prompt::{Surroundings, system_prompt};
use crate::pod::Failure;

/// The most tools that are told to the core (spec §5).
const MAX_TOOLS: usize = 256;

/// An agent that can be told something.
#[derive(Debug)]
pub(super) struct Ready {
    /// The task, whole and as it is now.
    pub(super) task: TaskSummary,
    /// The tools the agent has, as far as that is known.
    pub(super) available: Vec<String>,
    /// What people should know of how it was made ready.
    pub(super) notes: Vec<String>,
    /// The last turn that is known of; 0: none is.
    pub(super) last_turn: u64,
    /// What was said and done before.
    pub(super) past: Vec<(EntryKind, String)>,
}

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unready {
    /// The core refused something, or could not be told.
    #[error(transparent)]
    Core(#[from] Failure),
    /// The task, its preset and the configuration do not go together.
    #[error("{0}")]
    Config(String),
    /// The agent does not start.
    #[error("the agent does not start: {0}")]
    Agent(#[from] AgentError),
    /// It takes too long.
    #[error(
        "the agent was not ready within 30 s, and was ended; look at what it does when it starts, then try again"
    )]
    Slow,
    /// An agent from before still runs.
    #[error("the task's former agent still runs; end its process, then try again")]
    Occupied,
    /// The sandbox does not hold, or is not proven to.
    #[error("the sandbox did not pass its test: {why}")]
    Sandbox {
        /// What the test, or the core, says.
        why: String,
        /// Whether the core has failed the task for it.
        known: bool,
    },
    /// It is to go on with a conversation that cannot be read.
    #[error(
        "the stored conversation cannot be read, so the agent cannot go on with it: {0}; start a new task, or remove the \
         session to go on without it"
    )]
    Unreadable(String),
    /// The agent ended by itself.
    #[error("the agent ended while it was made ready: {0}")]
    Gone(String),
    /// Somebody does not want it any more.
    #[error("the task was cancelled before its agent was ready")]
    Cancelled,
    /// The host lets the task go.
    #[error("the task was let go before its agent was ready")]
    Released(LetGo),
}

impl Unready {
    /// Whether the task is somebody else's now, or nobody's.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Core(failure) if is_lost(failure))
    }

    /// Whether the task's record says already why: it has ended, and what it says must stay.
    pub(super) fn is_known(&self) -> bool {
        match self {
            Self::Core(failure) => failure.code == PodErrorCode::TaskNotResumable,
            Self::Sandbox { known, .. } => *known,
            Self::Cancelled | Self::Released(_) => true,
            Self::Unreadable(_)
            | Self::Config(_)
            | Self::Agent(_)
            | Self::Slow
            | Self::Occupied
            | Self::Gone(_) => false,
        }
    }
}

impl From<&Unready> for HostFailure {
    fn from(unready: &Unready) -> Self {
        let message = unready.to_string();
        match unready {
            Unready::Core(failure) => failure.clone().into(),
            Unready::Config(_) | Unready::Agent(AgentError::Config(_)) => HostRefusal::Config(message).into(),
            Unready::Agent(AgentError::NotResumable(_)) | Unready::Cancelled | Unready::Unreadable(_) => {
                HostRefusal::NotResumable(message).into()
            }
            Unready::Occupied => HostRefusal::TaskRunning(message).into(),
            Unready::Released(LetGo::Stopping) => HostRefusal::Unavailable.into(),
            Unready::Released(_) => HostRefusal::TaskBusy(message).into(),
            Unready::Agent(AgentError::Busy | AgentError::Gone | AgentError::Failed(_))
            | Unready::Slow
            | Unready::Sandbox { .. }
            | Unready::Gone(_) => failed(message),
        }
    }
}

/// A failure of an agent: the contract has no code of its own for it.
pub(in crate::host) fn failed(message: String) -> HostFailure {
    HostFailure { code: PodErrorCode::Internal.into(), message, data: serde_json::Value::Null }
}

/// The tools a task's agent may use: those it was started with, as far as they are still allowed.
pub(super) fn tools(begin: &Begin) -> Vec<String> {
    begin.config.effective_tools(Some(&begin.task.allow))
}

impl LiveParts {
    /// Makes an agent ready, which counts on from the last turn that was `seen`, or is known of. One from before is ended
    /// first.
    pub(super) async fn prepare(
        self,
        begin: Begin,
        seen: u64,
        former: bool,
        events: Recipient<AgentEvent>,
    ) -> Result<Ready, Unready> {
        let tools = tools(&begin);
        self.check_preset(&tools)?;
        let policy = match begin.policy.clone() {
            Some(policy) => policy,
            None => self.ask(SandboxPrepare { task_id: self.task_id.clone() }).await?.policy,
        };
        self.ask(TaskMarkStarting { task_id: self.task_id.clone(), lease_id: self.lease.clone() }).await?;
        if former && timeout(self.real(PATIENCE), self.dispose()).await.is_err() {
            return Err(Unready::Occupied);
        }
        let remembered = self.remembered(&begin.task).await;
        let Remembered { dir, past, last_turn, unreadable, notes: of_memory } = remembered;
        let last_turn = last_turn.max(seen);
        if let Some(why) = unreadable.filter(|_| begin.resume) {
            return Err(Unready::Unreadable(why));
        }
        let context = self.read_context(&begin).await;
        let agent = self.start_agent(&begin, &policy, tools, (dir, last_turn), &context, events).await?;
        let (task, available) = self.tell_ready(&begin, &agent).await?;
        let notes = of_memory.into_iter().chain([context.note, sandbox_note(&agent.check)]);
        let notes = notes.filter(|note| !note.is_empty()).collect();
        // What has ended meanwhile, or was only resumed, gets no turn; it keeps its agent.
        let task = match task.status.is_active() && !begin.resume {
            true => {
                self.ask(TaskMarkRunning { task_id: self.task_id.clone(), lease_id: self.lease.clone() })
                    .await?
                    .task
            }
            false => task,
        };
        Ok(Ready { task, available, notes, last_turn, past })
    }

    fn check_preset(&self, tools: &[String]) -> Result<(), Unready> {
        let preset = &self.preset;
        if let Some(why) = &preset.broken {
            return Err(Unready::Config(format!(
                "the preset {} cannot be used: {why}; choose another one in the configuration",
                preset.id
            )));
        }
        let missing: Vec<&str> =
            preset.needs.iter().filter(|need| !tools.contains(need)).map(String::as_str).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Unready::Config(format!(
                "the preset {} needs tools that the task may not use: {}; allow them in the configuration, or choose \
                 another preset",
                preset.id,
                missing.join(", ")
            ))),
        }
    }

    /// What is kept of the task. A memory that is gone goes with the host.
    async fn remembered(&self, task: &TaskSummary) -> Remembered {
        match Whose::of(task) {
            Some(whose) => self.memory.recipient().send(MakeReady(whose)).await.unwrap_or_default(),
            None => Remembered::default(),
        }
    }

    async fn read_context(&self, begin: &Begin) -> ReadContext {
        match begin.config.read_context {
            false => ReadContext::none(
                "the main conversation was not read: reading it is off in the configuration",
            ),
            true => {
                let read = context::read(&self.sessions, begin.main.as_ref());
                timeout(self.real(START_LIMIT), read).await.unwrap_or_else(|_| {
                    ReadContext::none("the main conversation was not read: that took more than 30 s")
                })
            }
        }
    }

    async fn start_agent(
        &self,
        begin: &Begin,
        policy: &SandboxPolicy,
        tools: Vec<String>,
        (agent_dir, turns): (Option<PathBuf>, u64),
        context: &ReadContext,
        events: Recipient<AgentEvent>,
    ) -> Result<ReadyAgent, Unready> {
        let mode = match begin.config.allow_writes {
            true => SandboxMode::WorkspaceWrite,
            false => SandboxMode::ReadOnly,
        };
        let start = StartAgent {
            task_id: self.task_id.clone(),
            session_id: begin.task.session_id.clone(),
            preset: self.preset.id.clone(),
            model: begin.task.model.clone(),
            policy: policy.clone(),
            mode,
            system_prompt: system_prompt(&Surroundings { policy, mode, tools: &tools, context }),
            tools,
            agent_dir,
            resume: begin.resume,
            turns,
            events,
        };
        match timeout(self.real(START_LIMIT), self.backend(start)).await {
            Ok(Some(ready)) => Ok(ready?),
            Ok(None) => Err(AgentError::Failed("who runs it is stopping".to_owned()).into()),
            Err(_) => Err(Unready::Slow),
        }
    }

    /// Tells the core what the agent is like. Returns the task after that.
    async fn tell_ready(
        &self,
        begin: &Begin,
        agent: &ReadyAgent,
    ) -> Result<(TaskSummary, Vec<String>), Unready> {
        let mut check = agent.check.clone();
        if check.at == 0 {
            check.at = self.now();
        }
        let holds = holds(&check, begin.config.sandbox_probe_mode);
        let note = check.note.clone();
        let (task_id, lease_id) = (self.task_id.clone(), self.lease.clone());
        let task = self.ask(TaskSetSandboxCheck { task_id, lease_id, check }).await?.task;
        // The core has failed the task already, unless it had ended; its configuration may be newer.
        if !holds || (task.status == TaskStatus::Failed && !begin.resume) {
            let why = [note, task.error].into_iter().find(|text| !text.is_empty());
            let why = why.unwrap_or_else(|| "it is not proven to hold".to_owned());
            return Err(Unready::Sandbox { why, known: !task.status.is_active() });
        }
        let tools = told_tools(&agent.tools);
        if tools.is_empty() {
            return Ok((task, tools));
        }
        let (task_id, lease_id) = (self.task_id.clone(), self.lease.clone());
        let request = TaskSetAvailableTools { task_id, lease_id, tools: tools.clone() };
        Ok((self.ask(request).await?.task, tools))
    }

    /// Ends the agent. A backend that is gone has taken its agents along.
    pub(super) async fn dispose(&self) {
        self.backend(DisposeAgent { task_id: self.task_id.clone() }).await;
    }

    /// Asks who runs the agent; nothing if it is gone.
    pub(super) async fn backend<M>(&self, message: M) -> Option<M::Result>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        AgentBackend: Carries<M>,
    {
        self.preset.backend.recipient().send(message).await.ok()
    }
}

/// The tools as the core takes them: the first 256, each once.
pub(super) fn told_tools(tools: &[String]) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for tool in tools {
        if told.len() < MAX_TOOLS && !told.contains(tool) {
            told.push(tool.clone());
        }
    }
    told
}

/// Whether an agent in a sandbox with such a verdict may be told anything (spec §4, `sandboxProbeMode`).
fn holds(check: &SandboxCheck, mode: SandboxProbeMode) -> bool {
    match check.probe {
        Probe::Denied | Probe::SkippedNoParent => true,
        Probe::Allowed => false,
        Probe::Ambiguous | Probe::Failed => mode == SandboxProbeMode::Warn,
    }
}

fn sandbox_note(check: &SandboxCheck) -> String {
    match check.note.as_str() {
        "" => String::new(),
        note => format!("sandbox: {note}"),
    }
}
