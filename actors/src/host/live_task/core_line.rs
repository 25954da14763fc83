//! What the core is told of an agent: one thing after the other, in the order in which it happened. What the next of its kind
//! makes old is left out, so that a core that takes long is not flooded.

use std::collections::VecDeque;
use std::mem::discriminant;
use std::time::Duration;

use actix::prelude::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use cofferdam_protocol::pod::{
    Method, PodErrorCode, TaskCancel, TaskSetAvailableTools, TaskSetError, TaskSetLastText, TaskSummary,
    TaskTurnEnded, TaskTurnStarted, cut,
};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::{LiveParts, LiveTask};
use crate::Carries;
use crate::pod::{Call, Failure, Pod};

/// How often something is tried that the core has no room for, or cannot save.
const TRIES: u32 = 30;
/// How long to wait in between.
const PAUSE: Duration = Duration::from_secs(1);

/// The most of an error that the core keeps, in UTF-16 units (spec §5).
const ERROR_CHARS: usize = 2000;

/// How long the core waits for what comes before the end of a turn.
const STORE_LIMIT: Duration = Duration::from_secs(10);

/// Something to be told.
#[derive(Debug)]
pub(super) enum Order {
    /// Nothing; but what follows is told when this is done.
    After(oneshot::Receiver<()>),
    /// A turn began.
    TurnStarted(u64),
    /// The agent said something.
    LastText(String),
    /// The agent has these tools.
    Tools(Vec<String>),
    /// A turn ended.
    TurnEnded(Ended),
    /// No turn begins for now; with who hears what the task is then.
    GiveBack(Option<oneshot::Sender<Box<TaskSummary>>>),
    /// The agent could not be had.
    Error {
        /// What kind.
        code: String,
        /// For people.
        message: String,
    },
}

/// How a turn ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Which.
    pub(super) turn: u64,
    /// Why, in the words of spec §5 or the agent's own.
    pub(super) reason: String,
    /// Whether its time was up.
    pub(super) timed_out: bool,
    /// What the agent said last in it.
    pub(super) last_text: Option<String>,
    /// What went wrong; empty if nothing did.
    pub(super) error: String,
}

/// What waits to be told.
#[derive(Debug, Default)]
pub(super) struct CoreLine {
    waiting: VecDeque<Order>,
    /// Whether something is being told.
    busy: bool,
    /// Whether nothing can be told any more.
    closed: bool,
    /// Whether nobody waits for what is left.
    given_up: bool,
}

impl CoreLine {
    /// Puts something at the end. Of texts and tools the latest between the same two turns counts.
    fn put(&mut self, order: Order) {
        if self.closed {
            return;
        }
        if matches!(order, Order::LastText(_) | Order::Tools(_)) {
            let recent = self.waiting.iter_mut().rev();
            let mut recent = recent.take_while(|order| matches!(order, Order::LastText(_) | Order::Tools(_)));
            if let Some(older) = recent.find(|older| discriminant(*older) == discriminant(&order)) {
                *older = order;
                return;
            }
        }
        // The end of a turn says what was said last.
        if matches!(order, Order::TurnEnded(_)) {
            let after = |order: &Order| matches!(order, Order::After(_));
            let last = self.waiting.iter().rposition(|order| !after(order));
            if let Some(at) = last.filter(|at| matches!(self.waiting[*at], Order::LastText(_))) {
                self.waiting.remove(at);
            }
        }
        self.waiting.push_back(order);
    }

    fn next(&mut self) -> Option<Order> {
        if self.busy {
            return None;
        }
        let next = self.waiting.pop_front();
        self.busy = next.is_some();
        next
    }

    /// Whether everything is told, or nothing can be.
    pub(super) fn is_done(&self) -> bool {
        self.closed || self.given_up || (!self.busy && self.waiting.is_empty())
    }

    /// Waits no longer for what is left.
    pub(super) fn give_up(&mut self) {
        self.given_up = true;
    }

    /// Tells nothing any more.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.waiting.clear();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }
}

/// Whether the task is somebody else's now, or nobody's.
pub(super) fn is_lost(failure: &Failure) -> bool {
    matches!(failure.code, PodErrorCode::StaleLease | PodErrorCode::TaskNotFound)
}

/// Whether the same can be asked again soon. A core that took its time without an answer would take it again.
fn is_passing(failure: &Failure) -> bool {
    matches!(failure.code, PodErrorCode::CoreUnavailable | PodErrorCode::DbError)
        && failure.data["reason"] != "TIMEOUT"
}

