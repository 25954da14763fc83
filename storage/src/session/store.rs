//! The store as one workspace sees it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::legacy::Legacy;
use super::scope::Scope;
use super::{Config, Error, StoreRoot};
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
    pub home: Option<PathBuf>,
}

/// The sessions of one workspace. Opening and reading make nothing; directories are made by the first write.
pub struct SessionStore {
    pub(super) parts: StoreParts,
    /// Canonical path of the workspace.
    pub(super) workspace: String,
    /// The directory of directories.
    pub(super) root: PathBuf,
    /// This workspace's directory.
    pub(super) scope: Scope,
    /// The one before it.
    pub(super) legacy: Legacy,
    /// Whether what died writers left was removed already.
    pub(super) swept: AtomicBool,
}

impl SessionStore {
    /// The store of the workspace at a path, however it is written. Its directories are held from now on, those that are
    /// there.
    pub fn open(parts: StoreParts, config: &Config, workspace: &Path) -> Result<Self, Error> {
        let canonical = std::fs::canonicalize(workspace)
            .map_err(|error| Error::io("resolve workspace", workspace, error))?;
        let canonical = canonical.into_os_string().into_string().map_err(|path| {
            Error::InvalidRequest(format!("the workspace's canonical path {path:?} is not UTF-8"))
        })?;
        let root = StoreRoot::resolve(&config.persist_dir, parts.home.as_deref(), Path::new(&canonical))?;
        let store = Self {
            parts,
            scope: Scope::new(&root, &canonical),
            legacy: Legacy::new(&root, &canonical),
            root: root.path,
            workspace: canonical,
            swept: AtomicBool::new(false),
        };
        store.scope.for_reading()?;
        store.legacy.dir()?;
        Ok(store)
    }

    /// The workspace's canonical path.
    pub fn workspace(&self) -> &str {
        &self.workspace
    }
}
