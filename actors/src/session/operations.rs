//! What each request does, in the order that decides which of several errors is reported: settings, bounds of arrays,
//! store, ids or cursor, and then the work itself.
//!
//! Operations are synchronous and know no actors: they run on a blocking thread.

use std::path::Path;
use std::sync::Arc;

use actix::Message;
use cofferdam_protocol::session::{
    ClearRequest, Envelope, InspectRequest, InvalidCursor, ListCursor, OutOfBounds, PrepareClearAllRequest,
    SessionData, SessionError, SessionId, Skipped, ValidateRequest,
};
use cofferdam_storage::session::{Config, Error, SessionStore, StoreParts};

use super::Parts;
use super::failure::error_of;
use super::messages::*;

/// A request that the store's actor carries out.
pub(super) trait Operation:
    Message<Result = Result<<Self as Operation>::Done, SessionError>> + Send + 'static
{
    /// What its success is worth.
    type Done: Send + 'static;

    /// Whether it waits for the management lease, and holds it.
    const UNDER_LEASE: bool = false;

    /// Does it. May block for as long as a disk does.
    fn run(self, parts: &Parts) -> Result<<Self as Operation>::Done, Error>;
}

impl Operation for ListSessions {
    type Done = SessionData;

    fn run(self, parts: &Parts) -> Result<SessionData, Error> {
        let Self(request) = self;
        let store = open(parts, &request.workspace_scope, Ok(()))?;
        let cursor = request.cursor.as_deref().map(ListCursor::parse).transpose()?;
        let page = store.list(request.rows(), cursor.as_ref(), request.all_workspaces)?;
        let next_cursor = page.next.map(|cursor| cursor.to_string());
        Ok(SessionData::List { sessions: page.sessions, next_cursor })
    }
}

impl Operation for InspectSession {
    type Done = SessionData;

    fn run(self, parts: &Parts) -> Result<SessionData, Error> {
        let InspectRequest { workspace_scope, session_id } = self.0;
        let store = open(parts, &workspace_scope, Ok(()))?;
        let session = store.inspect(&SessionId::new(session_id)?)?;
        Ok(SessionData::Inspect { session })
    }
}

impl Operation for ValidateSession {
    type Done = SessionData;

    fn run(self, parts: &Parts) -> Result<SessionData, Error> {
        let ValidateRequest { workspace_scope, session_id } = self.0;
        let store = open(parts, &workspace_scope, Ok(()))?;
        let session = store.validate(&SessionId::new(session_id)?)?;
        Ok(SessionData::Validate { session })
    }
}

impl Operation for PrepareClearAll {
    type Done = SessionData;

    fn run(self, parts: &Parts) -> Result<SessionData, Error> {
        let limit = self.0.ids();
        let within_bounds = self.0.within_bounds();
        let PrepareClearAllRequest { workspace_scope, protected_session_ids, cursor, .. } = self.0;
        let store = open(parts, &workspace_scope, within_bounds)?;
        let protected = [ids(protected_session_ids)?, ids(self.1)?].concat();
        let after = match cursor {
            Some(text) => Some(SessionId::new(text).map_err(|invalid| InvalidCursor(invalid.0))?),
            None => None,
        };
        let plan = store.plan(&protected, limit, after.as_ref())?;
        Ok(SessionData::PrepareClearAll {
            session_ids: texts(plan.clearable),
            protected_session_ids: texts(plan.protected),
            next_cursor: plan.next.map(|id| id.to_string()),
        })
    }
}

impl Operation for ClearSessions {
    type Done = SessionData;
    const UNDER_LEASE: bool = true;

    fn run(self, parts: &Parts) -> Result<SessionData, Error> {
        let within_bounds = self.0.within_bounds();
        let ClearRequest { workspace_scope, session_ids, protected_session_ids } = self.0;
        let store = open(parts, &workspace_scope, within_bounds)?;
        let protected = [ids(protected_session_ids)?, ids(self.1)?].concat();
        let cleared = store.clear(&session_ids, &protected);
        let skipped = |(id, error): (String, Error)| Skipped::new(&id, error_of(&error));
        Ok(SessionData::Clear {
            deleted: texts(cleared.deleted),
            skipped: cleared.skipped.into_iter().map(skipped).collect(),
        })
    }
}

impl Operation for OpenStore {
    type Done = Opened;

    fn run(self, parts: &Parts) -> Result<Opened, Error> {
        let config = settings(parts, self.project_settings.then_some(self.workspace.as_path()));
        let store = SessionStore::open(store_parts(parts), &config, &self.workspace);
        Ok(Opened { config, store: store.map(Arc::new).map_err(|error| error_of(&error)) })
    }
}

impl Operation for LoadSession {
    type Done = Envelope;

    fn run(self, _: &Parts) -> Result<Envelope, Error> {
        self.store.load(&SessionId::new(self.session_id)?)
    }
}

impl Operation for PersistSession {
    type Done = Persisted;

    fn run(self, _: &Parts) -> Result<Persisted, Error> {
        let Self { store, mut envelope } = self;
        let result = store.persist(&mut envelope).map_err(|error| error_of(&error));
        Ok(Persisted { envelope, result })
    }
}

/// The store of a request's workspace, if the request is `within_bounds`.
fn open(
    parts: &Parts,
    workspace: &str,
    within_bounds: Result<(), OutOfBounds>,
) -> Result<SessionStore, Error> {
    let workspace = Path::new(workspace);
    let config = settings(parts, Some(workspace));
    within_bounds.map_err(|why| Error::InvalidRequest(why.to_string()))?;
    SessionStore::open(store_parts(parts), &config, workspace)
}

/// The settings in effect; what is wrong with their files is logged.
fn settings(parts: &Parts, workspace: Option<&Path>) -> Config {
    let (config, warnings) = Config::load(&parts.places, workspace);
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    config
}

fn store_parts(Parts { disk, clock, ids, places }: &Parts) -> StoreParts {
    let home = places.home.clone();
    StoreParts { disk: disk.clone(), clock: Arc::clone(clock), ids: Arc::clone(ids), home }
}

fn ids(texts: Vec<String>) -> Result<Vec<SessionId>, Error> {
    texts.into_iter().map(|text| Ok(SessionId::new(text)?)).collect()
}

fn texts(ids: Vec<SessionId>) -> Vec<String> {
    ids.iter().map(SessionId::to_string).collect()
}

#[cfg(test)]
mod tests;
