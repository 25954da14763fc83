//! What `ExportActor` asks of the owner of tasks and database.

use actix::ResponseFuture;
use actix::prelude::*;
use cofferdam_storage::pod::{Error, PodDb};
use tokio::sync::oneshot;

use super::batch::Entry;
use super::{State, TaskQueueActor};
use crate::pod::failure::{Failure, Refusal};
use crate::pod::messages::{
    AdmitExport, AdmitUndo, AdmittedExport, AdmittedUndo, Diagnose, FindExport, FindSurplusExports,
    ReleaseFiles, SaveChanges,
};
use crate::pod::queue::Effects;

impl Handler<AdmitExport> for TaskQueueActor {
    type Result = Result<AdmittedExport, Refusal>;

    fn handle(&mut self, AdmitExport { id, request }: AdmitExport, _: &mut Context<Self>) -> Self::Result {
        let at = self.now();
        let open = self.open()?;
        let (mut request, held) = open.queue.admit_export(id, request, at)?;
        request.own_files = open.own_files();
        request.own_dirs = open.site.protected.own().to_vec();
        let remember_for = match open.queue.config().allow_remember_choice {
            true => Some(open.queue.task(&request.task)?.summary.main_session_id.clone()),
            false => None,
        };
        let (wants_progress, locked) = (open.wants_progress, open.locked.clone());
        Ok(AdmittedExport { request, held, remember_for, wants_progress, locked })
    }
}

impl Handler<AdmitUndo> for TaskQueueActor {
    type Result = ResponseFuture<Result<AdmittedUndo, Failure>>;

    fn handle(&mut self, AdmitUndo { export: id }: AdmitUndo, ctx: &mut Context<Self>) -> Self::Result {
        let wanted = id.clone();
        self.consult(
            move |db| db.export(&wanted),
            move |found, actor| {
                let export = found?.ok_or(Refusal::ExportNotFound(id))?;
                let open = actor.open()?;
                let held = open.queue.admit_undo(&export.record)?;
                let (verify, locked) = (open.queue.config().export_verify, open.locked.clone());
                Ok(AdmittedUndo { export, verify, held, locked })
            },
            ctx,
        )
    }
}

impl Handler<ReleaseFiles> for TaskQueueActor {
    type Result = ();

    fn handle(&mut self, ReleaseFiles { task }: ReleaseFiles, _: &mut Context<Self>) {
        if let State::Open(open) = &mut self.state {
            open.queue.let_go(&task);
        }
    }
}

impl Handler<FindExport> for TaskQueueActor {
    type Result = ResponseFuture<<FindExport as Message>::Result>;

    fn handle(&mut self, FindExport { export }: FindExport, ctx: &mut Context<Self>) -> Self::Result {
        self.consult(move |db| db.export(&export), |found, _| found, ctx)
    }
}

impl Handler<FindSurplusExports> for TaskQueueActor {
    type Result = ResponseFuture<<FindSurplusExports as Message>::Result>;

    fn handle(&mut self, message: FindSurplusExports, ctx: &mut Context<Self>) -> Self::Result {
        let kept = self.open().map(|open| open.queue.config().max_exports);
        self.consult(
            // Whatever keeps that from being known keeps the database from being asked, too.
            move |db| db.surplus_exports(kept.unwrap_or(i64::MAX), &message.besides),
            |found, _| found,
            ctx,
        )
    }
}

impl Handler<SaveChanges> for TaskQueueActor {
    type Result = ResponseFuture<Result<(), Failure>>;

    fn handle(&mut self, SaveChanges(changes): SaveChanges, ctx: &mut Context<Self>) -> Self::Result {
        let (sender, saved) = oneshot::channel();
        match self.open() {
            Ok(_) => {
                let effects = Effects { changes, ..Effects::default() };
                let settled = |saved, _: &mut Self, _: &mut Context<Self>| drop(sender.send(saved));
                self.enqueue(Entry::unasked(effects, settled), ctx);
            }
            Err(refusal) => drop(sender.send(Err(refusal.into()))),
        }
        Box::pin(async { saved.await.unwrap_or_else(|_| Err(Refusal::Stopping.into())) })
    }
}

impl Handler<Diagnose> for TaskQueueActor {
    type Result = ();

    fn handle(&mut self, Diagnose { level, message }: Diagnose, _: &mut Context<Self>) {
        self.diagnose(level, message);
    }
}

impl TaskQueueActor {
    /// Asks the database, behind everything that waits to be saved; `then` makes an answer of what it says.
    fn consult<T: Send + 'static, R: Send + 'static>(
        &mut self,
        read: impl FnOnce(&mut PodDb) -> Result<T, Error> + Send + 'static,
        then: impl FnOnce(Result<T, Failure>, &mut Self) -> Result<R, Failure> + 'static,
        ctx: &mut Context<Self>,
    ) -> ResponseFuture<Result<R, Failure>> {
        let (sender, answer) = oneshot::channel();
        match self.open() {
            Ok(_) => {
                let entry = Entry::reading(Effects::default(), read, move |found, saved, actor| {
                    let found =
                        saved.and_then(|()| Ok(found.ok_or(Refusal::Panicked)?.map_err(Refusal::from)?));
                    drop(sender.send(then(found, actor)));
                });
                self.enqueue(entry, ctx);
            }
            Err(refusal) => drop(sender.send(Err(refusal.into()))),
        }
        Box::pin(async { answer.await.unwrap_or_else(|_| Err(Refusal::Stopping.into())) })
    }
}
