//! Answers Recover.

use actix::prelude::*;

use super::super::operations::Recover;
use super::messages::RecoverWorkspace;
use super::{SnapshotActor, Step};

impl Handler<RecoverWorkspace> for SnapshotActor {
    type Result = Step<String>;

    fn handle(&mut self, request: RecoverWorkspace, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| {
            actor.repeatable(request, |actor, RecoverWorkspace { peer, workspace }| {
                let found = actor.find(&peer, &workspace);
                Box::pin(found.and_then(move |id, actor, _| actor.write(id, workspace, peer, Recover)))
            })
        })
    }
}
