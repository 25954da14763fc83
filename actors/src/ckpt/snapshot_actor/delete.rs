//! Answers Delete and Cleanup.

use actix::prelude::*;
use cofferdam_protocol::ckpt::{CleanupRetention, SnapshotId, WorkspaceId};
use cofferdam_storage::peer::Peer;

use super::super::operations::{Clean, Delete};
use super::super::{reference, retention};
use super::messages::{Cleanup, DeleteSnapshot};
use super::{RoutingError, SnapshotActor, Step, refuse};

impl Handler<DeleteSnapshot> for SnapshotActor {
    type Result = Step<SnapshotId>;

    fn handle(&mut self, request: DeleteSnapshot, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| actor.repeatable(request, Self::delete))
    }
}

impl Handler<Cleanup> for SnapshotActor {
    type Result = Step<Vec<SnapshotId>>;

    fn handle(&mut self, request: Cleanup, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| {
            let Cleanup { peer, workspace, keep } = request;
            let keep = CleanupRetention::Count(keep.unwrap_or(retention::DEFAULT_KEEP));
            let found = actor.find(&peer, &workspace);
            let cleaned = found.and_then(move |id, actor, _| actor.write(id, workspace, peer, Clean(keep)));
            Box::pin(cleaned.map_ok(|removed, actor, _| {
                actor.collect_soon();
                removed
            }))
        })
    }
}

impl SnapshotActor {
    fn delete(&mut self, request: DeleteSnapshot) -> Step<SnapshotId> {
        let DeleteSnapshot { peer, workspace, snapshot, exact, force } = request;
        let deleted = match workspace {
            Some(workspace) => Box::pin(self.find(&peer, &workspace).and_then(move |id, actor, _| {
                actor.write(id, workspace, peer, Delete { snapshot, exact, force })
            })),
            None => match self.only_match(&peer, &snapshot, exact) {
                Ok((id, snapshot)) => {
                    let snapshot = snapshot.as_str().to_owned();
                    self.write(id.clone(), id.to_string(), peer, Delete { snapshot, exact: true, force })
                }
                Err(error) => refuse(error),
            },
        };
        Box::pin(deleted.map_ok(|id, actor, _| {
            actor.collect_soon();
            id
        }))
    }

    /// The one workspace of this peer in which a snapshot is meant by `reference`, and that snapshot. An exact name in
    /// one workspace and a prefix in another are two.
    fn only_match(
        &self,
        peer: &Peer,
        reference: &str,
        exact: bool,
    ) -> Result<(WorkspaceId, SnapshotId), RoutingError> {
        let mut with_matches = self.registry.visible_to(peer).filter(|registered| {
            !reference::candidates(&registered.view.snapshots, reference, exact).is_empty()
        });
        match (with_matches.next(), with_matches.next()) {
            (None, _) => Err(RoutingError::SnapshotNotFound(reference.to_owned())),
            (Some(one), None) => {
                let snapshot = reference::find(&one.view.snapshots, reference, exact)?;
                Ok((one.view.workspace.id.clone(), snapshot.id.clone()))
            }
            (Some(_), Some(_)) => Err(RoutingError::SeveralWorkspaces(reference.to_owned())),
        }
    }
}
