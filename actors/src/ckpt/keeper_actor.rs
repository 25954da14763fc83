//! Takes checkpoints for the program itself. What it knows no other actor knows, so no request of a client can reach it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use actix::prelude::*;
use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};
use cofferdam_storage::ckpt::{
    Backend, Checkpointed, Error, NewSnapshot, RolledBack, Snapshot, Warning, WorkspaceState,
};
use cofferdam_storage::peer::Peer;

use super::blocking;
use super::collector::Collect;
use super::failure::{Failure, RoutingError, Trouble};
use super::messages::{ForgetTree, KeepTree, ListKept, RewindTree};
use super::path_locks::PathLocks;
use super::shown::shown_path;

/// A check may have found snapshots lost, or whole again. Sent by `SnapshotActor`.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct LookAgain;

/// Messages that wait to be looked at: several for each agent that can be at work.
const MAILBOX: usize = 256;
/// How often something is tried while others work around the directory or inside it. The engine waits 4 s each time,
/// and a first checkpoint of a large workspace can take longer.
const ATTEMPTS: usize = 8;

/// What an answer takes.
type Step<T> = ResponseActFuture<KeeperActor, Result<T, Failure>>;

/// Owns what is known of the directories of which the program takes checkpoints.
pub(super) struct KeeperActor {
    backend: Arc<dyn Backend>,
    collector: Recipient<Collect>,
    trees: HashMap<PathBuf, Tree>,
    turns: PathLocks,
}

/// A directory of which there are checkpoints.
#[derive(Clone, Debug)]
struct Tree {
    /// Its name in the engine.
    id: WorkspaceId,
    /// In the order in which they were taken.
    snapshots: Vec<Snapshot>,
}

impl From<WorkspaceState> for Tree {
    fn from(state: WorkspaceState) -> Self {
        Self { id: state.workspace.id, snapshots: state.snapshots }
    }
}

/// A directory while something is done to it.
struct Work {
    backend: Arc<dyn Backend>,
    dir: PathBuf,
    tree: Option<Tree>,
}

impl KeeperActor {
    /// With what the engine has of such directories.
    pub(super) fn new(
        backend: Arc<dyn Backend>,
        collector: Recipient<Collect>,
        states: Vec<WorkspaceState>,
    ) -> Self {
        let trees =
            states.into_iter().map(|state| (state.workspace.path.clone(), Tree::from(state))).collect();
        Self { backend, collector, trees, turns: PathLocks::default() }
    }

    /// The path by which a directory is known.
    fn resolve(&self, dir: PathBuf) -> impl ActorFuture<Self, Output = PathBuf> + use<> {
        let known = self.trees.contains_key(&dir);
        let backend = Arc::clone(&self.backend);
        let resolved = async move {
            if known {
                return dir;
            }
            let asked = dir.clone();
            let canonical = blocking(move || {
                Ok::<_, Error>(match (asked.parent(), asked.file_name()) {
                    // The directory itself may be gone.
                    (Some(parent), Some(name)) => backend.canonical(&Peer::own(), parent)?.join(name),
                    _ => asked,
                })
            });
            // What has no such path cannot be registered either, and the engine says best why.
            canonical.await.unwrap_or(dir)
        };
        resolved.into_actor(self)
    }

    /// Does something to a directory when it is its turn, where it may block, and takes note of what it is afterwards:
    /// after an error what the engine says it is.
    fn work<T: Send + 'static>(
        &mut self,
        dir: PathBuf,
        work: impl FnOnce(&mut Work) -> Result<T, Trouble> + Send + 'static,
    ) -> Step<T> {
        let resolved = self.resolve(dir);
        let turn = resolved.then(|dir, actor: &mut Self, _| {
            let turn = actor.turns.lock(dir.clone());
            async move { (turn.await, dir) }.into_actor(actor)
        });
        let worked = turn.then(move |(turn, dir), actor: &mut Self, _| {
            let known = actor.trees.get(&dir).cloned();
            let backend = Arc::clone(&actor.backend);
            let mut on = Work { backend: Arc::clone(&backend), dir: dir.clone(), tree: known.clone() };
            let work = async move {
                let worked = blocking(move || work(&mut on).map(|done| (done, on.tree))).await;
                let (result, tree) = match worked {
                    Ok((done, tree)) => (Ok(done), tree),
                    Err(failure) => {
                        let path = dir.clone();
                        let again = blocking(move || {
                            let states = backend.kept()?.into_iter();
                            Ok::<_, Error>(
                                states.map(|s| (s.workspace.path.clone(), s)).find(|(p, _)| *p == path),
                            )
                        });
                        let again = again.await.inspect_err(|failure| {
                            tracing::warn!(%failure, "what is kept of a directory cannot be read again");
                        });
                        (Err(failure), again.map_or(known, |found| found.map(|(_, state)| state.into())))
                    }
                };
                (result, dir, tree, turn)
            };
            work.into_actor(actor)
        });
        Box::pin(worked.map(|(result, dir, tree, turn), actor: &mut Self, _| {
            match tree {
                Some(tree) => drop(actor.trees.insert(dir, tree)),
                None => drop(actor.trees.remove(&dir)),
            }
            // Whoever is next sees it.
            drop(turn);
            result
        }))
    }
}

impl Work {
    fn known(&self) -> Result<&Tree, RoutingError> {
        self.tree.as_ref().ok_or_else(|| RoutingError::WorkspaceNotFound(shown_path(&self.dir)))
    }

