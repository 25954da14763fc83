//! Registering a directory.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use cofferdam_protocol::ckpt::WorkspaceId;
use rustix::fs::{Mode, OFlags};

use super::Store;
use super::held::is_no_directory;
use super::kept::{AGENT_DIRS, must_stand_alone};
use crate::ckpt::catalog::{Registered, WorkspaceRow};
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::model::{Workspace, WorkspaceState};
use crate::fs::{FileIdentity, Root, stat_fd};
use crate::peer::Peer;

/// A directory that may become a workspace.
struct Candidate {
    path: PathBuf,
    owner: u32,
    identity: FileIdentity,
}

impl Store {
    pub(super) fn init_workspace(&self, peer: &Peer, path: &Path) -> Result<WorkspaceState> {
        self.register(peer, path, false)
    }

    /// Registers a directory, as a workspace or as one that is kept.
    pub(super) fn register(&self, peer: &Peer, path: &Path, kept: bool) -> Result<WorkspaceState> {
        let candidate = {
            let _rights = peer.enter().context(|| "taking the peer's rights".to_owned())?;
            self.examine(peer, path, kept)?
        };
        let Candidate { path, owner, identity } = &candidate;
        // Rules that look at other registrations, and the registration itself: one after another.
        let _registering = self.registering.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.catalog.workspaces()?;
        all.retain(|row| row.kept == kept);
        match kept {
            true => must_stand_alone(&all, path)?,
            false => must_not_be_inside_another(&all, path, *owner)?,
        }
        let is_other = |row: &WorkspaceRow| row.workspace.owner != *owner || row.identity != *identity;
        // Nobody may be at work on what stood here before when its registration passes to something else.
        let _lock = match all.iter().find(|row| row.workspace.path == *path) {
            Some(row) if is_other(row) => Some(self.locks.acquire(path)?),
            _ => None,
        };
        let row = match self.catalog.register(path, *owner, identity, kept, self.clock.wall())? {
            Registered::Known(row) => row,
            Registered::New(row) | Registered::Adopted(row) => {
                // Whatever cache has that name is of another directory; it would not be used, only kept.
                if let Err(error) = self.places.remove_cache(&self.disk, &row.workspace.id) {
                    tracing::warn!(%error, "an old stat cache stays");
                }
                row
            }
        };
        self.state_of(row)
    }

    fn state_of(&self, row: WorkspaceRow) -> Result<WorkspaceState> {
        let snapshots = self.catalog.snapshots_of(row.key)?;
        Ok(WorkspaceState {
            workspace: row.workspace,
            snapshots: snapshots.into_iter().map(|row| row.snapshot).collect(),
        })
    }

