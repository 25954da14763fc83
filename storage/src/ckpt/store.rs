//! The `store` backend.

use std::path::PathBuf;

/// The backend that works on any filesystem, without privileges.
pub struct Store {}

/// How to open a store.
pub struct StoreOptions {
    /// The state directory.
    pub state_dir: PathBuf,
}
