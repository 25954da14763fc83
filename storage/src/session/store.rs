//! The store as one workspace sees it.

use std::path::Path;
use std::sync::Arc;

use super::{Config, Error};
use crate::clock::{Clock, IdGen};
use crate::disk::Disk;

/// What a store works with.
#[derive(Clone)]
pub struct StoreParts {
    /// The way to the disk.
    pub disk: Disk,
    /// What is written as time of a conversation.
    pub clock: Arc<dyn Clock>,
    /// Names of temporary files.
    pub ids: Arc<dyn IdGen>,
    /// The home directory, for `~`.
    pub home: Option<std::path::PathBuf>,
}

/// The sessions of one workspace. Opening and reading make nothing; directories are made by the first write.
pub struct SessionStore {
    pub(super) parts: StoreParts,
    /// Canonical path of the workspace.
    pub(super) workspace: String,
}

impl SessionStore {
    /// The store of the workspace at a path, however it is written.
    pub fn open(parts: StoreParts, config: &Config, workspace: &Path) -> Result<Self, Error> {
        let _ = (parts, config, workspace);
        todo!()
    }

    /// The workspace's canonical path.
    pub fn workspace(&self) -> &str {
        &self.workspace
    }
}
