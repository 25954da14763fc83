//! Answers List, from memory.

use actix::prelude::*;

use super::messages::{ListSnapshots, ListedWorkspace, SnapshotList};
use super::registry::Registered;
use super::{Failure, SnapshotActor};

impl Handler<ListSnapshots> for SnapshotActor {
    type Result = ActorResponse<Self, Result<SnapshotList, Failure>>;

    fn handle(&mut self, request: ListSnapshots, _: &mut Context<Self>) -> Self::Result {
        let ListSnapshots { peer, workspace } = request;
        match workspace {
            Some(argument) => self.recall(&peer, argument, |_, registered| Ok(list([registered]))),
            None => ActorResponse::reply(Ok(list(self.registry.visible_to(&peer)))),
        }
    }
}

fn list<'a>(of: impl IntoIterator<Item = &'a Registered>) -> SnapshotList {
    let listed = |registered: &Registered| ListedWorkspace {
        workspace: registered.view.workspace.clone(),
        snapshots: registered.view.snapshots.clone(),
    };
    SnapshotList { workspaces: of.into_iter().map(listed).collect() }
}
