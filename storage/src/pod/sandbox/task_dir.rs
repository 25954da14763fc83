//! Makes the directory of a task, and removes it again if the task did not come to be.
//!
//! Nothing is synced here: a power loss ends every task, and a directory that is missing afterwards is made again or
//! shown as missing.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use cofferdam_protocol::pod::{Subdir, TaskId};
use rustix::fs::{Mode, OFlags};

use super::root::Resolved;
use crate::ckpt::FileKind;
use crate::disk::Disk;
use crate::fs::{FileIdentity, stat, stat_fd};
use crate::path::Name;
use crate::pod::error::{Error, Result};

/// The mode of what is made here: agents run as the same user, and nobody else has business there.
const MODE: Mode = Mode::RWXU;

/// How a directory is held to work beneath it.
const HELD: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The directories that [`make_task_dir`] made, so that they can be removed while they are empty.
#[derive(Debug)]
pub struct MadeDir {
    /// The task's directory.
    pub path: PathBuf,
    way: Way,
    /// For each name of the way that was gone: the directory that was made there, if one was.
    made: Vec<Option<FileIdentity>>,
}

/// The way to a task's directory.
#[derive(Debug)]
struct Way {
    /// A directory that was there before, without a link in its path.
    from: PathBuf,
    /// The names below it.
    names: Vec<Name>,
}

/// Makes `<root>/<subdir>/<task>` as far as it is missing, beneath the held root and following no link. On an error,
/// what this call made is removed again.
pub fn make_task_dir(disk: &Disk, root: &Path, subdir: &Subdir, task: &TaskId) -> Result<MadeDir> {
    let way = Way::new(root, subdir, task).map_err(|error| bad(root, error))?;
    let path = below(subdir, task).fold(root.to_owned(), |path, name| path.join(name));
    let mut dir = MadeDir { path, way, made: Vec::new() };
    match dir.make(disk) {
        Ok(()) => Ok(dir),
        Err(error) => {
            dir.unmake(disk);
            Err(error)
        }
    }
}

impl MadeDir {
    fn make(&mut self, disk: &Disk) -> Result<()> {
        let mut at = self.way.from.clone();
        let root = hold(&at).map_err(|error| bad(&at, error))?;
        let mut parent = root.try_clone().map_err(|error| bad(&at, error))?;
        for name in &self.way.names {
            at.push(name.as_os_str());
            let new = match disk.mkdir(&parent, name.as_bytes(), MODE) {
                Ok(()) => true,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
                Err(error) => return Err(bad(&at, error)),
            };
            let next = enter(&root, &parent, name, &at);
            let identity = next.as_ref().ok().and_then(|dir| FileIdentity::of(dir).ok());
            if new && identity.is_none() {
                // Without an identity it cannot be told later that it is still ours.
                let _ = disk.rmdir(&parent, name.as_bytes());
            }
            self.made.push(identity.filter(|_| new));
            parent = next?;
        }
        Ok(())
    }

    /// Removes again what was made, from the innermost on, as far as it is empty and still the same directory.
    pub fn unmake(self, disk: &Disk) {
        // Each name that was made, with the directory that holds it.
        let mut places = Vec::new();
        let Ok(root) = hold(&self.way.from) else { return };
        let Ok(mut parent) = root.try_clone() else { return };
        for (name, made) in self.way.names.iter().zip(&self.made) {
            let Ok(dir) = enter(&root, &parent, name, &self.path) else { break };
            if let Some(made) = made {
                if !FileIdentity::of(&dir).is_ok_and(|found| found == *made) {
                    break;
                }
                places.push((parent, name));
            }
            parent = dir;
        }
        for (parent, name) in places.iter().rev() {
            if disk.rmdir(parent, name.as_bytes()).is_err() {
                break;
            }
        }
    }
}

impl Way {
    fn new(root: &Path, subdir: &Subdir, task: &TaskId) -> io::Result<Self> {
        let Resolved { existing: from, missing } = Resolved::new(root)?;
        let above = missing.iter().map(|name| name.as_encoded_bytes());
        let below = below(subdir, task).map(str::as_bytes);
        let names = above.chain(below).map(Name::new).collect::<std::result::Result<_, _>>();
        Ok(Self { from, names: names.map_err(|_| io::ErrorKind::InvalidFilename)? })
    }
}

/// The names below the root.
fn below<'a>(subdir: &'a Subdir, task: &'a TaskId) -> impl Iterator<Item = &'a str> {
    subdir.segments().iter().map(String::as_str).chain([task.as_str()])
}

/// Holds the directory at a path without a link, to work beneath it; it need not be readable.
fn hold(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, HELD, Mode::empty())?)
}

/// Holds the directory `name` of a directory beneath the root; no link, and nothing mounted.
fn enter(root: &OwnedFd, parent: &OwnedFd, name: &Name, path: &Path) -> Result<OwnedFd> {
    let outside = || {
        let path = path.display();
        Error::PathOutside(format!(
            "{path} leads out of the sandbox root; remove the link or name another subdir"
        ))
    };
    match rustix::fs::openat(parent, name.as_bytes(), HELD, Mode::empty()) {
        Ok(dir) => match (stat_fd(&dir), stat_fd(root)) {
            (Ok(dir_stat), Ok(root_stat)) if dir_stat.mount == root_stat.mount => Ok(dir),
            (Ok(_), Ok(_)) => Err(outside()),
            (Err(error), _) | (_, Err(error)) => Err(bad(path, error)),
        },
        Err(_) if stat(parent, name.as_bytes()).is_ok_and(|found| found.kind == FileKind::Symlink) => {
            Err(outside())
        }
        Err(errno) => Err(bad(path, errno.into())),
    }
}

fn bad(path: &Path, source: io::Error) -> Error {
    Error::BadRoot {
        what: format!("{} cannot be made or entered; mend that or name another root", path.display()),
        source,
    }
}
