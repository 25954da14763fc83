//! A task that this host holds: one actor from the lease to the last turn of its agent.
//!
//! ```text
//!                                          +------ Tell -------+
//!                                          |                   v
//!   Waiting --Begin--> Preparing --ready--> Idle <--ended-- InTurn
//!      ^                   |                  |               |
//!      |                   |                  +--- agent gone-+--> Gone --Begin--> Preparing
//!      |                   |                  |               |     |
//!      +-------------------+--- Release, lease lost ----------+-----+--> Leaving (agent disposed) --> the end
//! ```
//!
//! - `state`: the picture as a type; `messages`: what comes and what is said;
//! - `begin`, `prepare`: from a slot to an agent that can be told something; `tell`: a turn begins; `slot`: none does;
//! - `agent`: what an agent does; `limits`: what ends its turn before it does;
//! - `core_line`: what the core is told, one thing after the other; `heartbeat`: that the lease is kept;
//! - `leave`: how it ends; `transcript`: what people are shown of it; `remember`: what is kept of a turn.
//!
//! A turn begins when what there is is kept: until then nothing is told to the agent, and a cancellation needs nobody.
//!
//! No handler waits: each changes the state at once, and what takes time comes back to the actor when it is done. So
//! heartbeats go on whatever the agent does.

mod agent;
mod begin;
mod core_line;
mod heartbeat;
mod leave;
mod limits;
mod messages;
mod prepare;
mod remember;
mod slot;
mod state;
mod tell;
#[cfg(test)]
mod tests;
mod transcript;

pub(super) use messages::*;
pub(super) use prepare::failed;
pub(super) use transcript::transcript_of;

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::{
    Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, MessageResult, Recipient, WrapFuture,
};
use cofferdam_protocol::host::EntryKind;
use cofferdam_protocol::pod::{LeaseId, LogLevel};
use cofferdam_storage::clock::Clock;
use tokio::sync::watch;

use self::core_line::CoreLine;
use self::state::{Facts, State};
use self::transcript::Entries;
use super::agent::{AgentBackend, Preset};
use super::core::PodCore;
use super::memory::{Heard, Memory};
use crate::Carries;
use crate::session::Sessions;

/// How often the holder of a task says that it lives (spec §5).
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long after a turn's time the host ends it itself (spec §5).
pub(super) const WATCHDOG: Duration = Duration::from_secs(30);
/// How long an agent may take to become ready, or to take what it is told.
pub(super) const START_LIMIT: Duration = Duration::from_secs(30);
/// How long an agent may take to end a turn that was cancelled, or to end itself.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How long an agent may take to clear what the program of a turn has left.
pub(super) const CLEARING: Duration = Duration::from_secs(70);

/// What a live task works with.
#[derive(Clone)]
pub(super) struct LiveParts {
    /// The task's id.
    pub(super) task_id: String,
    /// Who holds the task: this actor and nobody else.
    pub(super) lease: LeaseId,
    /// How its agent is run.
    pub(super) preset: Preset,
    /// The pod's state.
    pub(super) core: PodCore,
    /// The stored conversations.
    pub(super) sessions: Sessions,
    /// What is kept of tasks.
    pub(super) memory: Memory,
    /// What time it is.
    pub(super) clock: Arc<dyn Clock>,
    /// How many times faster than the machine's the clock's monotonic time runs.
    pub(super) faster: u32,
    /// Who hears what becomes of it.
    pub(super) notices: Recipient<LiveNotice>,
    /// Kept by the actor until it stops: what is waited for when everything is let go.
    pub(super) _held: watch::Receiver<()>,
}

impl LiveParts {
    /// How long a span of monotonic time takes on the machine's clock.
    fn real(&self, span: Duration) -> Duration {
        span / self.faster.max(1)
    }

    /// Milliseconds since the epoch.
    fn now(&self) -> i64 {
        self.clock.wall().0 / 1_000_000
    }

    fn notice(&self, what: LiveChange) -> LiveNotice {
        LiveNotice { task_id: self.task_id.clone(), lease: self.lease.0.clone(), what }
    }
}

/// The actor.
pub(super) struct LiveTask {
    parts: LiveParts,
    state: State,
    /// What is known of the task since `Begin`.
    facts: Facts,
    /// Whether there is an agent.
    live: bool,
    /// Whether there ever was one: then something of it may still be there.
    had_agent: bool,
    /// Whether it was resumed, and no turn has begun since.
    resumed: bool,
    /// What the core is told.
    line: CoreLine,
    /// Whether a heartbeat waits for its answer.
    beating: bool,
    entries: Entries,
    /// Whether the host missed the newest entry.
    missed: bool,
    /// What was heard of the turn that runs, or of one whose agent still has to end.
    heard: Option<Heard>,
    /// How many turns were to begin.
    turns: u64,
}

impl LiveTask {
    pub(super) fn new(parts: LiveParts) -> Self {
        Self {
            parts,
            state: State::Waiting { cancelled: false },
            facts: Facts::default(),
            live: false,
            had_agent: false,
            resumed: false,
            line: CoreLine::default(),
            beating: false,
            entries: Entries::default(),
            missed: false,
            heard: None,
            turns: 0,
        }
    }

    /// Writes something into the transcript, and tells the host. One that is too busy hears of it later, and can read it there.
    fn enter(&mut self, kind: EntryKind, text: &str) {
        let entry = self.entries.add(kind, text, self.parts.now());
        let missed = self.parts.notices.try_send(self.parts.notice(LiveChange::Entry(entry))).is_err();
        if missed && !self.missed {
            self.say(LiveChange::Missed);
        }
        self.missed = missed;
    }

    /// Says whether there is an agent, if that has changed.
    fn set_live(&mut self, live: bool) {
        if self.live != live {
            self.live = live;
            self.say(LiveChange::Agent { live });
        }
    }

    fn warn(&self, message: String) {
        self.say(LiveChange::Diagnostic { level: LogLevel::Warn, message });
    }

    /// Tells the host something that must not be lost, however busy it is. There is little of that.
    fn say(&self, what: LiveChange) {
        self.parts.notices.do_send(self.parts.notice(what));
    }

    /// Sends the agent's backend something whose answer says nothing.
    fn order<M>(&self, message: M, ctx: &mut Context<Self>)
    where
        M: Message<Result = ()> + Send + 'static,
        AgentBackend: Carries<M>,
    {
        let sent = self.parts.preset.backend.recipient().send(message);
        // A backend that is gone has taken its agents along.
        ctx.spawn(sent.into_actor(self).map(|_, _, _| ()));
    }
}

impl Actor for LiveTask {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.run_interval(self.parts.real(HEARTBEAT), |actor, ctx| actor.beat(ctx));
    }
}

impl Handler<ReadTranscript> for LiveTask {
    type Result = MessageResult<ReadTranscript>;

    fn handle(&mut self, ReadTranscript { from }: ReadTranscript, _: &mut Context<Self>) -> Self::Result {
        MessageResult(self.entries.read(from))
    }
}

impl Handler<Noted> for LiveTask {
    type Result = ();

    fn handle(&mut self, Noted(text): Noted, _: &mut Context<Self>) {
        self.enter(EntryKind::Note, &text);
    }
}
