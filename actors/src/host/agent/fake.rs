//! A scripted agent, for tests of the host and of what is built on it: what it is told is the script of its turn, one step a
//! line. Not in a release build.
//!
//! | step | what the agent does |
//! |---|---|
//! | `say TEXT`, or a line that is no step | says it |
//! | `think TEXT` | thinks it |
//! | `prompt` | says what it was told about its surroundings |
//! | `tools A,B` | has these tools |
//! | `tool NAME INPUT` | calls a tool |
//! | `write PATH TEXT` | calls `write`, and writes a file below the task's directory, if it may |
//! | `sleep MS` | waits |
//! | `hold` | does nothing until it is cancelled |
//! | `stubborn` | minds no cancellation from now on, until it is disposed of |
//! | `end REASON ERROR` | ends the turn so; without this step it ends `completed` |
//! | `die MESSAGE` | is gone |

mod script;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use actix::prelude::{
    Actor, ActorFutureExt, AsyncContext, Context, Handler, Recipient, ResponseFuture, SpawnHandle, WrapFuture,
};
use cofferdam_protocol::pod::{Probe, SandboxCheck, SandboxMode};
use tokio::sync::watch;

use self::script::{Cue, End, Stage};
use super::{
    AgentBackend, AgentError, AgentEvent, CancelTurn, DisposeAgent, FollowUpAgent, Preset, ReadyAgent,
    StartAgent,
};

/// The preset of an agent that can be resumed.
const FAKE: &str = "fake";
/// The preset of one that cannot.
const FORGETFUL: &str = "fake-forgetful";
/// The preset of one that is broken.
const BROKEN: &str = "fake-broken";

/// The scripted backend.
#[derive(Debug)]
pub struct FakeBackend {
    faster: u32,
    start: Start,
    agents: HashMap<String, Agent>,
}

/// What becomes of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// The agent is ready at once, in a sandbox with this verdict.
    Ready(Probe),
    /// There is an error.
    Fails(AgentError),
    /// It is never ready.
    Hangs,
}

#[derive(Debug)]
struct Agent {
    stage: Stage,
    events: Recipient<AgentEvent>,
    /// The number of its next turn.
    next: u64,
    turn: Option<Turn>,
}

#[derive(Debug)]
struct Turn {
    work: SpawnHandle,
    /// Says that the turn is cancelled.
    cancel: watch::Sender<bool>,
}

/// Starts the backend in the running actix system. Its presets, the first of which is called `fake`, need no tools.
pub fn start(faster: u32) -> Vec<Preset> {
    presets(FakeBackend::new(faster, Start::Ready(Probe::Denied)).start().into())
}

/// The same, with starts that go as they are told to: for tests of what is done then.
pub fn start_so(start: Start) -> Vec<Preset> {
    presets(FakeBackend::new(1, start).start().into())
}

fn presets(backend: AgentBackend) -> Vec<Preset> {
    let preset = |id: &str, name: &str, broken: Option<&str>| Preset {
        id: id.to_owned(),
        name: name.to_owned(),
        broken: broken.map(str::to_owned),
        needs: Vec::new(),
        resumable: id == FAKE,
        backend: backend.clone(),
    };
    vec![
        preset(FAKE, "scripted agent", None),
        preset(FORGETFUL, "scripted agent that cannot be resumed", None),
        preset(BROKEN, "scripted agent that is broken", Some("it is there to show what is broken")),
    ]
}

impl FakeBackend {
    fn new(faster: u32, start: Start) -> Self {
        Self { faster, start, agents: HashMap::new() }
    }

    /// The turn is over; what it ends with is said last.
    fn ended(&mut self, task_id: &str, end: End, ctx: &mut Context<Self>) {
        let Some(agent) = self.agents.get_mut(task_id) else { return };
        agent.turn = None;
        let turn = agent.next - 1;
        let gone = matches!(end, End::Gone { .. });
        let event = match end {
            End::Turn { reason, error } => AgentEvent::TurnEnded { turn, reason, error },
            End::Gone { message } => AgentEvent::Gone { message },
        };
        // Whoever listens does not wait for anybody, so there is room soon.
        let said = agent.events.send(event);
        if gone {
            self.agents.remove(task_id);
        }
        ctx.spawn(said.into_actor(self).map(|_, _, _| ()));
    }
}

