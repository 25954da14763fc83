//! Answers what is in the trash, and brings something back from it.

use actix::prelude::*;
use cofferdam_protocol::ckpt::SnapshotId;
use cofferdam_storage::ckpt::Trashed;

use super::super::operations::Restore;
use super::messages::{ListTrash, RestoreTrashed};
use super::{RoutingError, SnapshotActor, Step, refuse};

impl Handler<ListTrash> for SnapshotActor {
    type Result = Step<Vec<Trashed>>;

    fn handle(&mut self, ListTrash { peer }: ListTrash, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| actor.read(move |backend| backend.trash(&peer)))
    }
}

impl Handler<RestoreTrashed> for SnapshotActor {
    type Result = Step<SnapshotId>;

    fn handle(&mut self, request: RestoreTrashed, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| {
            let RestoreTrashed { peer, workspace, item, id, pin } = request;
            let id = match id.map(SnapshotId::new).transpose() {
                Ok(id) => id,
                Err(error) => return refuse(RoutingError::InvalidSnapshotId(error)),
            };
            Box::pin(actor.find(&peer, &workspace).and_then(move |found, actor, _| {
                actor.write(found, workspace, peer, Restore { item, id, pin })
            }))
        })
    }
}
