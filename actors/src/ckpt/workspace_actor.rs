//! One workspace: does what changes it, one operation after another, and knows its snapshots.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use actix::prelude::*;
use cofferdam_protocol::ckpt::SnapshotId;
use cofferdam_storage::ckpt::{Backend, Error, Snapshot, Workspace, WorkspaceState};
use cofferdam_storage::clock::Clock;
use cofferdam_storage::peer::Peer;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;

use super::failure::{Failure, RoutingError, Trouble};
use super::messages::LastRollback;
use super::operations::*;
use super::ticket::Ticket;
use crate::mailbox::mailboxes;

/// The most writes of one workspace that are under way or wait; further ones are refused at once.
pub(crate) const MAX_WRITES: usize = 32;

/// Asks the workspace's actor to run an operation when its turn comes. Sent by `SnapshotActor`; the reply comes when
/// the operation has ended, whatever that took.
#[derive(Message)]
#[rtype(result = "Written<O::Done>")]
pub(crate) struct Write<O: Operation> {
    /// In whose name.
    pub(crate) peer: Peer,
    /// The operation, unless it was given up meanwhile.
    pub(crate) ticket: Ticket<O>,
    /// Its place among [`MAX_WRITES`], free again when this message is gone.
    pub(crate) place: OwnedSemaphorePermit,
}

/// How an operation ended, and what the workspace is now.
#[derive(Debug)]
pub(crate) struct Written<T> {
    /// Its result.
    pub(crate) result: Result<T, Failure>,
    /// The workspace afterwards; `None` if there is none any more.
    pub(crate) view: Option<View>,
}

/// A workspace as its actor knows it.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The workspace.
    pub(crate) workspace: Arc<Workspace>,
    /// Its snapshots, in the order in which they were taken.
    pub(crate) snapshots: Arc<[Snapshot]>,
    /// Its newest rollback or undo, if there was one since the daemon started.
    pub(crate) last_rollback: Option<Arc<LastRollback>>,
    /// Grows with every change, so that an older view never replaces a newer one.
    pub(crate) version: u64,
}

mailboxes! {
    /// The way to one workspace's actor. It stops when this is dropped.
    pub(crate) struct Writer {
        adopt: Write<Adopt>,
        prime: Write<Prime>,
        checkpoint: Write<Checkpoint>,
        rollback: Write<RollBack>,
        undo: Write<Undo>,
        delete: Write<Delete>,
        clean: Write<Clean>,
        recover: Write<Recover>,
        refresh: Write<Refresh>,
        restore: Write<Restore>,
    }
}

/// Serializes what changes one workspace: while an operation runs, all its other messages wait.
pub(crate) struct WorkspaceActor {
    backend: Arc<dyn Backend>,
    clock: Arc<dyn Clock>,
    view: View,
}

impl View {
    /// What was on disk when it was read.
    pub(crate) fn first(state: WorkspaceState) -> Self {
        Self {
            workspace: Arc::new(state.workspace),
            snapshots: state.snapshots.into(),
            last_rollback: None,
            version: 0,
        }
    }

    /// Whether the workspace exists as far as this peer is concerned.
    pub(crate) fn exists_for(&self, peer: &Peer) -> bool {
        peer.is_privileged() || peer.uid == self.workspace.owner
    }
}

impl WorkspaceActor {
    /// The actor of a registered workspace.
    pub(crate) fn new(backend: Arc<dyn Backend>, clock: Arc<dyn Clock>, view: View) -> Self {
        Self { backend, clock, view }
    }

    /// Takes note of what an operation did.
    fn settle<T>(
        &mut self,
        (result, after): (Result<T, Failure>, After),
        ctx: &mut Context<Self>,
    ) -> Written<T> {
        match after {
            After::Same => {}
            After::RolledBack(last) => {
                self.view.last_rollback = Some(Arc::new(last));
                self.view.version += 1;
            }
            After::Snapshots(snapshots) => {
                self.view.snapshots = snapshots;
                self.view.version += 1;
            }
            After::State(state) => {
                // What was done to another user's directory is none of the new owner's business.
                let is_same = *self.view.workspace == state.workspace;
                let last_rollback = self.view.last_rollback.take().filter(|_| is_same);
                self.view = View { last_rollback, version: self.view.version + 1, ..View::first(state) };
            }
            After::Gone => {
                // Whoever still waits is told that the workspace is not found.
                ctx.stop();
                return Written { result, view: None };
            }
        }
        Written { result, view: Some(self.view.clone()) }
    }
}

