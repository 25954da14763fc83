//! Where a live task is.

use std::collections::HashSet;
use std::time::Duration;

use actix::prelude::{ResponseFuture, SpawnHandle};
use cofferdam_protocol::pod::TaskSummary;
use tokio::sync::oneshot;

use super::messages::StillRunning;
use crate::host::failure::{HostFailure, HostRefusal};
use crate::host::memory::Whose;

/// Takes the answer to a request.
pub(super) type Answer<E> = oneshot::Sender<Result<(), E>>;

/// Waits for an answer that comes when something is done. If the actor stops before, it was refused.
pub(super) fn answered(
    answer: oneshot::Receiver<Result<(), HostFailure>>,
) -> ResponseFuture<Result<(), HostFailure>> {
    Box::pin(async move { answer.await.unwrap_or_else(|_| Err(HostRefusal::Unavailable.into())) })
}

/// Where a live task is.
pub(super) enum State {
    /// It has no agent yet: it waits for a slot.
    Waiting {
        /// Whether it was cancelled: then no agent is made ready.
        cancelled: bool,
    },
    /// An agent is made ready.
    Preparing(Preparing),
    /// There is an agent, and it waits to be told something.
    Idle,
    /// The agent is in a turn, or was told to begin one.
    InTurn(Turn),
    /// The agent is gone; the lease is kept, and another one can be had.
    Gone,
    /// Everything is let go.
    Leaving(Leaving),
}

/// What is known of the task.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// How long a turn may take.
    pub(super) timeout: Duration,
    /// The tools its agent may use.
    pub(super) tools: HashSet<String>,
    /// The number of the last turn that was seen, or how many there were before.
    pub(super) last_turn: u64,
    /// The tools that the core knows its agent to have.
    pub(super) available: Vec<String>,
    /// The task, for what is kept of it.
    pub(super) whose: Option<Whose>,
}

impl Facts {
    pub(super) fn of(task: &TaskSummary, tools: &[String], seen: u64) -> Self {
        Self {
            whose: Whose::of(task),
            timeout: Duration::from_millis(u64::try_from(task.timeout_ms).unwrap_or(0)),
            tools: tools.iter().cloned().collect(),
            last_turn: u64::try_from(task.turns).unwrap_or(0).max(seen),
            available: Vec::new(),
        }
    }
}

/// An agent that is made ready.
pub(super) struct Preparing {
    /// What does it.
    pub(super) work: SpawnHandle,
    /// Who waits for it.
    pub(super) reply: Answer<HostFailure>,
    /// Whether the task was only resumed: then its record is left alone.
    pub(super) resume: bool,
}

/// A turn.
#[derive(Debug)]
pub(super) struct Turn {
    /// The agent's number for it, once it is known.
    pub(super) number: Option<u64>,
    /// What the agent said last in it.
    pub(super) text: Option<String>,
    /// Why it was cancelled, if it was.
    pub(super) cancelled: Option<Cancelled>,
    /// What the agent did that the task does not allow: however it ends the turn, that is why it failed.
    pub(super) fault: Option<String>,
    /// Whether the core was told how it ended, though the agent has not ended it.
    pub(super) settled: bool,
    /// Whether its program has ended.
    pub(super) exited: bool,
    /// Goes off when the turn, or the agent's time to end it, is over.
    pub(super) limit: SpawnHandle,
    /// What there is is being kept still: the agent has not been told yet.
    pub(super) before: Option<Before>,
}

/// A turn whose agent has not been told yet.
#[derive(Debug)]
pub(super) struct Before {
    /// Which of the turns that were to begin it is.
    pub(super) serial: u64,
    /// Who waits for its beginning; nobody, if it is the task's first.
    pub(super) reply: Option<Answer<HostFailure>>,
}

impl Turn {
    /// One whose agent is to be told.
    pub(super) fn to_begin(limit: SpawnHandle, before: Before) -> Self {
        Self {
            number: None,
            text: None,
            cancelled: None,
            fault: None,
            settled: false,
            exited: false,
            limit,
            before: Some(before),
        }
    }
}

/// Why a turn was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cancelled {
    /// Somebody wanted it.
    Wanted,
    /// Its time was up.
    Late,
    /// The agent did what it may not.
    Guarded,
}

/// How a live task ends.
#[derive(Debug)]
pub(super) struct Leaving {
    /// Who waits for it.
    pub(super) waiting: Vec<Answer<StillRunning>>,
    /// Whether nothing of the agent runs any more.
    pub(super) agent_gone: bool,
}
