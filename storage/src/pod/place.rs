//! Where a task's files are.

use std::path::{Path, PathBuf};

use cofferdam_protocol::pod::TaskSummary;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::error::{Error, Result};
use super::sandbox::{Resolved, identity};
use crate::ckpt::FileKind;
use crate::fs::{Held, Root};
use crate::path::{InvalidName, RelPath};

/// A task's directory, as its record names it.
#[derive(Clone, Debug)]
pub struct TaskPlace {
    /// The sandbox root when it was reserved; `None` where a migrated task's cannot be told.
    pub(super) root: Option<PathBuf>,
    /// Its own directory.
    pub(super) dir: PathBuf,
}

impl TaskPlace {
    /// That of a task; `None` for a migrated one whose directory is on another system.
    pub fn of(task: &TaskSummary) -> Option<Self> {
        let absolute = |text: &str| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
        Some(Self { root: absolute(&task.sandbox_root), dir: absolute(&task.task_dir)? })
    }

    /// The directory held (to work beneath it; it may be unreadable), reached beneath its sandbox root following no
    /// link and entering no mount; `None` if it is gone.
    pub fn open(&self) -> Result<Option<Root>> {
        let (root, path) = match &self.root {
            Some(root) => (root.as_path(), self.below(root)?),
            // Without a root nobody can say which links on the way are the user's own.
            None => {
                let parent = self.dir.parent().ok_or_else(|| self.outside())?;
                (parent, self.below(parent)?)
            }
        };
        let Some(root) = open_root(root)? else { return Ok(None) };
        let Some(dir) = hold_dir(&root, &path)? else { return Ok(None) };
        Root::held(dir).map(Some).map_err(|error| Error::files(self.dir.display().to_string(), error))
    }

    /// Where the directory is, whatever links lead there; `None` if they lead nowhere.
    pub fn resolved(&self) -> Option<PathBuf> {
        Some(Resolved::new(&self.dir).ok()?.path())
    }

    /// The way from a sandbox root to the directory, which is neither the root nor outside of it.
    pub(super) fn below(&self, root: &Path) -> Result<RelPath> {
        let way = self.dir.strip_prefix(root).map_err(|_| self.outside())?;
        let names: Vec<_> = way.components().map(|part| part.as_os_str().as_encoded_bytes()).collect();
        if names.is_empty() {
            return Err(Error::RootProtected(format!(
                "{} is the sandbox root and no task's directory",
                self.dir.display()
            )));
        }
        RelPath::new(&names.join(&b'/')).map_err(|InvalidName| self.outside())
    }

    fn outside(&self) -> Error {
        Error::PathOutside(format!("{} is not in the task's sandbox root", self.dir.display()))
    }
}

/// Whether a path, of which the last part may be missing, leads to a directory or beneath it, whatever the two are called:
/// through links, another mount of it, names that differ in case. Where either cannot be looked at it does not.
pub fn leads_into(path: &Path, dir: &Path) -> bool {
    let Ok(dir) = identity(dir) else { return false };
    let found = Resolved::new(path);
    found.is_ok_and(|found| found.existing.ancestors().any(|at| identity(at).is_ok_and(|at| at == dir)))
}

/// Holds a sandbox root, following links to it: they are the user's choice. `None` if it is gone.
pub(super) fn open_root(path: &Path) -> Result<Option<Root>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let held = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => Root::held(fd).map(Some),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno.into()),
    };
    held.map_err(|error| Error::files(path.display().to_string(), error))
}

/// Holds what stands at a path; `None` if nothing does. Refuses to pass a link or a mount.
pub(super) fn hold(root: &Root, path: &RelPath) -> Result<Option<Held>> {
    root.hold(path).map(Some).or_else(|error| match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => Ok(None),
        Some(Errno::LOOP | Errno::XDEV) => Err(outside(path)),
        _ => Err(Error::files(path.to_string(), error)),
    })
}

/// Holds the directory at a path; `None` if there is none. Refuses a link in its place, too.
pub(super) fn hold_dir(root: &Root, path: &RelPath) -> Result<Option<Held>> {
    let held = hold(root, path)?;
    match held.as_ref().map(|held| held.stat().kind) {
        Some(FileKind::Directory) => Ok(held),
        Some(FileKind::Symlink) => Err(outside(path)),
        _ => Ok(None),
    }
}

/// The refusal of a path that a link or a mount leads elsewhere.
pub(super) fn outside(path: &RelPath) -> Error {
    Error::PathOutside(format!("{path} leads out of the sandbox: a link or a mount is in the way"))
}
