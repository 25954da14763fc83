//! Where the store is.

use std::path::{Path, PathBuf};

/// The directory that holds a directory for each workspace. Its links are resolved here and never again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRoot {
    /// Absolute, its existing part canonical.
    pub path: PathBuf,
    /// Where the conversations of this workspace were before there were directories for each: relative to the workspace.
    /// Only where it provably belongs to this workspace.
    pub legacy: Option<PathBuf>,
}

impl StoreRoot {
    /// Resolves the configured directory for a workspace, whose path is canonical.
    pub fn resolve(persist_dir: &str, home: Option<&Path>, workspace: &Path) -> Result<Self, super::Error> {
        todo!("{persist_dir} {home:?} {workspace:?}")
    }
}
