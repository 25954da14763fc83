//! Answers Status and HealthAdvisory, from memory.

use actix::prelude::*;
use cofferdam_protocol::ckpt::{StatusReport, WorkspaceInfo};

use super::super::shown::shown_path;
use super::messages::{Advisory, HealthAdvisory, WorkspaceStatus};
use super::registry::Registered;
use super::{Failure, SnapshotActor};

/// A workspace with more snapshots than this is worth an advice.
pub(super) const MANY_SNAPSHOTS: usize = 1000;

impl Handler<WorkspaceStatus> for SnapshotActor {
    type Result = ActorResponse<Self, Result<StatusReport, Failure>>;

    fn handle(&mut self, request: WorkspaceStatus, _: &mut Context<Self>) -> Self::Result {
        let WorkspaceStatus { peer, workspace } = request;
        match workspace {
            Some(argument) => {
                self.recall(&peer, argument, |actor, registered| Ok(actor.report([registered])))
            }
            None => ActorResponse::reply(Ok(self.report(self.registry.visible_to(&peer)))),
        }
    }
}

impl Handler<HealthAdvisory> for SnapshotActor {
    type Result = MessageResult<HealthAdvisory>;

    fn handle(&mut self, HealthAdvisory { peer }: HealthAdvisory, _: &mut Context<Self>) -> Self::Result {
        let over = self.registry.visible_to(&peer).filter(|registered| registered.has_many_snapshots());
        let over_limit_workspaces = u32::try_from(over.count()).unwrap_or(u32::MAX);
        MessageResult(Ok(Advisory { over_limit_workspaces, usage: self.usage }))
    }
}

impl Registered {
    /// Whether its snapshots are worth an advice.
    pub(super) fn has_many_snapshots(&self) -> bool {
        self.view.snapshots.len() > MANY_SNAPSHOTS
    }
}

impl SnapshotActor {
    fn report<'a>(&self, of: impl IntoIterator<Item = &'a Registered>) -> StatusReport {
        let info = |registered: &Registered| WorkspaceInfo {
            ws_id: registered.view.workspace.id.as_str().to_owned(),
            path: shown_path(&registered.view.workspace.path),
            snapshot_count: u32::try_from(registered.view.snapshots.len()).unwrap_or(u32::MAX),
        };
        StatusReport {
            uptime_secs: self.parts.clock.monotonic().saturating_sub(self.started).as_secs(),
            workspaces: of.into_iter().map(info).collect(),
            fs_total_bytes: self.usage.total,
            fs_used_bytes: self.usage.used,
        }
    }
}