    /// Everything about the path that needs no other registration. Runs with the peer's rights.
    fn examine(&self, peer: &Peer, given: &Path, kept: bool) -> Result<Candidate> {
        let bytes = given.as_os_str().as_bytes();
        if bytes.trim_ascii().is_empty() {
            return Err(invalid("workspace path is empty"));
        }
        if bytes.contains(&0) {
            return Err(invalid("path holds a NUL byte"));
        }
        // PATH_MAX counts the NUL at the end.
        let too_long = || invalid(format!("path is too long ({} bytes)", bytes.len()));
        if bytes.len() >= 4096 {
            return Err(too_long());
        }
        let shown = given.display();
        if !given.is_absolute() {
            return Err(invalid(format!("path is not absolute: {shown}")));
        }
        let path = std::fs::canonicalize(given).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => invalid(format!("path does not exist: {shown}")),
            // Something on the way is a file.
            io::ErrorKind::NotADirectory => invalid(format!("not a directory: {shown}")),
            io::ErrorKind::InvalidFilename => too_long(),
            _ => invalid(format!("cannot stat path: {shown}: {error}")),
        })?;
        let shown = path.display();
        if path == Path::new("/") {
            return Err(invalid("root '/' is not a supported workspace; name a directory below it"));
        }
        if kept && path != given {
            return Err(invalid(format!("path leads elsewhere by a link: {}", given.display())));
        }
        let state = self.places.state();
        let agents = state.join(AGENT_DIRS);
        let is_agents = kept && path.parent().is_some_and(|dir| dir.starts_with(agents));
        if path.starts_with(state) && !is_agents {
            return Err(invalid(format!(
                "path is inside the state directory ({}): {shown}",
                state.display()
            )));
        }
        let contains_state =
            || invalid(format!("path contains the state directory ({}): {shown}", state.display()));
        if state.starts_with(&path) {
            return Err(contains_state());
        }
        let root = Root::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => invalid(format!("path does not exist: {shown}")),
            _ if is_no_directory(&error) => invalid(format!("not a directory: {shown}")),
            io::ErrorKind::PermissionDenied => invalid(format!("cannot stat path: {shown}: {error}")),
            _ => Error::io(shown.to_string(), error),
        })?;
        let describe = || shown.to_string();
        let owner = stat_fd(&root).context(describe)?.uid;
        if peer.uid != 0 && peer.uid != owner {
            return Err(invalid(format!("directory belongs to another user: {shown}")));
        }
        if crate::peer::as_daemon(|| contains(&root, state)).context(describe)? {
            return Err(contains_state());
        }
        root.settle(&self.disk).context(describe)?;
        Ok(Candidate { identity: root.identity().context(describe)?, path, owner })
    }

    pub(super) fn forget_workspace(&self, peer: &Peer, workspace: &WorkspaceId) -> Result<()> {
        let find = || self.visible(peer, workspace);
        self.end_registration(find, |row| self.catalog.forget(row.key, self.clock.wall()))
    }

    /// Ends a registration once nobody works on the directory. `find` says which, before and after the wait.
    pub(super) fn end_registration(
        &self,
        find: impl Fn() -> Result<WorkspaceRow>,
        end: impl FnOnce(&WorkspaceRow) -> Result<()>,
    ) -> Result<()> {
        let _lock = self.locks.acquire(&find()?.workspace.path)?;
        let row = find()?;
        // Half a rollback is no state to leave a directory in.
        match self.finish_rollbacks(&row) {
            Err(error @ (Error::WorkspaceGone(_) | Error::WorkspaceReplaced(_))) => {
                tracing::warn!(%error, "the workspace is forgotten all the same");
            }
            finished => finished?,
        }
        end(&row)?;
        if let Err(error) = self.places.remove_cache(&self.disk, &row.workspace.id) {
            tracing::warn!(%error, "the stat cache of a forgotten workspace stays");
        }
        Ok(())
    }
}

/// A directory inside a workspace of the same owner is in that one's snapshots already. One that was registered
/// before the one around it stays registered.
fn must_not_be_inside_another(all: &[WorkspaceRow], path: &Path, owner: u32) -> Result<()> {
    let around = |row: &&WorkspaceRow| row.workspace.owner == owner && path.starts_with(&row.workspace.path);
    let mut around = all.iter().filter(around).map(|row| &row.workspace);
    match around.clone().any(|workspace| workspace.path == path) {
        true => Ok(()),
        false => match around.next() {
            Some(Workspace { id, path, .. }) => {
                Err(Error::InsideWorkspace { workspace: id.clone(), path: path.clone() })
            }
            None => Ok(()),
        },
    }
}

/// Whether `inner` is `outer` or lies below it, by whatever name: a bind mount has names of its own.
fn contains(outer: &Root, inner: &Path) -> io::Result<bool> {
    let outer = file_id(outer)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir: OwnedFd = rustix::fs::open(inner, flags, Mode::empty())?;
    let mut here = file_id(&dir)?;
    loop {
        if here == outer {
            return Ok(true);
        }
        dir = rustix::fs::openat(&dir, "..", flags, Mode::empty())?;
        let parent = file_id(&dir)?;
        if parent == here {
            return Ok(false);
        }
        here = parent;
    }
}

/// Tells two directories apart at one moment, whatever mount they are seen through.
fn file_id(file: impl AsFd) -> io::Result<((u32, u32), u64)> {
    let stat = stat_fd(file)?;
    Ok((stat.dev, stat.ino))
}

fn invalid(text: impl Into<String>) -> Error {
    Error::InvalidPath(text.into())
}
