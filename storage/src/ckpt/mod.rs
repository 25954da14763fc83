//! The snapshot engine: what a workspace and a snapshot are, and how they get to disk and back.
//!
//! [`Backend`] is what the actors talk to; [`Store`] is the one that works on any filesystem without privileges.
//! Below it, in the order in which a checkpoint passes through:
//!
//! - [`scan`]: walks a tree beneath a held descriptor, with the stat cache, and captures what changed;
//! - [`mod@format`]: entries, tree nodes, manifests, and their bytes;
//! - [`pack`]: the files in which objects lie;
//! - [`catalog`]: the database that says which snapshots, packs and objects there are;
//! - [`rollback`]: plan, pre-flight, journal, stage, switch, recovery;
//! - [`config`]: the configuration file.

mod backend;
mod catalog;
pub mod config;
mod error;
pub mod format;
mod model;
pub mod pack;
pub mod rollback;
pub mod scan;
mod store;
mod view;

pub use backend::Backend;
pub use error::{Error, Obstacle, Result};
pub use model::*;
pub use store::{AGENT_DIRS, Store, StoreOptions, check_state_dir};
