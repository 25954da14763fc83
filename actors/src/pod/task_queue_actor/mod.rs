//! The owner of tasks, queue and database: carries out one request after another in memory, makes what they changed
//! durable many at a time, and answers then.

mod batch;
mod lifecycle;
mod time;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use actix::fut;
use actix::prelude::*;
use cofferdam_protocol::pod::Diagnostic;
use cofferdam_storage::pod::PodDb;
use tokio::task::spawn_blocking;

use super::Parts;
use super::call::{Call, Reply};
use super::deadline_ticker::Ticker;
use super::failure::Refusal;
use super::lease_actor::Leases;
use super::messages::{AcquireLease, Heartbeat, ReleaseLease};
use super::queue::Queue;
use super::queue::verbs::{Claim, Look, Site, Verb};
use crate::mailbox::Carries;
use batch::{Entry, Undo};

/// How many requests may wait.
const MAILBOX: usize = 1024;

/// The actor. See the module.
pub(super) struct TaskQueueActor {
    parts: Parts,
    leases: Leases,
    ticker: Ticker,
    state: State,
    diagnostics: VecDeque<Diagnostic>,
    /// Monotonic.
    started: Duration,
}

enum State {
    /// Before `initialize`.
    Closed,
    Open(Box<Open>),
    /// After `shutdown`.
    Stopped,
}

/// What there is between `initialize` and `shutdown`.
struct Open {
    db_path: String,
    log_path: String,
    site: Site,
    /// As it will be when everything in `pending`, and in the commit under way, is durable.
    queue: Queue,
    /// Why `queue` is not to be trusted and has to be loaded again, if it has to.
    stale: Option<String>,
    /// Not here while a commit is under way.
    db: Option<PodDb>,
    /// Carried out in memory, waiting for the commit under way.
    pending: VecDeque<Entry>,
    /// Of requests that were lost; carried out when memory is loaded again.
    undo: Vec<Undo>,
    /// Answered when everything is durable and the database is closed.
    closing: Vec<Reply<cofferdam_protocol::pod::Done>>,
}

impl TaskQueueActor {
    pub(super) fn new(parts: Parts, leases: Leases, ticker: Ticker) -> Self {
        let started = parts.clock.monotonic();
        Self { parts, leases, ticker, state: State::Closed, diagnostics: VecDeque::new(), started }
    }

    /// Wall time in milliseconds since the epoch.
    fn now(&self) -> i64 {
        self.parts.clock.wall().0 / 1_000_000
    }

    /// What requests work on, if they can.
    fn open(&mut self) -> Result<&mut Open, Refusal> {
        match &mut self.state {
            State::Closed => Err(Refusal::NotInitialized),
            State::Open(open) if open.closing.is_empty() => Ok(open),
            State::Open(_) | State::Stopped => Err(Refusal::Stopping),
        }
    }

    /// Carries a request out in memory and puts its answer behind those that wait.
    fn carry_out<V: Verb>(
        &mut self,
        request: V,
        found: V::Found,
        reply: Reply<V::Result>,
        ctx: &mut Context<Self>,
    ) {
        let at = self.now();
        let open = match self.open() {
            Ok(open) => open,
            Err(refusal) => return reply.send(Err(refusal.into())),
        };
        let queue = &mut open.queue;
        let applied = catch_unwind(AssertUnwindSafe(|| {
            let outcome = request.apply(queue, at, found)?;
            queue.fill_slots(at)?;
            Ok::<_, Refusal>((outcome, queue.finish()))
        }));
        let entry = match applied {
            Ok(Ok((outcome, effects))) => {
                for (task, lease) in effects.leased.iter().cloned() {
                    self.leases.recipient().do_send(AcquireLease { task, lease });
                }
                for task in effects.released.iter().cloned() {
                    self.leases.recipient().do_send(ReleaseLease { task });
                }
                Entry::of(outcome, effects, reply)
            }
            Ok(Err(refusal)) => {
                debug_assert!(queue.is_settled(), "{} refused and changed something", V::NAME);
                Entry::refused(refusal, reply)
            }
            Err(_) => {
                tracing::error!(method = V::NAME, "a request panicked");
                open.stale = Some("a request panicked".to_owned());
                Entry::refused(Refusal::Panicked, reply)
            }
        };
        self.enqueue(entry, ctx);
    }

    /// Puts a refusal behind the answers that wait.
    fn refuse<T: Send + 'static>(&mut self, refusal: Refusal, reply: Reply<T>, ctx: &mut Context<Self>) {
        self.enqueue(Entry::refused(refusal, reply), ctx);
    }
}

impl Actor for TaskQueueActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

impl<V: Verb> Handler<Call<V>> for TaskQueueActor {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, Call { request, reply }: Call<V>, ctx: &mut Context<Self>) -> Self::Result {
        let nothing_more = || AtomicResponse::new(Box::pin(fut::ready(())));
        let open = match self.open() {
            Ok(open) => open,
            Err(refusal) => {
                reply.send(Err(refusal.into()));
                return nothing_more();
            }
        };
        if let Err(refusal) = request.admit(&open.queue) {
            self.refuse(refusal, reply, ctx);
            return nothing_more();
        }
        let job = match (request.look(&open.queue, &open.site), request.claim()) {
            (Look::Ready(found), None) => {
                self.carry_out(request, found, reply, ctx);
                return nothing_more();
            }
            job => job,
        };
        let leases = self.leases.clone();
        let work = async move {
            let (look, claim) = job;
            if let Some(claim) = claim {
                take(&leases, claim).await?;
            }
            match look {
                Look::Ready(found) => Ok(found),
                // Only a panic or a runtime that shuts down keeps a blocking task from ending.
                Look::Blocking(job) => spawn_blocking(job).await.map_err(|_| Refusal::Panicked),
            }
        };
        AtomicResponse::new(Box::pin(work.into_actor(self).map(|found, actor, ctx| match found {
            Ok(found) => actor.carry_out(request, found, reply, ctx),
            Err(refusal) => actor.refuse(refusal, reply, ctx),
        })))
    }
}

/// Asks for what a request needs of leases.
async fn take(leases: &Leases, claim: Claim) -> Result<(), Refusal> {
    match claim {
        Claim::Holds(task, lease) => match leases.recipient().send(Heartbeat { task, lease }).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::StaleLease),
            Err(_) => Err(Refusal::Stopping),
        },
        Claim::Takes(task, lease) => match leases.recipient().send(AcquireLease { task, lease }).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(left)) => Err(Refusal::Busy {
                message: "another lease holds the task and was heard of less than 30 s ago".to_owned(),
                retry_after_ms: u64::try_from(left.as_millis()).ok(),
            }),
            Err(_) => Err(Refusal::Stopping),
        },
    }
}
