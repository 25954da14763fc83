//! Answers Init.

use std::sync::Arc;

use actix::prelude::*;
use cofferdam_protocol::ckpt::WorkspaceId;
use cofferdam_storage::peer::Peer;

use super::super::operations::{Adopt, Prime};
use super::messages::InitWorkspace;
use super::write::Turn;
use super::{SnapshotActor, Step, done};

impl Handler<InitWorkspace> for SnapshotActor {
    type Result = Step<WorkspaceId>;

    fn handle(&mut self, request: InitWorkspace, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| {
            let InitWorkspace { peer, workspace } = request;
            Box::pin(actor.find_or_init(&peer, &workspace).and_then(move |found, actor, ctx| {
                if found.fresh {
                    actor.prime(found.id.clone(), peer, ctx);
                    done(found.id)
                } else {
                    actor.adopt(found.id, workspace, peer)
                }
            }))
        })
    }
}

impl SnapshotActor {
    /// Reads a new workspace's tree in the background, unless a write has begun to work on it by the time it is its
    /// turn: whoever waits for that one has less patience than for a first reading.
    fn prime(&mut self, id: WorkspaceId, peer: Peer, ctx: &mut Context<Self>) {
        let turn = Arc::clone(&self.primes).acquire_owned();
        ctx.spawn(turn.into_actor(self).then(move |turn, actor, _| {
            match actor.registry.get(&id) {
                Some(registered) if registered.view.snapshots.is_empty() && registered.is_idle() => {
                    registered.priming.send_replace(true);
                }
                _ => return done(()),
            }
            let primed = actor.write_in(Turn::Background, id.clone(), id.to_string(), peer, Prime);
            Box::pin(primed.map(move |result, actor, _| {
                if let Some(registered) = actor.registry.get(&id) {
                    registered.priming.send_replace(false);
                }
                drop(turn);
                result.inspect_err(|failure| {
                    // The first checkpoint reads the tree itself, and says what is wrong with it.
                    tracing::debug!(workspace = %id, %failure, "a new workspace could not be read in advance");
                })
            }))
        }).map(|_, _, _| ()));
    }

    /// Takes the directory over if it replaced the registered one. Whatever is being done to the workspace has just
    /// verified that it did not.
    fn adopt(&mut self, id: WorkspaceId, argument: String, peer: Peer) -> Step<WorkspaceId> {
        if !self.registry.get(&id).is_some_and(|registered| registered.is_idle()) {
            return done(id);
        }
        let adopted = self.write(id, argument, peer, Adopt);
        Box::pin(adopted.map_ok(|state, actor, _| actor.registry.register(state, &actor.make_writer)))
    }
}
