//! Directories of which the program takes checkpoints for itself. They are registered apart from the workspaces that
//! people have, and neither kind knows of the other; but whoever works on one waits for who works around or inside it.

use std::path::Path;

use cofferdam_protocol::ckpt::WorkspaceId;

use super::Store;
use crate::ckpt::catalog::WorkspaceRow;
use crate::ckpt::error::{Error, Result};
use crate::ckpt::model::WorkspaceState;
use crate::peer::Peer;

/// Where agents have directories of their own, below the state directory; the only ones there that can be kept.
pub const AGENT_DIRS: &str = "pod/agents";

impl Store {
    pub(super) fn keep_apart(&self, dir: &Path) -> Result<WorkspaceState> {
        self.register(&Peer::own(), dir, true)
    }

    pub(super) fn erase_kept(&self, workspace: &WorkspaceId) -> Result<()> {
        let find = || {
            let row = self.registered(workspace)?;
            row.kept.then_some(row).ok_or_else(|| Error::WorkspaceNotFound(workspace.clone()))
        };
        self.end_registration(find, |row| self.catalog.erase(row.key))
    }
}

/// One that lay inside another would be brought back by the other's rollback, behind its own back.
pub(super) fn must_stand_alone(all: &[WorkspaceRow], path: &Path) -> Result<()> {
    let mut others = all.iter().map(|row| &row.workspace.path).filter(|other| *other != path);
    match others.find(|other| other.starts_with(path) || path.starts_with(other)) {
        None => Ok(()),
        Some(other) => {
            let text = format!(
                "{} and {} are both kept, and one lies in the other",
                path.display(),
                other.display()
            );
            Err(Error::InvalidPath(text))
        }
    }
}
