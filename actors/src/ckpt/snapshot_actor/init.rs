//! Answers Init.

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
    /// Reads a new workspace's tree in the background.
    fn prime(&mut self, id: WorkspaceId, peer: Peer, ctx: &mut Context<Self>) {
        if let Some(registered) = self.registry.get(&id) {
            registered.priming.send_replace(true);
        }
        let primed = self.write_in(Turn::Background, id.clone(), id.to_string(), peer, Prime);
        ctx.spawn(primed.map(move |result, actor, _| {
            if let Err(failure) = result {
                // The first checkpoint reads the tree itself, and says what is wrong with it.
                tracing::debug!(workspace = %id, %failure, "a new workspace could not be read in advance");
            }
            if let Some(registered) = actor.registry.get(&id) {
                registered.priming.send_replace(false);
            }
        }));
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
