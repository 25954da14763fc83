//! Group commit: while one transaction is being made durable, requests go on in memory; what they changed is the next
//! transaction. A transaction that fails takes with it everything that was carried out on top of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use actix::prelude::*;
use cofferdam_storage::pod::{Change, PodDb};
use tokio::task::spawn_blocking;

use super::{State, TaskQueueActor};
use crate::mailbox::Carries;
use crate::pod::call::Reply;
use crate::pod::failure::{Failure, Refusal};
use crate::pod::messages::{DisarmDeadline, ReleaseLease};
use crate::pod::queue::verbs::Outcome;
use crate::pod::queue::{Effects, Queue, TimerChange};

type Job = Box<dyn FnOnce(&mut PodDb) + Send>;
/// Takes back on the disk what was done there.
pub(super) type Undo = Box<dyn FnOnce() + Send>;
type Settle = Box<dyn FnOnce(Result<(), Failure>)>;

/// A request that was carried out in memory, or refused.
pub(super) struct Entry {
    effects: Effects,
    /// Runs when everything before it is durable; a transaction ends with it.
    read: Option<Job>,
    /// Answers: with what it has, or with why nothing is durable.
    settle: Settle,
    /// Takes back on the disk what was done there, if nothing is durable.
    undo: Option<Undo>,
}

impl Entry {
    /// A request that was carried out.
    pub(super) fn of<T: Send + 'static>(outcome: Outcome<T>, effects: Effects, reply: Reply<T>) -> Self {
        let (done, undo) = match outcome {
            Outcome::Done(done) => (done, None),
            Outcome::DoneOrUndo(done, undo) => (done, Some(undo)),
            Outcome::Read(read) => {
                let slot = Arc::new(Mutex::new(None));
                let filled = Arc::clone(&slot);
                let read: Job = Box::new(move |db| {
                    let found = read(db);
                    *filled.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(found);
                });
                let settle: Settle = Box::new(move |saved| {
                    let found = slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
                    reply.send(match (saved, found) {
                        (Err(failure), _) => Err(failure),
                        (Ok(()), Some(found)) => found.map_err(|error| Refusal::Storage(error).into()),
                        (Ok(()), None) => Err(Refusal::Panicked.into()),
                    });
                });
                return Self { effects, read: Some(read), settle, undo: None };
            }
        };
        let settle: Settle = Box::new(move |saved| reply.send(saved.map(|()| done)));
        Self { effects, read: None, settle, undo }
    }

    /// A request that was refused.
    pub(super) fn refused<T: Send + 'static>(refusal: Refusal, reply: Reply<T>) -> Self {
        let settle: Settle = Box::new(move |_| reply.send(Err(refusal.into())));
        Self { effects: Effects::default(), read: None, settle, undo: None }
    }

    /// Something that nobody asked for. `failed` is called if it could not be made durable.
    pub(super) fn unasked(effects: Effects, failed: impl FnOnce() + 'static) -> Self {
        let settle: Settle = Box::new(move |saved| {
            if saved.is_err() {
                failed();
            }
        });
        Self { effects, read: None, settle, undo: None }
    }

    fn needs_the_database(&self) -> bool {
        self.read.is_some() || !self.effects.changes.is_empty()
    }
}

impl TaskQueueActor {
    /// Puts an entry behind those that wait.
    pub(super) fn enqueue(&mut self, entry: Entry, ctx: &mut Context<Self>) {
        if let State::Open(open) = &mut self.state {
            open.pending.push_back(entry);
            self.flush(ctx);
        }
    }

    /// Settles what needs no database, and begins the next transaction, unless one is under way.
    pub(super) fn flush(&mut self, ctx: &mut Context<Self>) {
        let State::Open(first) = &mut self.state else { return };
        let mut open = first;
        if open.db.is_none() {
            return;
        }
        if open.stale.is_some() {
            return self.reload(ctx);
        }
        while let Some(entry) = open.pending.pop_front_if(|entry| !entry.needs_the_database()) {
            self.settle(entry, ctx);
            let State::Open(again) = &mut self.state else { return };
            open = again;
        }
        if open.pending.is_empty() {
            return self.close_if_asked(ctx);
        }
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
            let saved = catch_unwind(AssertUnwindSafe(|| {
                let saved = if changes.is_empty() { Ok(()) } else { db.commit(&changes) };
                if let (Ok(()), Some(read)) = (&saved, read) {
                    read(&mut db);
                }
                saved.map_err(|error| error.to_string())
            }));
            (db, saved.unwrap_or_else(|_| Err("the database's thread panicked".to_owned())))
        });
        let work = async move { (work.await, batch) }.into_actor(self);
        ctx.spawn(work.map(|(ended, batch), actor, ctx| {
            // Only a runtime that shuts down keeps a blocking task from ending.
            if let Ok((db, saved)) = ended {
                actor.committed(db, saved, batch, ctx);
            }
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
                open.stale = Some(why.clone());
                self.lose(batch, &why);
            }
        }
        self.flush(ctx);
    }

    /// Answers, and lets the world know.
    fn settle(&mut self, entry: Entry, ctx: &mut Context<Self>) {
        (entry.settle)(Ok(()));
        for event in entry.effects.events {
            self.emit(event);
        }
        for task in entry.effects.texts {
            self.text_changed(task, ctx);
        }
        for change in entry.effects.timers {
            match change {
                TimerChange::Arm(arm) => self.ticker.recipient().do_send(arm),
                TimerChange::Disarm(task, deadline) => {
                    self.ticker.recipient().do_send(DisarmDeadline { task, deadline: Some(deadline) });
                }
                TimerChange::DisarmAll(task) => {
                    self.ticker.recipient().do_send(DisarmDeadline { task, deadline: None });
                }
            }
        }
    }

    /// None of this is durable, and memory will be loaded again: it did not happen.
    fn lose(&mut self, entries: impl IntoIterator<Item = Entry>, why: &str) {
        for entry in entries {
            (entry.settle)(Err(Refusal::NotSaved(why.to_owned()).into()));
            for (task, _) in entry.effects.leased {
                self.leases.recipient().do_send(ReleaseLease { task });
            }
            if let State::Open(open) = &mut self.state {
                open.undo.extend(entry.undo);
            }
        }
    }

    /// Brings memory back to what is durable, while every message waits.
    fn reload(&mut self, ctx: &mut Context<Self>) {
        let State::Open(open) = &mut self.state else { return };
        let Some(mut db) = open.db.take() else { return };
        // What was carried out on top of what is not so.
        let lost = std::mem::take(&mut open.pending);
        let why = open.stale.clone().unwrap_or_default();
        self.lose(lost, &why);
        let State::Open(open) = &mut self.state else { return };
        let undo = std::mem::take(&mut open.undo);
        let work = spawn_blocking(move || {
            undo.into_iter().rev().for_each(|undo| undo());
            let loaded = catch_unwind(AssertUnwindSafe(|| db.load()));
            (db, loaded)
        });
        ctx.wait(work.into_actor(self).map(|ended, actor, ctx| {
            let (State::Open(open), Ok((db, loaded))) = (&mut actor.state, ended) else { return };
            open.db = Some(db);
            match loaded {
                Ok(Ok(loaded)) => {
                    open.queue = Queue::new(loaded);
                    open.stale = None;
                    actor.flush(ctx);
                }
                Ok(Err(error)) => {
                    tracing::error!(%error, "the database cannot be read again");
                    open.stale = Some(error.to_string());
                }
                Err(_) => open.stale = Some("reading the database again panicked".to_owned()),
            }
        }));
    }
}
