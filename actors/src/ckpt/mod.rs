//! Workspaces and their snapshots: one actor that routes, one actor per workspace that writes.

mod collector;
mod config;
mod failure;
mod mailboxes;
mod messages;
mod operations;
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
