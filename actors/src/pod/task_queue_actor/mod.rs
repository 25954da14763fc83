//! The owner of tasks, queue and database: carries out one request after another in memory, makes what they changed
//! durable many at a time, and answers then.

mod batch;
mod exports;
mod later;
mod lifecycle;
#[cfg(test)]
mod tests;
mod time;

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actix::fut;
use actix::prelude::*;
use cofferdam_protocol::pod::{Diagnostic, TaskId};
use cofferdam_storage::pod::{PodDb, StillLocked};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::Parts;
use super::call::{Call, Reply};
use super::deadline_ticker::Ticker;
use super::failure::Refusal;
use super::lease_actor::Leases;
use super::messages::{AcquireLease, Acquired, Heartbeat, ReleaseLease};
use super::queue::verbs::{Claim, Facts, Look, Site, Undo, Verb};
use super::queue::{Effects, Queue};
use crate::mailbox::Carries;
use batch::Entry;

/// How many requests may wait.
const MAILBOX: usize = 1024;

/// The actor. See the module.
pub(super) struct TaskQueueActor {
    parts: Parts,
    leases: Leases,
    ticker: Ticker,
    state: State,
    /// The last ones, oldest first.
    diagnostics: VecDeque<Diagnostic>,
    /// The tasks whose last text was told a moment ago, and whether a newer one waits to be told.
    texts: HashMap<TaskId, bool>,
    /// For work on files.
    later_turns: Arc<Semaphore>,
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
    /// Whether a request is between being looked at and being carried out: `queue` is not replaced under it.
    preparing: bool,
    /// Not here while a commit is under way.
    db: Option<PodDb>,
    /// Carried out in memory, waiting for the commit under way.
    pending: VecDeque<Entry>,
    /// Was in a commit that failed; answered when `queue` is loaded again.
    lost: Vec<Entry>,
    /// `shutdown`, and what came after it: settled when everything is durable and the database is closed.
    closing: Vec<Entry>,
    /// How much work on files goes on, or waits to, beside the queue.
    later: usize,
    /// Whether `shutdown` has waited for that long enough.
    impatient: bool,
    /// Whether the host wants to know how far exports are.
    wants_progress: bool,
    /// For whoever writes files on behalf of the database, perhaps longer than it is open.
    locked: StillLocked,
}

impl Open {
    fn new(db_path: String, log_path: String, site: Site, queue: Queue, db: PodDb) -> Self {
        Self {
            db_path,
            log_path,
            site,
            queue,
            stale: None,
            preparing: false,
            locked: db.keep_locked(),
            db: Some(db),
            pending: VecDeque::new(),
            lost: Vec::new(),
            closing: Vec::new(),
            later: 0,
            impatient: false,
            wants_progress: false,
        }
    }

    /// Whether the database is to be closed as soon as everything is durable.
    fn may_close(&self) -> bool {
        !self.closing.is_empty() && (self.later == 0 || self.impatient)
    }

    /// The database and the log, if there is one.
    fn own_files(&self) -> Vec<PathBuf> {
        let files = [&self.db_path, &self.log_path].map(PathBuf::from);
        files.into_iter().filter(|path| path.is_absolute()).collect()
    }

    /// Changes memory, as far as that goes. `what` is for the log.
    fn work<T>(
        &mut self,
        what: &str,
        at: i64,
        change: impl FnOnce(&mut Queue, i64) -> Result<T, Refusal>,
    ) -> Result<(T, Effects), Refusal> {
        let queue = &mut self.queue;
        let done = catch_unwind(AssertUnwindSafe(|| {
            let done = change(queue, at)?;
            queue.fill_slots(at)?;
            Ok((done, queue.finish()))
        }));
        let done = done.unwrap_or(Err(Refusal::Panicked));
        if done.is_err() && (matches!(done, Err(Refusal::Panicked)) || !queue.is_settled()) {
            tracing::error!(what, "a request left memory half changed; it is loaded again");
            self.stale = Some(format!("{what} left memory half changed"));
        }
        done
    }
}

impl TaskQueueActor {
    pub(super) fn new(parts: Parts, leases: Leases, ticker: Ticker) -> Self {
        Self {
            started: parts.clock.monotonic(),
            parts,
            leases,
            ticker,
            state: State::Closed,
            diagnostics: VecDeque::new(),
            texts: HashMap::new(),
            later_turns: Arc::new(Semaphore::new(later::AT_A_TIME)),
        }
    }

    /// Wall time in milliseconds since the epoch.
    fn now(&self) -> i64 {
        self.parts.clock.wall().0 / 1_000_000
    }

    /// What requests work on, if they can.
    fn open(&mut self) -> Result<&mut Open, Refusal> {
        match &mut self.state {
            State::Closed => Err(Refusal::NotInitialized),
            State::Stopped => Err(Refusal::Stopping),
            State::Open(open) if !open.closing.is_empty() => Err(Refusal::Stopping),
            State::Open(open) => match &open.stale {
                Some(why) => Err(Refusal::NotSaved(why.clone())),
                None => Ok(open),
            },
        }
    }

    /// Changes memory, as far as that goes. `what` is for the log.
    fn work<T>(
        &mut self,
        what: &str,
        change: impl FnOnce(&mut Queue, i64) -> Result<T, Refusal>,
    ) -> Result<(T, Effects), Refusal> {
        let at = self.now();
        self.open()?.work(what, at, change)
    }

