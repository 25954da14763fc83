//! The flat directory of a workspace that was there before directories for each: message arrays, read and removed, never
//! written.

use std::path::Path;
use std::sync::Arc;

use super::dir::{Dir, Pinned};
use super::{Error, StoreRoot};

/// The flat directory of a workspace, if it has one.
#[derive(Debug)]
pub(super) struct Legacy {
    pinned: Option<Pinned>,
}

impl Legacy {
    /// The flat directory of a workspace, given its canonical path.
    pub(super) fn new(root: &StoreRoot, workspace: &str) -> Self {
        let path = root.legacy.as_ref().map(|relative| Path::new(workspace).join(relative));
        Self { pinned: path.map(Pinned::new) }
    }

    /// The directory, if it is there.
    pub(super) fn dir(&self) -> Result<Option<Arc<Dir>>, Error> {
        self.pinned.as_ref().map_or(Ok(None), Pinned::get)
    }
}
