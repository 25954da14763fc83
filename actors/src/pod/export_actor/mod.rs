//! Files leave the sandbox and come back: one export, one undo or one removal of a record at a time, in the order in which
//! they were asked for. What is in memory and in the database is `TaskQueueActor`'s; this actor asks it.

mod create;
mod tools;
mod undo;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use actix::prelude::*;
use cofferdam_protocol::pod::{ExportCreate, ExportDeleteRecord, ExportUndo, PodEvent, Shutdown};

use super::Parts;
use super::call::{Call, Reply};
use super::failure::{Failure, Refusal};
use super::messages::{
    AdmitExport, AdmitUndo, Diagnose, FindExport, FindSurplusExports, ReleaseFiles, SaveChanges,
};
use crate::mailbox::{Carries, mailboxes};
use tools::Tools;

/// How many requests may wait.
const MAILBOX: usize = 1024;
/// How long `shutdown` waits for what is under way. What is not done by then is found out at the next start.
const LAST_WAIT: Duration = Duration::from_secs(1);

mailboxes! {
    /// The way to the owner of tasks and database.
    pub(super) struct Owner {
        admit: AdmitExport,
        admit_undo: AdmitUndo,
        release: ReleaseFiles,
        find: FindExport,
        find_surplus: FindSurplusExports,
        save: SaveChanges,
        diagnose: Diagnose,
        shutdown: Call<Shutdown>,
    }
}

/// The actor. See the module.
pub(super) struct ExportActor {
    parts: Parts,
    owner: Owner,
    /// What was asked for and has not begun.
    waiting: VecDeque<Job>,
    /// Whether something is under way.
    busy: bool,
    /// The export that is being carried out.
    running: Option<String>,
    /// Held back until nothing is under way.
    leaving: Vec<Call<Shutdown>>,
}

/// Begins something.
type Job = Box<dyn FnOnce(&mut ExportActor, &mut Context<ExportActor>)>;

/// How far an export is. Sent by the thread that works on it.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct Progress {
    export: String,
    task: String,
    done: usize,
    total: usize,
}

impl ExportActor {
    pub(super) fn new(parts: Parts, owner: Owner) -> Self {
        Self { parts, owner, waiting: VecDeque::new(), busy: false, running: None, leaving: Vec::new() }
    }

    fn enqueue(&mut self, job: Job, ctx: &mut Context<Self>) {
        self.waiting.push_back(job);
        self.proceed(ctx);
    }

    /// Begins what has waited longest, unless something is under way.
    fn proceed(&mut self, ctx: &mut Context<Self>) {
        if self.busy {
            return;
        }
        match self.waiting.pop_front() {
            Some(job) => {
                self.busy = true;
                job(self, ctx);
            }
            None => self.leave(),
        }
    }

    /// Does something, answers, and goes on with what waits.
    fn work<T: 'static>(
        work: impl Future<Output = Result<T, Failure>> + 'static,
        reply: Reply<T>,
        ctx: &mut Context<Self>,
    ) {
        // A future of its own, so that requests are taken meanwhile.
        ctx.spawn(fut::wrap_future(work).map(|answer, actor: &mut Self, ctx| {
            actor.running = None;
            actor.busy = false;
            reply.send(answer);
            actor.proceed(ctx);
        }));
    }

    /// Lets those who wait for the end of what was under way get on.
    fn leave(&mut self) {
        for call in self.leaving.drain(..) {
            // An owner that is gone takes the reply along, which answers then.
            self.owner.recipient().do_send(call);
        }
    }

    fn tools(&self) -> Tools {
        Tools { disk: self.parts.disk.clone(), owner: self.owner.clone() }
    }

    /// Wall time in milliseconds since the epoch.
    fn now(&self) -> i64 {
        self.parts.clock.wall().0 / 1_000_000
    }
}

impl Actor for ExportActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Call<ExportCreate>> for ExportActor {
    type Result = ();

    fn handle(&mut self, Call { request, reply }: Call<ExportCreate>, ctx: &mut Context<Self>) {
        let begin = |actor: &mut Self, ctx: &mut Context<Self>| {
            let id = format!("exp-{}", actor.parts.ids.fresh());
            actor.running = Some(id.clone());
            let clock = actor.parts.clock.clone();
            Self::work(
                create::create(actor.tools(), clock, ctx.address().recipient(), id, request),
                reply,
                ctx,
            );
        };
        self.enqueue(Box::new(begin), ctx);
    }
}

impl Handler<Call<ExportUndo>> for ExportActor {
    type Result = ();

    fn handle(&mut self, Call { request, reply }: Call<ExportUndo>, ctx: &mut Context<Self>) {
        if self.running.as_ref() == Some(&request.export_id) {
            return reply.send(Err(Refusal::ExportRuns.into()));
        }
        let begin = |actor: &mut Self, ctx: &mut Context<Self>| {
            Self::work(undo::undo(actor.tools(), request.export_id, actor.now()), reply, ctx);
        };
        self.enqueue(Box::new(begin), ctx);
    }
}

impl Handler<Call<ExportDeleteRecord>> for ExportActor {
    type Result = ();

    fn handle(&mut self, Call { request, reply }: Call<ExportDeleteRecord>, ctx: &mut Context<Self>) {
        if self.running.as_ref() == Some(&request.export_id) {
            return reply.send(Err(Refusal::RecordInUse.into()));
        }
        let begin = |actor: &mut Self, ctx: &mut Context<Self>| {
            Self::work(undo::delete(actor.tools(), request.export_id), reply, ctx);
        };
        self.enqueue(Box::new(begin), ctx);
    }
}

/// `shutdown` passes here on its way, so that what was asked for before it is done before it, if that does not take long.
impl Handler<Call<Shutdown>> for ExportActor {
    type Result = ();

    fn handle(&mut self, call: Call<Shutdown>, ctx: &mut Context<Self>) {
        self.leaving.push(call);
        match self.busy {
            true => drop(ctx.run_later(LAST_WAIT, |actor, _| actor.leave())),
            false => self.leave(),
        }
    }
}

impl Handler<Progress> for ExportActor {
    type Result = ();

    /// Not after the answer.
    fn handle(&mut self, Progress { export, task, done, total }: Progress, _: &mut Context<Self>) {
        if self.running.as_ref() == Some(&export) {
            let event = PodEvent::ExportProgress { export_id: export, task_id: task, done, total };
            self.parts.events.event(event);
        }
    }
}
