//! Answers Rollback and undo, and what the newest of them did.

use std::sync::Arc;

use actix::prelude::*;

use super::super::operations::{RollBack, Undo};
use super::messages::{GetLastRollback, LastRollback, Rollback, RollbackDone, UndoDone, UndoRollback};
use super::{Failure, RoutingError, SnapshotActor, Step, done};

impl Handler<Rollback> for SnapshotActor {
    type Result = Step<RollbackDone>;

    fn handle(&mut self, request: Rollback, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| {
            actor.joined(request, |actor, Rollback { peer, workspace, to, exact }| {
                Box::pin(
                    actor.find(&peer, &workspace).and_then(move |id, actor, _| {
                        actor.write(id, workspace, peer, RollBack { to, exact })
                    }),
                )
            })
        })
    }
}

impl Handler<UndoRollback> for SnapshotActor {
    type Result = Step<UndoDone>;

    fn handle(&mut self, request: UndoRollback, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| {
            if let Some(answer) = actor.lost_undo(&request) {
                return done(answer);
            }
            actor.joined(request, |actor, request| {
                let UndoRollback { peer, workspace, expected } = request.clone();
                let undone = actor
                    .find(&peer, &workspace)
                    .and_then(move |id, actor, _| actor.write(id, workspace, peer, Undo { expected }));
                Box::pin(undone.map_ok(move |answer, actor, _| {
                    actor.share_undo(request, &answer);
                    answer
                }))
            })
        })
    }
}

impl Handler<GetLastRollback> for SnapshotActor {
    type Result = ActorResponse<Self, Result<Arc<LastRollback>, Failure>>;

    fn handle(&mut self, request: GetLastRollback, _: &mut Context<Self>) -> Self::Result {
        let GetLastRollback { peer, workspace } = request;
        self.recall(&peer, workspace, |_, registered| {
            Ok(registered.view.last_rollback.clone().ok_or(RoutingError::NoRollback)?)
        })
    }
}
