//! Which workspace a client means, and registering the one it means.

use std::path::PathBuf;
use std::sync::Arc;

use actix::prelude::*;
use cofferdam_protocol::ckpt::WorkspaceId;
use cofferdam_storage::peer::Peer;
use tokio::sync::OwnedMutexGuard;

use super::super::operations::Refresh;
use super::registry::{Lookup, Registered};
use super::{Failure, RoutingError, SnapshotActor, Step, blocking, done, refuse};

/// The workspace a client means.
pub(super) struct Found {
    /// Its id.
    pub(super) id: WorkspaceId,
    /// Whether this very request registered it.
    pub(super) fresh: bool,
}

impl SnapshotActor {
    /// The registered workspace that `argument` means to this peer. Leaves the thread only for a path that is not
    /// registered as it stands.
    pub(super) fn find(&mut self, peer: &Peer, argument: &str) -> Step<WorkspaceId> {
        let not_found = RoutingError::WorkspaceNotFound(argument.to_owned());
        match self.registry.lookup(peer, argument) {
            Lookup::Known(id) => done(id),
            Lookup::Nothing => refuse(not_found),
            Lookup::Path(path) => {
                let (backend, peer) = (Arc::clone(&self.parts.backend), peer.clone());
                let asking = peer.clone();
                let canonical = blocking(move || backend.canonical(&asking, &path));
                Box::pin(canonical.into_actor(self).map(move |canonical, actor, _| {
                    let at = canonical.ok().and_then(|path| actor.registry.at(&peer, &path));
                    at.ok_or_else(|| not_found.into())
                }))
            }
        }
    }

    /// What is known of the workspace that `argument` means to this peer: at once, unless it is another path of one.
    pub(super) fn recall<T: 'static>(
        &mut self,
        peer: &Peer,
        argument: String,
        what: impl FnOnce(&Self, &Registered) -> Result<T, Failure> + 'static,
    ) -> ActorResponse<Self, Result<T, Failure>> {
        let recalled = |actor: &Self, id: &WorkspaceId, argument| match actor.registry.get(id) {
            Some(registered) => what(actor, registered),
            None => Err(RoutingError::WorkspaceNotFound(argument).into()),
        };
        if let Lookup::Known(id) = self.registry.lookup(peer, &argument) {
            return ActorResponse::reply(recalled(self, &id, argument));
        }
        ActorResponse::r#async(self.serve(|actor| {
            let found = actor.find(peer, &argument);
            Box::pin(found.map(move |id, actor, _| recalled(actor, &id?, argument)))
        }))
    }

    /// The workspace that `argument` means to this peer; an unknown directory is registered.
    pub(super) fn find_or_init(&mut self, peer: &Peer, argument: &str) -> Step<Found> {
        let path = match self.registry.lookup(peer, argument) {
            Lookup::Known(id) => return done(Found { id, fresh: false }),
            Lookup::Nothing if argument.trim().is_empty() => return refuse(RoutingError::BlankPath),
            Lookup::Nothing => return refuse(RoutingError::RelativePath(argument.to_owned())),
            Lookup::Path(path) => path,
        };
        let (backend, peer) = (Arc::clone(&self.parts.backend), peer.clone());
        let (asking, asked) = (peer.clone(), path.clone());
        let canonical = blocking(move || backend.canonical(&asking, &asked));
        Box::pin(canonical.into_actor(self).then(move |canonical, actor, _| {
            // What has no canonical form cannot be registered either, and the engine says best why.
            let path = canonical.unwrap_or(path);
            let lock = actor.init_locks.lock(path.clone());
            lock.into_actor(actor).then(move |lock, actor, _| actor.init_locked(lock, peer, path))
        }))
    }

    fn init_locked(&mut self, lock: OwnedMutexGuard<()>, peer: Peer, path: PathBuf) -> Step<Found> {
        if let Some(id) = self.registry.at(&peer, &path) {
            return done(Found { id, fresh: false });
        }
        let backend = Arc::clone(&self.parts.backend);
        let init = blocking(move || backend.init(&peer, &path));
        Box::pin(init.into_actor(self).and_then(move |state, actor, _| {
            // Whoever waits for this lock finds the workspace, and finds it as it is now.
            let found = move |id, fresh| {
                drop(lock);
                Found { id, fresh }
            };
            let id = state.workspace.id.clone();
            match actor.registry.get(&id) {
                None => done(found(actor.registry.register(state, &actor.make_writer), true)),
                Some(known) if *known.view.workspace == state.workspace => done(found(id, false)),
                // The directory was another user's, and so was all that its actor knows.
                Some(_) => {
                    let refreshed = actor.write(id.clone(), id.to_string(), Peer::own(), Refresh);
                    Box::pin(refreshed.map_ok(move |(), _, _| found(id, false)))
                }
            }
        }))
    }
}
