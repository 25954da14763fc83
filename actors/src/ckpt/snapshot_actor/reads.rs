//! Answers what must be read from the store: comparisons, warnings, checks and sizes. None of it waits for a write
//! to end.

use std::sync::Arc;

use actix::prelude::*;
use cofferdam_protocol::ckpt::{DiffEntry, WorkspaceId, WsCkptErrorCode};
use cofferdam_storage::ckpt::{self, Backend, CheckReport, Error, PastRollback, Snapshot, TreeRef, Warning};
use cofferdam_storage::path::{RelPath, unescape};
use cofferdam_storage::peer::Peer;
use tokio::sync::Semaphore;

use super::super::keeper_actor::LookAgain;
use super::super::operations::Refresh;
use super::super::reference;
use super::super::shown::shown_change;
use super::messages::{
    CheckStore, CompareFile, ComparedFile, DiffSnapshots, NewestRollback, SnapshotWarnings, StoreSize,
};
use super::write::Turn;
use super::{RoutingError, SnapshotActor, Step, blocking, refuse};

/// What Diff calls the directory as it is now; a snapshot of that very name wins.
const LIVE: &str = "@live";

impl Handler<DiffSnapshots> for SnapshotActor {
    type Result = Step<Vec<DiffEntry>>;

    fn handle(&mut self, request: DiffSnapshots, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| {
            let DiffSnapshots { peer, workspace, from, to } = request;
            Box::pin(actor.find(&peer, &workspace).and_then(move |id, actor, _| {
                match actor.trees(&id, workspace, &from, &to) {
                    Ok((from, to)) => actor.read_snapshot(id, move |backend, id| {
                        let changes = backend.diff(&peer, id, &from, &to)?;
                        Ok(changes.iter().map(shown_change).collect())
                    }),
                    Err(error) => refuse(error),
                }
            }))
        })
    }
}

impl Handler<CompareFile> for SnapshotActor {
    type Result = Step<ComparedFile>;

    fn handle(&mut self, request: CompareFile, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| {
            let CompareFile { peer, workspace, from, to, path, old_path, most } = request;
            let old_path = path_below(old_path.as_deref().unwrap_or(&path));
            let (old_path, path) = match (old_path, path_below(&path)) {
                (Ok(old_path), Ok(path)) => (old_path, path),
                (Err(error), _) | (_, Err(error)) => return refuse(error),
            };
            Box::pin(actor.find(&peer, &workspace).and_then(move |id, actor, _| {
                match actor.trees(&id, workspace, &from, &to) {
                    Ok((from, to)) => actor.read_snapshot(id, move |backend, id| {
                        let old = backend.look(&peer, id, &from, &old_path, most)?;
                        let new = backend.look(&peer, id, &to, &path, most)?;
                        Ok(ComparedFile { old, new })
                    }),
                    Err(error) => refuse(error),
                }
            }))
        })
    }
}

impl Handler<SnapshotWarnings> for SnapshotActor {
    type Result = Step<Vec<Warning>>;

    fn handle(&mut self, request: SnapshotWarnings, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| {
            let SnapshotWarnings { peer, workspace, snapshot } = request;
            Box::pin(actor.find(&peer, &workspace).and_then(move |id, actor, _| {
                let snapshots = actor.snapshots(&id, workspace);
                let found = snapshots.and_then(|all| Ok(reference::find(&all, &snapshot, false)?.id.clone()));
                match found {
                    Ok(snapshot) => {
                        actor.read_snapshot(id, move |backend, id| backend.warnings(&peer, id, &snapshot))
                    }
                    Err(error) => refuse(error),
                }
            }))
        })
    }
}

impl Handler<NewestRollback> for SnapshotActor {
    type Result = Step<Option<PastRollback>>;

    fn handle(&mut self, request: NewestRollback, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| {
            let NewestRollback { peer, workspace } = request;
            Box::pin(actor.find(&peer, &workspace).and_then(move |id, actor, _| {
                actor.read_snapshot(id, move |backend, id| backend.newest_rollback(&peer, id))
            }))
        })
    }
}

impl Handler<CheckStore> for SnapshotActor {
    type Result = Step<CheckReport>;

