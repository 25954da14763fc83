//! A workspace for one operation: visible to the peer, locked, its directory open and verified.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use cofferdam_protocol::ckpt::WorkspaceId;
use rustix::fs::FlockOperation;

use super::Store;
use super::locks::PathLock;
use crate::ckpt::catalog::WorkspaceRow;
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::rollback;
use crate::fs::{Root, stat_fd};
use crate::path::RelPath;
use crate::peer::Peer;

/// A workspace nobody else works on meanwhile.
pub(super) struct Held<'a> {
    /// Its registration.
    pub(super) row: WorkspaceRow,
    /// Its directory, locked against other processes.
    pub(super) root: Arc<Root>,
    /// Staging directories of rollbacks, here and in workspaces inside this one.
    pub(super) ignore: HashSet<RelPath>,
    _lock: PathLock<'a>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Closing the directory is not enough: a child process that is being started has it for a moment, too.
        let _ = rustix::fs::flock(&*self.root, FlockOperation::Unlock);
    }
}

impl Store {
    /// The registration of that id.
    pub(super) fn registered(&self, workspace: &WorkspaceId) -> Result<WorkspaceRow> {
        let row = self.catalog.workspace(workspace)?;
        row.ok_or_else(|| Error::WorkspaceNotFound(workspace.clone()))
    }

    /// The same; what is another user's, or kept, does not exist.
    pub(super) fn visible(&self, peer: &Peer, workspace: &WorkspaceId) -> Result<WorkspaceRow> {
        let row = self.registered(workspace)?;
        match !row.kept && (peer.is_privileged() || peer.uid == row.workspace.owner) {
            true => Ok(row),
            false => Err(Error::WorkspaceNotFound(workspace.clone())),
        }
    }

    /// The same; and for the daemon itself what is kept.
    pub(super) fn workable(&self, peer: &Peer, workspace: &WorkspaceId) -> Result<WorkspaceRow> {
        match self.registered(workspace)? {
            row if row.kept && peer.is_privileged() => Ok(row),
            _ => self.visible(peer, workspace),
        }
    }

    /// Waits until nobody else works on the workspace, around it or inside it, finishes a rollback that was cut
    /// short, and opens its directory.
    pub(super) fn hold(&self, peer: &Peer, workspace: &WorkspaceId) -> Result<Held<'_>> {
        let path = self.workable(peer, workspace)?.workspace.path;
        let began = self.clock.monotonic();
        let lock = self.locks.acquire(&path)?;
        let waited = self.clock.monotonic().saturating_sub(began);
        // Whoever held it before may have changed the registration.
        let row = self.workable(peer, workspace)?;
        self.finish_rollbacks(&row)?;
        let root = {
            let _rights = peer.enter().context(|| "taking the peer's rights".to_owned())?;
            Arc::new(open_root(&row)?)
        };
        self.locks.flock(&*root, waited)?;
        let ignore = self.staging_below(&row)?;
        Ok(Held { row, root, ignore, _lock: lock })
    }

    /// The staging directories of rollbacks below a workspace's root.
    pub(super) fn staging_below(&self, row: &WorkspaceRow) -> Result<HashSet<RelPath>> {
        let mut ignore = HashSet::new();
        for pending in rollback::pending(self.places.journal())? {
            for staging in &pending.staging {
                let staging = pending.path.join(staging.as_path());
                if let Ok(below) = staging.strip_prefix(&row.workspace.path) {
                    ignore.extend(RelPath::new(below.as_os_str().as_encoded_bytes()));
                }
            }
        }
        Ok(ignore)
    }
}

/// Opens a workspace's directory and makes sure that it is the registered one.
pub(super) fn open_root(row: &WorkspaceRow) -> Result<Root> {
    let path = &row.workspace.path;
    let replaced = || Error::WorkspaceReplaced(path.clone());
    let root = Root::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::WorkspaceGone(path.clone()),
        _ if is_no_directory(&error) => replaced(),
        _ => Error::io(path.display().to_string(), error),
    })?;
    let describe = || path.display().to_string();
    if root.identity().context(describe)? != row.identity {
        return Err(replaced());
    }
    // Given away, it is the new owner's business; but what is kept is the program's own, which gives it to whom it runs as.
    if !row.kept && stat_fd(&root).context(describe)?.uid != row.workspace.owner {
        return Err(replaced());
    }
    Ok(root)
}

/// Whether a file or a link stands where a directory should, at a path's end or on the way to it.
pub(super) fn is_no_directory(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotADirectory
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}