    fn register(&mut self) -> Result<WorkspaceId, Error> {
        let tree = Tree::from(patiently(|| self.backend.keep(&self.dir))?);
        let id = tree.id.clone();
        self.tree = Some(tree);
        Ok(id)
    }

    fn keep(&mut self, new: &NewSnapshot) -> Result<Vec<Warning>, Trouble> {
        let mut id = match &self.tree {
            Some(tree) => tree.id.clone(),
            None => self.register()?,
        };
        let checkpoint = |id| patiently(|| self.backend.checkpoint(&Peer::own(), id, new));
        let made = match checkpoint(&id) {
            Err(Error::WorkspaceReplaced(_)) => {
                id = self.register()?;
                patiently(|| self.backend.checkpoint(&Peer::own(), &id, new))
            }
            made => made,
        };
        match (made?, &mut self.tree) {
            (Checkpointed::Created(snapshot), Some(tree)) => {
                let warnings = match snapshot.warnings {
                    0 => Vec::new(),
                    _ => self.backend.warnings(&Peer::own(), &id, &snapshot.id)?,
                };
                tree.snapshots.push(snapshot);
                Ok(warnings)
            }
            // It was to be stored in any case.
            (other, _) => Err(Error::Catalog(format!("no snapshot was taken: {other:?}")).into()),
        }
    }

    fn rewind(&self, to: &SnapshotId) -> Result<RolledBack, Trouble> {
        let tree = self.known()?;
        // Not what begins so: of two turns the name of one can begin that of the other.
        match tree.snapshots.iter().find(|snapshot| snapshot.id == *to) {
            Some(Snapshot { missing: false, .. }) => {}
            Some(_) => return Err(Error::SnapshotMissing(to.clone()).into()),
            None => return Err(Error::SnapshotNotFound(to.clone()).into()),
        }
        Ok(patiently(|| self.backend.rollback(&Peer::own(), &tree.id, to))?)
    }

    fn forget(&mut self) -> Result<(), Trouble> {
        if let Some(tree) = &self.tree {
            match patiently(|| self.backend.forget_kept(&tree.id)) {
                Err(Error::WorkspaceNotFound(_)) => {}
                forgotten => forgotten?,
            }
        }
        self.tree = None;
        Ok(())
    }
}

/// Tries again while the engine's own patience ends before the others' work does.
fn patiently<T>(work: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 1..ATTEMPTS {
        match work() {
            Err(Error::Busy) => {}
            done => return done,
        }
    }
    work()
}

fn snapshot_id(text: String) -> Result<SnapshotId, RoutingError> {
    Ok(SnapshotId::new(text)?)
}

/// Takes over from the engine which snapshots are lost.
fn mark(known: &mut [Snapshot], found: &[Snapshot]) {
    for snapshot in known {
        if let Some(found) = found.iter().find(|found| found.id == snapshot.id) {
            snapshot.missing = found.missing;
        }
    }
}

impl Actor for KeeperActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<KeepTree> for KeeperActor {
    type Result = Step<Vec<Warning>>;

    fn handle(&mut self, KeepTree { dir, id, metadata }: KeepTree, _: &mut Context<Self>) -> Self::Result {
        self.work(dir, move |on| {
            let id = snapshot_id(id)?;
            on.keep(&NewSnapshot {
                id,
                message: None,
                metadata,
                pin: false,
                skip_unchanged: false,
                even_empty: true,
            })
        })
    }
}

impl Handler<RewindTree> for KeeperActor {
    type Result = Step<RolledBack>;

    fn handle(&mut self, RewindTree { dir, to }: RewindTree, _: &mut Context<Self>) -> Self::Result {
        self.work(dir, move |on| on.rewind(&snapshot_id(to)?))
    }
}

impl Handler<ListKept> for KeeperActor {
    type Result = Step<Vec<Snapshot>>;

    fn handle(&mut self, ListKept { dir }: ListKept, _: &mut Context<Self>) -> Self::Result {
        let resolved = self.resolve(dir);
        Box::pin(resolved.map(|dir, actor: &mut Self, _| {
            Ok(actor.trees.get(&dir).map(|tree| tree.snapshots.clone()).unwrap_or_default())
        }))
    }
}

impl Handler<ForgetTree> for KeeperActor {
    type Result = Step<()>;

    fn handle(&mut self, ForgetTree { dir }: ForgetTree, _: &mut Context<Self>) -> Self::Result {
        Box::pin(self.work(dir, |on| on.forget()).map(|result, actor, _| {
            // It may be dropped: the next one finds the same work.
            let _ = actor.collector.try_send(Collect);
            result
        }))
    }
}

impl Handler<LookAgain> for KeeperActor {
    type Result = ();

    fn handle(&mut self, _: LookAgain, ctx: &mut Context<Self>) {
        let backend = Arc::clone(&self.backend);
        ctx.spawn(blocking(move || backend.kept()).into_actor(self).map(|states, actor, _| match states {
            Ok(states) => {
                for state in states {
                    if let Some(tree) = actor.trees.get_mut(&state.workspace.path) {
                        mark(&mut tree.snapshots, &state.snapshots);
                    }
                }
            }
            Err(failure) => tracing::warn!(%failure, "what is kept cannot be read again"),
        }));
    }
}

#[cfg(test)]
mod tests;
