//! Group commit: while one transaction is being made durable, requests go on in memory; what they changed is the next
//! transaction. A transaction that fails takes with it everything that was carried out on top of it.

use std::collections::{HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use actix::prelude::*;
use cofferdam_protocol::pod::{LogLevel, PodEvent, TaskId};
use cofferdam_storage::pod::{Change, PodDb};
use tokio::task::spawn_blocking;

use super::{State, TaskQueueActor};
use crate::mailbox::Carries;
use crate::pod::call::Reply;
use crate::pod::failure::{Failure, Refusal};
use crate::pod::messages::{DisarmDeadline, ReleaseLease};
use crate::pod::queue::verbs::{Outcome, Undo};
use crate::pod::queue::{Effects, Queue, TimerChange};

/// How many moves in the queue the entries that wait may tell before the older ones of a task are left out.
pub(super) const MOST_MOVES: usize = 1024;

type Job = Box<dyn FnOnce(&mut PodDb) + Send>;
type Settle = Box<dyn FnOnce(Result<(), Failure>, &mut TaskQueueActor, &mut Context<TaskQueueActor>)>;

/// A request that was carried out in memory, or refused.
pub(super) struct Entry {
    effects: Effects,
    /// The configuration's, if that changed.
    log_level: Option<LogLevel>,
    /// Tasks that are held from now on, but by nobody if this is not made durable.
    leased: Vec<TaskId>,
    /// Runs when everything before it is durable; a transaction ends with it.
    read: Option<Job>,
    /// Answers: with what it has, or with why nothing is durable.
    settle: Settle,
    /// Takes back on the disk what was done there, if nothing is durable.
    undo: Option<Undo>,
}

impl Entry {
    fn new(
        effects: Effects,
        settle: impl FnOnce(Result<(), Failure>, &mut TaskQueueActor, &mut Context<TaskQueueActor>) + 'static,
    ) -> Self {
        let log_level = effects.changes.iter().find_map(|change| match change {
            Change::PutConfig(config) => Some(config.log_level),
            _ => None,
        });
        let leased = effects.leased.iter().map(|(task, _)| task.clone()).collect();
        Self { effects, log_level, leased, read: None, settle: Box::new(settle), undo: None }
    }

    /// A request that was carried out.
    pub(super) fn of<T: Send + 'static>(outcome: Outcome<T>, effects: Effects, reply: Reply<T>) -> Self {
        let (done, undo) = match outcome {
            Outcome::Done(done) => (done, None),
            Outcome::DoneOrUndo(done, undo) => (done, Some(undo)),
            Outcome::Later(later) => {
                return Self::new(effects, move |saved, actor, ctx| match saved {
                    Ok(()) => actor.begin(later, reply, ctx),
                    Err(failure) => {
                        if let State::Open(open) = &mut actor.state {
                            later.holds.iter().for_each(|task| open.queue.let_go(task));
                        }
                        reply.send(Err(failure));
                    }
                });
            }
            Outcome::Read(read) => {
                return Self::reading(effects, read, |found, saved, _| {
                    reply.send(match (saved, found) {
                        (Err(failure), _) => Err(failure),
                        (Ok(()), Some(found)) => found.map_err(Failure::from),
                        (Ok(()), None) => Err(Refusal::Panicked.into()),
                    });
                });
            }
        };
        let settle = move |saved: Result<(), Failure>, _: &mut _, _: &mut _| reply.send(saved.map(|()| done));
        Self { undo, ..Self::new(effects, settle) }
    }

    /// A request that asks the database, too. `answer` is given what that said, unless it could not be asked.
    pub(super) fn reading<T: Send + 'static>(
        effects: Effects,
        read: impl FnOnce(&mut PodDb) -> T + Send + 'static,
        answer: impl FnOnce(Option<T>, Result<(), Failure>, &mut TaskQueueActor) + 'static,
    ) -> Self {
        let slot = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&slot);
        let read: Job = Box::new(move |db| {
            let found = read(db);
            *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        });
        let settle = move |saved: Result<(), Failure>, actor: &mut TaskQueueActor, _: &mut _| {
            let found = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            answer(found, saved, actor);
        };
        Self { read: Some(read), ..Self::new(effects, settle) }
    }

    /// A request that was refused because of what is in memory, or panicked: if memory is lost, so is the reason.
    pub(super) fn refused<T: Send + 'static>(refusal: Refusal, reply: Reply<T>) -> Self {
        if matches!(refusal, Refusal::Panicked) {
            return Self::certain(Err(refusal), reply);
        }
        Self::new(Effects::default(), move |saved, _, _| {
            reply.send(saved.and_then(|()| Err(refusal.into())));
        })
    }

    /// An answer that is right whatever becomes of memory.
    pub(super) fn certain<T: Send + 'static>(answer: Result<T, Refusal>, reply: Reply<T>) -> Self {
        Self::new(Effects::default(), move |_, _, _| reply.send(answer.map_err(Failure::from)))
    }

    /// Something that nobody asked for. `settled` is called with whether it is durable.
    pub(super) fn unasked(
        effects: Effects,
        settled: impl FnOnce(Result<(), Failure>, &mut TaskQueueActor, &mut Context<TaskQueueActor>) + 'static,
    ) -> Self {
        Self::new(effects, settled)
    }

    /// A lease was taken for it.
    pub(super) fn with_lease(mut self, taken: Option<TaskId>) -> Self {
        self.leased.extend(taken);
        self
    }

    /// Something was done on the disk for it.
    pub(super) fn with_undo(self, undo: Option<Undo>) -> Self {
        Self { undo, ..self }
    }

    fn needs_the_database(&self) -> bool {
        self.read.is_some() || !self.effects.changes.is_empty()
    }
}

