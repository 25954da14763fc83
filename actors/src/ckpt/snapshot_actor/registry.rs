//! Which workspaces there are, and who may see them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_protocol::ckpt::WorkspaceId;
use cofferdam_storage::ckpt::{Snapshot, WorkspaceState};
use cofferdam_storage::peer::Peer;
use tokio::sync::{Semaphore, watch};

use super::super::workspace_actor::{MAX_WRITES, View, Writer};

/// The registered workspaces.
#[derive(Default)]
pub(super) struct Registry {
    by_id: BTreeMap<WorkspaceId, Registered>,
    by_path: HashMap<PathBuf, WorkspaceId>,
}

/// One workspace.
pub(super) struct Registered {
    /// What its actor last said it is.
    pub(super) view: View,
    /// The way to its actor.
    pub(super) writer: Writer,
    /// Places for writes that are under way or wait.
    pub(super) places: Arc<Semaphore>,
    /// Whether its tree is being read for the first time: nobody else's write, so it tries nobody's patience.
    pub(super) priming: watch::Sender<bool>,
}

/// What a workspace argument says by itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// It names this workspace.
    Known(WorkspaceId),
    /// It may be another path of one.
    Path(PathBuf),
    /// It is neither an id nor an absolute path.
    Nothing,
}

impl Registry {
    /// What `argument` says: an exact id, else a path that is a registered one component by component.
    pub(super) fn lookup(&self, peer: &Peer, argument: &str) -> Lookup {
        if argument.trim().is_empty() {
            return Lookup::Nothing;
        }
        let stripped = argument.trim_end_matches('/');
        let by_id = WorkspaceId::new(stripped).ok().filter(|id| self.sees(peer, id));
        if let Some(id) = by_id {
            return Lookup::Known(id);
        }
        let path = Path::new(if stripped.is_empty() { "/" } else { stripped });
        if !path.is_absolute() {
            return Lookup::Nothing;
        }
        self.at(peer, path).map_or_else(|| Lookup::Path(path.to_owned()), Lookup::Known)
    }

    /// The workspace registered at a path.
    pub(super) fn at(&self, peer: &Peer, path: &Path) -> Option<WorkspaceId> {
        self.by_path.get(path).filter(|id| self.sees(peer, id)).cloned()
    }

    fn sees(&self, peer: &Peer, id: &WorkspaceId) -> bool {
        self.by_id.get(id).is_some_and(|registered| registered.view.exists_for(peer))
    }

    /// One workspace.
    pub(super) fn get(&self, id: &WorkspaceId) -> Option<&Registered> {
        self.by_id.get(id)
    }

    /// The workspaces that a peer may see, by id.
    pub(super) fn visible_to(&self, peer: &Peer) -> impl Iterator<Item = &Registered> {
        self.by_id.values().filter(|registered| registered.view.exists_for(peer))
    }

    /// Every workspace's id.
    pub(super) fn ids(&self) -> Vec<WorkspaceId> {
        self.by_id.keys().cloned().collect()
    }

    /// Adds a workspace with an actor of its own, unless it is there: then its actor knows it better.
    pub(super) fn register(
        &mut self,
        state: WorkspaceState,
        writer: impl FnOnce(View) -> Writer,
    ) -> WorkspaceId {
        let id = state.workspace.id.clone();
        if !self.by_id.contains_key(&id) {
            // Whatever was registered there before is not any more.
            if let Some(before) = self.by_path.insert(state.workspace.path.clone(), id.clone()) {
                self.by_id.remove(&before);
            }
            let view = View::first(state);
            let registered = Registered {
                writer: writer(view.clone()),
                view,
                places: Arc::new(Semaphore::new(MAX_WRITES)),
                priming: watch::Sender::new(false),
            };
            self.by_id.insert(id.clone(), registered);
        }
        id
    }

    /// Takes note of what a workspace is now, unless something newer is known.
    pub(super) fn publish(&mut self, id: &WorkspaceId, view: View) {
        if let Some(registered) = self.by_id.get_mut(id)
            && view.version > registered.view.version
        {
            registered.view = view;
        }
    }

    /// Takes note of which snapshots of a workspace are lost and which are not. True if something else was known.
    pub(super) fn mark(&mut self, state: &WorkspaceState) -> bool {
        let Some(registered) = self.by_id.get_mut(&state.workspace.id) else { return false };
        let marks: HashMap<_, _> =
            state.snapshots.iter().map(|snapshot| (&snapshot.id, snapshot.missing)).collect();
        let marked = |snapshot: &Snapshot| marks.get(&snapshot.id).copied().unwrap_or(snapshot.missing);
        let snapshots = &mut registered.view.snapshots;
        if snapshots.iter().all(|snapshot| snapshot.missing == marked(snapshot)) {
            return false;
        }
        let remarked = |snapshot: &Snapshot| Snapshot { missing: marked(snapshot), ..snapshot.clone() };
        *snapshots = snapshots.iter().map(remarked).collect();
        true
    }

    /// Forgets a workspace.
    pub(super) fn remove(&mut self, id: &WorkspaceId) {
        if let Some(registered) = self.by_id.remove(id) {
            self.by_path.remove(&registered.view.workspace.path);
        }
    }
}

impl Registered {
    /// Whether nothing is being done to it and nothing waits to be.
    pub(super) fn is_idle(&self) -> bool {
        self.places.available_permits() == MAX_WRITES
    }
}
