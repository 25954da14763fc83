//! Workspaces and their snapshots: one actor that routes, one actor per workspace that writes.

mod collector;
mod config;
mod failure;
mod keeper_actor;
mod mailboxes;
mod messages;
mod operations;
mod path_locks;
mod reference;
mod retention;
mod shown;
mod snapshot_actor;
#[cfg(test)]
pub(crate) mod testing;
mod ticket;
mod workspace_actor;

use std::sync::Arc;

use cofferdam_storage::ckpt::{Backend, Error};
use cofferdam_storage::clock::Clock;
use tokio::task::spawn_blocking;

pub use config::{ConfigFile, ConfigSource, Installation};
pub use failure::{Failure, RoutingError, Trouble};
pub use mailboxes::Ckpt;
pub use messages::*;
pub use shown::shown_path;

/// What the checkpoint actors work with.
#[derive(Clone)]
pub struct Parts {
    /// The snapshot engine.
    pub backend: Arc<dyn Backend>,
    /// Where settings come from.
    pub config: Arc<dyn ConfigSource>,
    /// What only the command line decides.
    pub installation: Installation,
    /// Uptime and the age of snapshots.
    pub clock: Arc<dyn Clock>,
}

/// Starts the checkpoint actors in the running actix system. A configuration that cannot be used is logged and the
/// defaults are in effect until a reload.
pub async fn start(parts: Parts) -> Result<Ckpt, Error> {
    snapshot_actor::start(parts).await
}

/// Runs something that may block on a thread where it may. A panic becomes a failure.
async fn blocking<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, Failure>
where
    T: Send + 'static,
    E: Into<Trouble> + Send + 'static,
{
    match spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| error.into().into()),
        Err(error) if error.is_panic() => Err(RoutingError::Panicked.into()),
        Err(_) => Err(RoutingError::Stopping.into()),
    }
}