impl Actor for FakeBackend {
    type Context = Context<Self>;
}

impl Handler<StartAgent> for FakeBackend {
    type Result = ResponseFuture<Result<ReadyAgent, AgentError>>;

    fn handle(&mut self, start: StartAgent, _: &mut Context<Self>) -> Self::Result {
        let refused = match &self.start {
            Start::Hangs => return Box::pin(std::future::pending()),
            Start::Fails(error) => Some(error.clone()),
            Start::Ready(_) if start.preset == BROKEN => Some(AgentError::Config("it is broken".to_owned())),
            Start::Ready(_) if start.resume && start.preset == FORGETFUL => {
                Some(AgentError::NotResumable("this agent remembers nothing".to_owned()))
            }
            Start::Ready(_) if self.agents.contains_key(&start.task_id) => {
                Some(AgentError::Failed("the task has an agent already".to_owned()))
            }
            Start::Ready(_) => None,
        };
        let probe = match (&self.start, refused) {
            (_, Some(error)) => return Box::pin(async { Err(error) }),
            (Start::Ready(probe), None) => *probe,
            (Start::Fails(_) | Start::Hangs, None) => Probe::Failed,
        };
        let ready = ReadyAgent { check: check(&start, probe), tools: start.tools.clone() };
        let stage = Stage {
            faster: self.faster,
            task_dir: start.policy.task_dir.into(),
            may_write: start.mode == SandboxMode::WorkspaceWrite
                && start.tools.iter().any(|tool| tool == "write"),
            system_prompt: start.system_prompt,
        };
        let agent = Agent { stage, events: start.events, next: start.turns + 1, turn: None };
        self.agents.insert(start.task_id, agent);
        Box::pin(async { Ok(ready) })
    }
}

fn check(start: &StartAgent, probe: Probe) -> SandboxCheck {
    SandboxCheck {
        mode: start.mode,
        root: start.policy.root.clone(),
        probe,
        fs_denied: probe == Probe::Denied,
        note: "the scripted agent writes nowhere but in the task's directory".to_owned(),
        at: 0,
    }
}

impl Handler<FollowUpAgent> for FakeBackend {
    type Result = Result<(), AgentError>;

    fn handle(
        &mut self,
        FollowUpAgent { task_id, prompt, .. }: FollowUpAgent,
        ctx: &mut Context<Self>,
    ) -> Self::Result {
        let agent = self.agents.get_mut(&task_id).ok_or(AgentError::Gone)?;
        if agent.turn.is_some() {
            return Err(AgentError::Busy);
        }
        let number = agent.next;
        agent.next += 1;
        let (cancel, cancelled) = watch::channel(false);
        let cue = Cue { turn: number, cancelled, events: agent.events.clone() };
        let play = agent.stage.clone().play(prompt, cue);
        let id = task_id.clone();
        let work = ctx.spawn(play.into_actor(self).map(move |end, actor, ctx| actor.ended(&id, end, ctx)));
        if let Some(agent) = self.agents.get_mut(&task_id) {
            agent.turn = Some(Turn { work, cancel });
        }
        Ok(())
    }
}

impl Handler<CancelTurn> for FakeBackend {
    type Result = ();

    fn handle(&mut self, CancelTurn { task_id, .. }: CancelTurn, _: &mut Context<Self>) {
        if let Some(turn) = self.agents.get(&task_id).and_then(|agent| agent.turn.as_ref()) {
            turn.cancel.send_replace(true);
        }
    }
}

impl Handler<DisposeAgent> for FakeBackend {
    type Result = ();

    fn handle(&mut self, DisposeAgent { task_id }: DisposeAgent, ctx: &mut Context<Self>) {
        if let Some(turn) = self.agents.remove(&task_id).and_then(|agent| agent.turn) {
            ctx.cancel_future(turn.work);
        }
    }
}

/// How long a step of so many milliseconds takes.
fn scaled(ms: u64, faster: u32) -> Duration {
    Duration::from_millis(ms) / faster.max(1)
}
