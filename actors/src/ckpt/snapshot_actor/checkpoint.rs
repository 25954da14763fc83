//! Answers Checkpoint.

use actix::prelude::*;
use cofferdam_protocol::ckpt::SnapshotId;
use cofferdam_storage::ckpt::NewSnapshot;

use super::super::operations::Checkpoint;
use super::messages::{CheckpointOutcome, CreateCheckpoint};
use super::{RoutingError, SnapshotActor, Step, refuse};

impl Handler<CreateCheckpoint> for SnapshotActor {
    type Result = Step<CheckpointOutcome>;

    fn handle(&mut self, request: CreateCheckpoint, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| actor.repeatable(request, Self::checkpoint))
    }
}

impl SnapshotActor {
    fn checkpoint(&mut self, request: CreateCheckpoint) -> Step<CheckpointOutcome> {
        let CreateCheckpoint { peer, workspace, id, message, metadata, pin } = request;
        let id = match SnapshotId::new(id) {
            Ok(id) => id,
            Err(invalid) => return refuse(RoutingError::InvalidSnapshotId(invalid)),
        };
        Box::pin(self.find_or_init(&peer, &workspace).and_then(move |found, actor, _| {
            let skip_unchanged = actor.settings.skip_unchanged;
            let new = NewSnapshot { id, message, metadata, pin, skip_unchanged, even_empty: false };
            actor.write(found.id, workspace, peer, Checkpoint(new))
        }))
    }
}
