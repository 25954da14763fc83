//! Exports: each is one request that a person confirmed.

use actix::prelude::{ActorFutureExt, Context, Handler};
use cofferdam_protocol::host::{ExportEntries, ExportList, Exported, ListExports, UndoExport};
use cofferdam_protocol::pod::{self, ExportMode, ExportUndone};

use super::file_work::FileWork;
use super::tasks::bad;
use super::{Answering, HostActor, after, at_once};
use crate::host::failure::HostFailure;
use crate::host::messages::Ask;

impl Handler<Ask<ExportEntries>> for HostActor {
    type Result = Answering<Exported>;

    fn handle(&mut self, Ask(request): Ask<ExportEntries>, _: &mut Context<Self>) -> Self::Result {
        let ExportEntries { task_id, entries, target_dir, mode, conflict, remember } = request;
        if let Err(refusal) = self.if_not_rewinding(&task_id) {
            return at_once(Err(refusal));
        }
        self.file_works.begin(&task_id, FileWork::Export);
        let id = task_id.clone();
        let create = pod::ExportCreate { task_id, entries, target_dir, mode, conflict, remember };
        Box::pin(self.pass_on(create).map(move |created, actor, ctx| {
            actor.file_works.end(&id, FileWork::Export);
            // A record is there after most failures, too.
            actor.refresh_exports(ctx);
            let pod::ExportCreated { export, message } = created?;
            Ok(Exported { export, message })
        }))
    }
}

impl Handler<Ask<ListExports>> for HostActor {
    type Result = Answering<ExportList>;

    fn handle(&mut self, Ask(ListExports {}): Ask<ListExports>, _: &mut Context<Self>) -> Self::Result {
        let list = pod::ExportList { export_id: None, item_offset: None, item_limit: None };
        Box::pin(self.pass_on(list).map(|rows, _, _| {
            let pod::ExportRows { exports, remembered, truncated } = rows?;
            Ok(ExportList { exports, remembered, truncated })
        }))
    }
}

impl Handler<Ask<UndoExport>> for HostActor {
    type Result = Answering<ExportUndone>;

    fn handle(&mut self, Ask(request): Ask<UndoExport>, _: &mut Context<Self>) -> Self::Result {
        let core = match self.core() {
            Ok(core) => core,
            Err(refusal) => return at_once(Err(refusal)),
        };
        let UndoExport { export_id } = request;
        let one =
            pod::ExportList { export_id: Some(export_id.clone()), item_offset: None, item_limit: Some(0) };
        let undone = async move {
            // Of a move the core could, but people are offered copies only (spec §8).
            let found = core.pod.ask(one).await?.exports;
            if found.iter().any(|export| export.mode == ExportMode::Move) {
                return Err(bad(
                    "that export moved its files, and a move is not undone; copy them back, or move them by hand",
                ));
            }
            Ok::<_, HostFailure>(core.pod.ask(pod::ExportUndo { export_id }).await?)
        };
        after(undone, |actor, undone, ctx| {
            actor.refresh_exports(ctx);
            undone
        })
    }
}