    /// What a request needs before it is carried out, unless it is refused at once.
    fn prepare<V: Verb>(&mut self, request: &V) -> Result<(Option<Claim>, Look<V::Found>), Refusal> {
        let open = self.open()?;
        let prepared = catch_unwind(AssertUnwindSafe(|| {
            request.admit(&open.queue)?;
            Ok((request.claim(), request.look(&open.queue, &open.site)))
        }));
        prepared.unwrap_or(Err(Refusal::Panicked))
    }

    /// Carries a request out in memory and puts its answer behind those that wait. `taken` is the task that was taken
    /// for it, if it was somebody else's or nobody's before.
    fn carry_out<V: Verb>(
        &mut self,
        request: V,
        found: V::Found,
        taken: Option<TaskId>,
        reply: Reply<V::Result>,
        ctx: &mut Context<Self>,
    ) {
        if let Err(refusal) = self.open() {
            // Memory was lost meanwhile, and with it what the disk was prepared for.
            return self.give_up(refusal, taken, V::discard(found), reply, ctx);
        }
        let facts = |at| Facts { at, taken: taken.is_some(), found };
        let entry = match self.work(V::NAME, |queue, at| request.apply(queue, facts(at))) {
            Ok((outcome, effects)) => {
                for (task, lease) in effects.leased.iter().cloned() {
                    // A task that is made now is no former one's of that name, whose deletion may still wait.
                    self.leases.recipient().do_send(ReleaseLease { task: task.clone() });
                    self.leases.recipient().do_send(AcquireLease { task, lease });
                }
                Entry::of(outcome, effects, reply).with_lease(taken)
            }
            Err(refusal) => return self.give_up(refusal, taken, None, reply, ctx),
        };
        self.enqueue(entry, ctx);
    }

    /// Refuses a request that a task was taken for, or the disk prepared.
    fn give_up<T: Send + 'static>(
        &mut self,
        refusal: Refusal,
        taken: Option<TaskId>,
        undo: Option<Undo>,
        reply: Reply<T>,
        ctx: &mut Context<Self>,
    ) {
        if let Some(task) = taken {
            self.leases.recipient().do_send(ReleaseLease { task });
        }
        self.enqueue(Entry::refused(refusal, reply).with_undo(undo), ctx);
    }

    /// Puts a refusal behind the answers that wait.
    fn refuse<T: Send + 'static>(&mut self, refusal: Refusal, reply: Reply<T>, ctx: &mut Context<Self>) {
        self.enqueue(Entry::refused(refusal, reply), ctx);
    }

    /// From here on memory stays what it is, though it may be known to be lost, until this is called with `false`.
    fn preparing(&mut self, whether: bool) {
        if let State::Open(open) = &mut self.state {
            open.preparing = whether;
        }
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
        let (claim, look) = match self.prepare(&request) {
            Ok((None, Look::Ready(found))) => {
                self.carry_out(request, found, None, reply, ctx);
                return nothing_more();
            }
            Ok(prepared) => prepared,
            Err(refusal) => {
                self.refuse(refusal, reply, ctx);
                return nothing_more();
            }
        };
        self.preparing(true);
        let leases = self.leases.clone();
        let work = async move {
            let taken = match claim {
                Some(claim) => take(&leases, claim).await?,
                None => None,
            };
            let found = match look {
                Look::Ready(found) => Ok(found),
                // Only a panic or a runtime that shuts down keeps a blocking task from ending.
                Look::Blocking(job) => spawn_blocking(job).await.map_err(|_| Refusal::Panicked),
            };
            Ok((found, taken))
        };
        AtomicResponse::new(Box::pin(work.into_actor(self).map(|prepared, actor, ctx| {
            actor.preparing(false);
            match prepared {
                Ok((Ok(found), taken)) => actor.carry_out(request, found, taken, reply, ctx),
                Ok((Err(refusal), taken)) => actor.give_up(refusal, taken, None, reply, ctx),
                Err(refusal) => actor.refuse(refusal, reply, ctx),
            }
        })))
    }
}

/// Asks for what a request needs of leases. Says which task was taken, if it was somebody else's or nobody's before.
async fn take(leases: &Leases, claim: Claim) -> Result<Option<TaskId>, Refusal> {
    match claim {
        Claim::Holds(task, lease) => match leases.recipient().send(Heartbeat { task, lease }).await {
            Ok(true) => Ok(None),
            Ok(false) => Err(Refusal::StaleLease),
            Err(_) => Err(Refusal::Stopping),
        },
        Claim::Takes(task, lease) => {
            match leases.recipient().send(AcquireLease { task: task.clone(), lease }).await {
                Ok(Ok(Acquired::Same)) => Ok(None),
                Ok(Ok(Acquired::Free | Acquired::TakenOver)) => Ok(Some(task)),
                Ok(Err(left)) => Err(Refusal::Busy {
                    message: "another lease holds the task and was heard of less than 30 s ago; \
                              go on with that one, or try again later"
                        .to_owned(),
                    retry_after_ms: u64::try_from(left.as_millis()).ok(),
                }),
                Err(_) => Err(Refusal::Stopping),
            }
        }
    }
}