impl Actor for WorkspaceActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAX_WRITES);
    }
}

impl<O: Operation> Handler<Write<O>> for WorkspaceActor {
    type Result = AtomicResponse<Self, Written<O::Done>>;

    fn handle(&mut self, write: Write<O>, _: &mut Context<Self>) -> Self::Result {
        let Write { peer, ticket, place } = write;
        // It was when this was sent.
        let exists = self.view.exists_for(&peer);
        let target = Target {
            backend: Arc::clone(&self.backend),
            clock: Arc::clone(&self.clock),
            peer,
            workspace: Arc::clone(&self.view.workspace),
            snapshots: Arc::clone(&self.view.snapshots),
        };
        let work = async move {
            let ended = match ticket.begin() {
                Some(operation) if exists => spawn_blocking(move || perform(operation, &target)).await,
                Some(_) => {
                    let id = target.workspace.id.to_string();
                    Ok((Err(RoutingError::WorkspaceNotFound(id).into()), After::Same))
                }
                None => Ok((Err(RoutingError::WriteConflict.into()), After::Same)),
            };
            drop(place);
            // Only a runtime that shuts down keeps a blocking task from ending.
            ended.unwrap_or_else(|_| (Err(RoutingError::Stopping.into()), After::Same))
        };
        AtomicResponse::new(Box::pin(work.into_actor(self).map(|ended, actor, ctx| actor.settle(ended, ctx))))
    }
}

/// Runs an operation on this thread. A panic becomes a failure; after one, and after an error that leaves open what
/// became of the catalog, the snapshots are read again, so that a list never lies.
fn perform<O: Operation>(operation: O, on: &Target) -> (Result<O::Done, Failure>, After) {
    // The engine's shared state is behind its own locks; what the operation owned is gone.
    match catch_unwind(AssertUnwindSafe(|| operation.run(on))) {
        Ok(Ok(Outcome { done, after })) => (Ok(done), after),
        Ok(Err(trouble)) => {
            let after = if in_doubt(&trouble, &on.snapshots) { read_again(on) } else { After::Same };
            (Err(trouble.into()), after)
        }
        Err(_) => {
            tracing::error!(workspace = %on.workspace.id, "an operation panicked");
            (Err(RoutingError::Panicked.into()), read_again(on))
        }
    }
}

/// Whether the catalog may hold something else than `snapshots` after this.
fn in_doubt(trouble: &Trouble, snapshots: &[Snapshot]) -> bool {
    let known = |id: &SnapshotId| snapshots.iter().find(|snapshot| snapshot.id == *id);
    match trouble {
        Trouble::Storage(Error::SnapshotExists(id)) => known(id).is_none(),
        Trouble::Storage(Error::SnapshotMissing(id)) => known(id).is_some_and(|snapshot| !snapshot.missing),
        Trouble::Storage(Error::SnapshotNotFound(_) | Error::WorkspaceNotFound(_)) => true,
        Trouble::Storage(
            Error::Catalog(_) | Error::Corrupt(_) | Error::NoSpace { .. } | Error::Io { .. },
        ) => true,
        Trouble::Storage(_) | Trouble::Routing(_) => false,
    }
}

fn read_again(on: &Target) -> After {
    match catch_unwind(AssertUnwindSafe(|| on.read_again())) {
        Ok(Ok(after)) => after,
        Ok(Err(error)) => {
            tracing::warn!(workspace = %on.workspace.id, %error, "snapshots cannot be read again");
            After::Same
        }
        Err(_) => After::Same,
    }
}

#[cfg(test)]
mod tests;