impl LiveTask {
    /// Tells the core something, after everything before it.
    pub(super) fn tell_core(&mut self, order: Order, ctx: &mut Context<Self>) {
        if matches!(order, Order::TurnStarted(_) | Order::GiveBack(_)) {
            self.resumed = false;
        }
        self.line.put(order);
        self.tell_next(ctx);
    }

    fn tell_next(&mut self, ctx: &mut Context<Self>) {
        let Some(order) = self.line.next() else { return };
        let parts = self.parts.clone();
        let told = async move { parts.deliver(order).await };
        ctx.spawn(told.into_actor(self).map(|told, actor, ctx| {
            actor.line.busy = false;
            match told {
                Ok(()) => {}
                Err(failure) if is_lost(&failure) => actor.lose(ctx),
                Err(failure) if !actor.line.closed => actor.warn(format!(
                    "the state of task {} may be behind what its agent does: {failure}",
                    actor.parts.task_id
                )),
                Err(_) => {}
            }
            actor.tell_next(ctx);
            actor.leave_if_over(ctx);
        }));
    }
}

impl LiveParts {
    /// Asks the core something; tries again while it has no room, or cannot save what changes. Everything that a live task
    /// asks can be asked twice.
    pub(super) async fn ask<M: Method + Clone>(&self, request: M) -> Result<M::Result, Failure>
    where
        Pod: Carries<Call<M>>,
    {
        for _ in 1..TRIES {
            match self.core.pod.ask(request.clone()).await {
                Err(failure) if is_passing(&failure) => {
                    sleep(self.real(PAUSE)).await;
                }
                answer => return answer,
            }
        }
        self.core.pod.ask(request).await
    }

    async fn deliver(&self, order: Order) -> Result<(), Failure> {
        let (task_id, lease_id) = (self.task_id.clone(), self.lease.clone());
        match order {
            // Done, given up, or too slow: the core is told all the same.
            Order::After(done) => {
                let _ = timeout(self.real(STORE_LIMIT), done).await;
                Ok(())
            }
            Order::TurnStarted(turn) => self.ask(TaskTurnStarted { task_id, lease_id, turn }).await.map(drop),
            Order::LastText(text) => self.ask(TaskSetLastText { task_id, lease_id, text }).await.map(drop),
            Order::Tools(tools) => {
                self.ask(TaskSetAvailableTools { task_id, lease_id, tools }).await.map(drop)
            }
            Order::TurnEnded(ended) => self.end_turn(ended).await,
            // Of a task that was only resumed nothing runs, and the core makes it what it was (G33).
            Order::GiveBack(reply) => {
                let task = self.ask(TaskCancel { task_id }).await?.task;
                if let Some(reply) = reply {
                    let _ = reply.send(Box::new(task));
                }
                Ok(())
            }
            Order::Error { code, message } => self.set_error(code, &message).await,
        }
    }

    /// Tells what went wrong, as much of it as the core keeps: an agent's own words can be longer than any request.
    async fn set_error(&self, code: String, message: &str) -> Result<(), Failure> {
        let (task_id, lease_id) = (self.task_id.clone(), self.lease.clone());
        let message = cut(message, ERROR_CHARS).to_owned();
        self.ask(TaskSetError { task_id, lease_id, code, message }).await.map(drop)
    }

    /// Tells what went wrong, unless that was only that its time was up, and then how the turn ended: whoever hears that a task
    /// has failed hears why. That it ended is told also if the core does not take why.
    async fn end_turn(&self, ended: Ended) -> Result<(), Failure> {
        let Ended { turn, reason, timed_out, last_text, error } = ended;
        let why = match !timed_out && !error.is_empty() && is_failure(&reason) {
            true => self.set_error(reason.clone(), &error).await,
            false => Ok(()),
        };
        if why.as_ref().is_err_and(is_lost) {
            return why;
        }
        let (task_id, lease_id) = (self.task_id.clone(), self.lease.clone());
        let request = TaskTurnEnded { task_id, lease_id, turn, reason: Some(reason), timed_out, last_text };
        self.ask(request).await?;
        why
    }
}

/// Whether a turn that ends for this reason has failed (spec §5); agents' own reasons are failures.
fn is_failure(reason: &str) -> bool {
    !matches!(reason, "completed" | "max-tokens" | "forked" | "aborted" | "interrupted")
}