impl TaskQueueActor {
    /// Puts an entry behind those that wait.
    pub(super) fn enqueue(&mut self, entry: Entry, ctx: &mut Context<Self>) {
        match &mut self.state {
            State::Open(open) if open.closing.is_empty() => {
                forget_moves(&mut open.pending, &entry);
                open.pending.push_back(entry);
            }
            State::Open(open) => open.closing.push(entry),
            State::Closed | State::Stopped => return self.settle(entry, ctx),
        }
        self.flush(ctx);
    }

    /// Settles what needs no database, and begins the next transaction, unless one is under way.
    pub(super) fn flush(&mut self, ctx: &mut Context<Self>) {
        loop {
            let State::Open(open) = &mut self.state else { return };
            if open.db.is_none() {
                return;
            }
            if open.stale.is_some() {
                // A request that is being prepared leads here again.
                if !open.preparing {
                    self.reload(ctx);
                }
                return;
            }
            match open.pending.pop_front_if(|entry| !entry.needs_the_database()) {
                Some(entry) => self.settle(entry, ctx),
                None if !open.pending.is_empty() => return self.commit(ctx),
                None if open.may_close() => return self.close(ctx),
                None => return,
            }
        }
    }

    /// Makes durable what waits, up to the first that reads.
    fn commit(&mut self, ctx: &mut Context<Self>) {
        let State::Open(open) = &mut self.state else { return };
        let Some(mut db) = open.db.take() else { return };
        let (mut batch, mut changes, mut read) = (Vec::new(), Vec::<Change>::new(), None);
        while read.is_none()
            && let Some(mut entry) = open.pending.pop_front()
        {
            changes.append(&mut entry.effects.changes);
            read = entry.read.take();
            batch.push(entry);
        }
        let work = spawn_blocking(move || {
            let saved = catch_unwind(AssertUnwindSafe(|| match changes.is_empty() {
                true => Ok(()),
                false => db.commit(&changes).map_err(|error| error.to_string()),
            }))
            .unwrap_or_else(|_| Err("the database's thread panicked".to_owned()));
            if let (Ok(()), Some(read)) = (&saved, read) {
                // One that panics leaves no answer, and takes nothing with it: the changes are durable.
                drop(catch_unwind(AssertUnwindSafe(|| read(&mut db))));
            }
            (db, saved)
        });
        let work = async move { (work.await, batch) }.into_actor(self);
        ctx.spawn(work.map(|(ended, batch), actor, ctx| match ended {
            Ok((db, saved)) => actor.committed(db, saved, batch, ctx),
            // Only a runtime that shuts down keeps a blocking task from ending. Whoever waits is answered by that.
            Err(_) => actor.state = State::Stopped,
        }));
    }

