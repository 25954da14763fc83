//! Answers Rollback and undo.

use actix::prelude::*;

use super::super::operations::{RollBack, Undo};
use super::messages::{Rollback, RollbackDone, UndoDone, UndoRollback};
use super::{SnapshotActor, Step};

impl Handler<Rollback> for SnapshotActor {
    type Result = Step<RollbackDone>;

    fn handle(&mut self, request: Rollback, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| {
            actor.joined(request, |actor, Rollback { peer, workspace, to }| {
                Box::pin(
                    actor
                        .find(&peer, &workspace)
                        .and_then(move |id, actor, _| actor.write(id, workspace, peer, RollBack { to })),
                )
            })
        })
    }
}

impl Handler<UndoRollback> for SnapshotActor {
    type Result = Step<UndoDone>;

    fn handle(&mut self, request: UndoRollback, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| {
            actor.joined(request, |actor, UndoRollback { peer, workspace }| {
                Box::pin(
                    actor
                        .find(&peer, &workspace)
                        .and_then(move |id, actor, _| actor.write(id, workspace, peer, Undo)),
                )
            })
        })
    }
}