    fn handle(&mut self, CheckStore { peer, read_data }: CheckStore, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| {
            if !peer.is_privileged() {
                return refuse(RoutingError::NotPrivileged);
            }
            let checked = actor.read_as(Arc::clone(&actor.checks), move |backend| {
                let report = backend.check(read_data)?;
                // It may have marked snapshots as missing, or as whole again.
                Ok((report, backend.workspaces()?))
            });
            Box::pin(checked.map_ok(|(report, states), actor, ctx| {
                for state in states {
                    // Whoever lists next sees it; so that the workspace's next write does not bring the old marks
                    // back, its own actor has to know, too.
                    if actor.registry.mark(&state) {
                        actor.refresh(state.workspace.id, ctx);
                    }
                }
                // One that is lost on the way costs an error later.
                let _ = actor.keeper.try_send(LookAgain);
                report
            }))
        })
    }
}

impl Handler<StoreSize> for SnapshotActor {
    type Result = Step<ckpt::StoreSize>;

    fn handle(&mut self, StoreSize { peer }: StoreSize, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| {
            if !peer.is_privileged() {
                return refuse(RoutingError::NotPrivileged);
            }
            actor.read(|backend| backend.size())
        })
    }
}

/// A path as a diff shows it.
fn path_below(shown: &str) -> Result<RelPath, RoutingError> {
    let path = match shown {
        "." => Some(RelPath::ROOT),
        _ => unescape(shown).and_then(|bytes| RelPath::new(&bytes).ok()).filter(|path| !path.is_root()),
    };
    path.ok_or_else(|| RoutingError::NoPathBelow(shown.to_owned()))
}

impl SnapshotActor {
    fn snapshots(&self, id: &WorkspaceId, argument: String) -> Result<Arc<[Snapshot]>, RoutingError> {
        let registered = self.registry.get(id).ok_or(RoutingError::WorkspaceNotFound(argument))?;
        Ok(Arc::clone(&registered.view.snapshots))
    }

    fn trees(
        &self,
        id: &WorkspaceId,
        argument: String,
        from: &str,
        to: &str,
    ) -> Result<(TreeRef, TreeRef), RoutingError> {
        let snapshots = self.snapshots(id, argument)?;
        let snapshot = |reference| {
            reference::find(&snapshots, reference, false)
                .map(|snapshot| TreeRef::Snapshot(snapshot.id.clone()))
        };
        let is_live = to == LIVE && !snapshots.iter().any(|snapshot| snapshot.id.as_str() == LIVE);
        Ok((snapshot(from)?, if is_live { TreeRef::Live } else { snapshot(to)? }))
    }

    /// Has a workspace's snapshots read again in the background.
    fn refresh(&mut self, id: WorkspaceId, ctx: &mut Context<Self>) {
        let refreshed = self.write_in(Turn::Background, id.clone(), id.to_string(), Peer::own(), Refresh);
        ctx.spawn(refreshed.map(move |result, _, _| {
            if let Err(failure) = result {
                tracing::warn!(workspace = %id, %failure, "snapshots cannot be read again");
            }
        }));
    }

    /// Reads from snapshots of a workspace. If one of them turns out to be lost, the list will say so.
    fn read_snapshot<T: Send + 'static>(
        &self,
        id: WorkspaceId,
        work: impl FnOnce(&dyn Backend, &WorkspaceId) -> Result<T, Error> + Send + 'static,
    ) -> Step<T> {
        let of = id.clone();
        Box::pin(self.read(move |backend| work(backend, &of)).map(|result, actor, ctx| {
            if result.as_ref().is_err_and(|failure| failure.code == WsCkptErrorCode::SnapshotNotFound) {
                actor.refresh(id, ctx);
            }
            result
        }))
    }

    pub(super) fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Backend) -> Result<T, Error> + Send + 'static,
    ) -> Step<T> {
        self.read_as(Arc::clone(&self.reads), work)
    }

    /// Reads from the store on a blocking thread when one of `places` is free.
    fn read_as<T: Send + 'static>(
        &self,
        places: Arc<Semaphore>,
        work: impl FnOnce(&dyn Backend) -> Result<T, Error> + Send + 'static,
    ) -> Step<T> {
        let backend = Arc::clone(&self.parts.backend);
        let read = async move {
            // Never closed, so there is always a place in the end.
            let place = places.acquire_owned().await;
            let result = blocking(move || work(&*backend)).await;
            drop(place);
            result
        };
        Box::pin(read.into_actor(self))
    }
}