    fn committed(
        &mut self,
        db: PodDb,
        saved: Result<(), String>,
        batch: Vec<Entry>,
        ctx: &mut Context<Self>,
    ) {
        let State::Open(open) = &mut self.state else { return };
        open.db = Some(db);
        match saved {
            Ok(()) => batch.into_iter().for_each(|entry| self.settle(entry, ctx)),
            Err(why) => {
                tracing::error!(error = why, "changes could not be saved");
                open.lost = batch;
                open.stale = Some(why.clone());
                self.diagnose(LogLevel::Error, format!("changes could not be saved: {why}"));
            }
        }
        self.flush(ctx);
    }

    /// Answers, and lets the world know.
    pub(super) fn settle(&mut self, entry: Entry, ctx: &mut Context<Self>) {
        let Effects { changed, moved, events, texts, timers, released, .. } = entry.effects;
        (entry.settle)(Ok(()), self, ctx);
        changed.into_iter().chain(moved).chain(events).for_each(|event| self.emit(event));
        texts.into_iter().for_each(|task| self.text_changed(task));
        let ticker = &self.ticker;
        for change in timers {
            match change {
                TimerChange::Arm(arm) => ticker.recipient().do_send(arm),
                TimerChange::Disarm(task, deadline) => {
                    ticker.recipient().do_send(DisarmDeadline { task, deadline: Some(deadline) });
                }
                TimerChange::DisarmAll(task) => {
                    ticker.recipient().do_send(DisarmDeadline { task, deadline: None });
                }
            }
        }
        if let State::Open(open) = &self.state {
            // By now the id may be another task's.
            for task in released.into_iter().filter(|task| open.queue.task(task.as_str()).is_err()) {
                self.leases.recipient().do_send(ReleaseLease { task });
            }
        }
        if let Some(level) = entry.log_level {
            self.parts.logs.set_level(level);
        }
    }

    /// Brings memory, and the disk, back to what is durable, while every message waits; answers those whose work is lost
    /// by that: what was not saved, and what was carried out on top of it.
    fn reload(&mut self, ctx: &mut Context<Self>) {
        let State::Open(open) = &mut self.state else { return };
        let (Some(mut db), Some(why)) = (open.db.take(), open.stale.clone()) else { return };
        let mut lost = std::mem::take(&mut open.lost);
        lost.extend(open.pending.drain(..));
        let undo: Vec<Undo> = lost.iter_mut().filter_map(|entry| entry.undo.take()).collect();
        let closing = !open.closing.is_empty();
        let work = spawn_blocking(move || {
            let loaded = catch_unwind(AssertUnwindSafe(|| {
                undo.into_iter().rev().for_each(|undo| undo());
                db.load().map_err(|error| error.to_string())
            }));
            (db, loaded.unwrap_or_else(|_| Err("reading the database again panicked".to_owned())))
        });
        ctx.wait(work.into_actor(self).map(move |ended, actor, ctx| {
            lost.into_iter().for_each(|entry| actor.lose(entry, &why, ctx));
            let (State::Open(open), Ok((db, loaded))) = (&mut actor.state, ended) else {
                actor.state = State::Stopped;
                return;
            };
            open.db = Some(db);
            match loaded {
                Ok(loaded) => {
                    let mut before = std::mem::replace(&mut open.queue, Queue::new(loaded));
                    open.queue.keep_holds_of(&mut before);
                    open.stale = None;
                    actor.flush(ctx);
                }
                // The next request tries again.
                Err(why) => {
                    tracing::error!(error = why, "the database cannot be read again");
                    open.stale = Some(why);
                    if closing {
                        actor.close(ctx);
                    }
                }
            }
        }));
    }
    /// It did not happen.
    fn lose(&mut self, entry: Entry, why: &str, ctx: &mut Context<Self>) {
        for task in entry.leased {
            self.leases.recipient().do_send(ReleaseLease { task });
        }
        (entry.settle)(Err(Refusal::NotSaved(why.to_owned()).into()), self, ctx);
    }
}

/// Keeps the entries that wait small: each task behind one that left the queue has moved, and to say so takes a whole
/// summary for each. When there are too many, those of tasks that move again with `newest` go.
fn forget_moves(pending: &mut VecDeque<Entry>, newest: &Entry) {
    let moves = pending.iter().map(|entry| entry.effects.moved.len()).sum::<usize>();
    if moves + newest.effects.moved.len() <= MOST_MOVES {
        return;
    }
    let again: HashSet<_> = newest.effects.moved.iter().filter_map(PodEvent::changed_task).collect();
    for entry in pending {
        entry.effects.moved.retain(|event| !event.changed_task().is_some_and(|task| again.contains(task)));
    }
}
