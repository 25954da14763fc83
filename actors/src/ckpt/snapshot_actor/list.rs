//! Answers List, from memory.

use actix::prelude::*;

use super::messages::{ListSnapshots, ListedWorkspace, SnapshotList};
use super::registry::{Lookup, Registered};
use super::{Failure, RoutingError, SnapshotActor};

impl Handler<ListSnapshots> for SnapshotActor {
    type Result = ActorResponse<Self, Result<SnapshotList, Failure>>;

    fn handle(&mut self, request: ListSnapshots, _: &mut Context<Self>) -> Self::Result {
        let ListSnapshots { peer, workspace } = request;
        let Some(argument) = workspace else {
            return ActorResponse::reply(Ok(list(self.registry.visible_to(&peer))));
        };
        if let Lookup::Known(id) = self.registry.lookup(&peer, &argument) {
            return ActorResponse::reply(Ok(list(self.registry.get(&id))));
        }
        ActorResponse::r#async(self.serve(|actor| {
            Box::pin(actor.find(&peer, &argument).map(move |id, actor, _| match actor.registry.get(&id?) {
                Some(registered) => Ok(list(Some(registered))),
                None => Err(RoutingError::WorkspaceNotFound(argument).into()),
            }))
        }))
    }
}

fn list<'a>(of: impl IntoIterator<Item = &'a Registered>) -> SnapshotList {
    let listed = |registered: &Registered| ListedWorkspace {
        workspace: registered.view.workspace.clone(),
        snapshots: registered.view.snapshots.clone(),
    };
    SnapshotList { workspaces: of.into_iter().map(listed).collect() }
}
