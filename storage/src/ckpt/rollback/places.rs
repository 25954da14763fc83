//! The directories a rollback works in, and what stands at a name in them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;

use crate::ckpt::FileKind;
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::Timestamp;
use crate::disk::Disk;
use crate::fs::{FileIdentity, Root, Stat, stat_fd};
use crate::path::{Name, RelPath};

/// What stood at a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) identity: FileIdentity,
    pub(super) kind: FileKind,
    /// Of a regular file; 0 for everything else.
    pub(super) size: u64,
    pub(super) mtime: Timestamp,
    pub(super) ctime: Timestamp,
}

impl Seen {
    /// Whether it is the same file, whatever was done to it.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Whether it is the same file with what seems to be the same content. Renames and links leave this alone, and
    /// overlay filesystems change a file's identity when they copy it up.
    pub(super) fn holds(&self, other: &Self) -> bool {
        self.kind == other.kind
            && match self.kind {
                FileKind::Directory => self.is(other),
                _ => (self.size, self.mtime) == (other.size, other.mtime),
            }
    }
}

/// Directories beneath the workspace root, each opened once in a while and proven to be the one that was planned for.
pub(super) struct Places<'a> {
    pub(super) disk: &'a Disk,
    pub(super) root: &'a Root,
    mount: u64,
    /// Directories may become others by being changed.
    pub(super) overlay: bool,
    known: RefCell<HashMap<RelPath, FileIdentity>>,
    /// The latest used last.
    held: RefCell<Vec<(RelPath, Rc<OwnedFd>)>>,
}

/// How many directories are held open at most.
const HELD: usize = 16;

impl<'a> Places<'a> {
    /// `known` tells which directory each path must be; any other at that path counts as replaced.
    pub(super) fn new(
        disk: &'a Disk,
        root: &'a Root,
        known: HashMap<RelPath, FileIdentity>,
    ) -> io::Result<Self> {
        let (mount, overlay) = (stat_fd(root)?.mount, root.is_overlay()?);
        Ok(Self { disk, root, mount, overlay, known: RefCell::new(known), held: RefCell::default() })
    }

    /// Opens a directory. `None` if it is not there any more, or another thing is.
    pub(super) fn dir(&self, path: &RelPath) -> io::Result<Option<Rc<OwnedFd>>> {
        let mut held = self.held.borrow_mut();
        if let Some(index) = held.iter().position(|(at, _)| at == path) {
            held[index..].rotate_left(1);
        } else {
            let fd = match self.root.open_dir(path) {
                Ok(fd) => fd,
                Err(error) if replaced(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
            if let Some(known) = self.known.borrow().get(path)
                && !self.is(&fd, known)?
            {
                return Ok(None);
            }
            if held.len() == HELD {
                held.remove(0);
            }
            held.push((path.clone(), Rc::new(fd)));
        }
        Ok(held.last().map(|(_, fd)| fd.clone()))
    }

    /// From now on the path must be this directory, which was made there.
    pub(super) fn know(&self, path: &RelPath, dir: &OwnedFd) -> io::Result<()> {
        self.known.borrow_mut().insert(path.clone(), FileIdentity::of(dir)?);
        Ok(())
    }

    /// Whether a directory is the one on record, as far as can be known.
    pub(super) fn is(&self, dir: &OwnedFd, identity: &FileIdentity) -> io::Result<bool> {
        Ok(self.overlay || FileIdentity::of(dir)? == *identity)
    }

    /// Opens a directory that must still be the one that was planned for.
    pub(super) fn must(&self, path: &RelPath) -> io::Result<Rc<OwnedFd>> {
        self.dir(path)?.ok_or_else(|| io::Error::other("the directory was replaced meanwhile; try again"))
    }

    /// Forgets open directories, which a change of names may have made others.
    pub(super) fn forget(&self) {
        self.held.borrow_mut().clear();
    }

    /// What stands at a name; `None` if nothing does. A name on which something is mounted is
    /// [`FileKind::MountPoint`].
    pub(super) fn see(&self, dir: impl AsFd, name: &Name) -> io::Result<Option<Seen>> {
        Ok(self.hold(dir, name)?.map(|(_, seen)| seen))
    }

    /// The same with a hold on it: an `O_PATH` descriptor, that stays with it whatever the name is given to.
    pub(super) fn hold(&self, dir: impl AsFd, name: &Name) -> io::Result<Option<(OwnedFd, Seen)>> {
        let fd = match open_held(dir, name) {
            Ok(fd) => fd,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let stat = stat_fd(&fd)?;
        let seen = Seen {
            identity: FileIdentity::of(&fd)?,
            kind: if stat.mount == self.mount { stat.kind } else { FileKind::MountPoint },
            size: if stat.kind == FileKind::File { stat.size } else { 0 },
            mtime: stat.mtime,
            ctime: stat.ctime,
        };
        Ok(Some((fd, seen)))
    }

    /// What statx says of a name, something mounted on it told apart; `None` if nothing is there.
    pub(super) fn stat(&self, dir: impl AsFd, name: &Name) -> io::Result<Option<Stat>> {
        match crate::fs::stat(dir, name.as_bytes()) {
            Ok(mut stat) => {
                if stat.mount != self.mount {
                    stat.kind = FileKind::MountPoint;
                }
                Ok(Some(stat))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The root directory itself.
    pub(super) fn see_root(&self) -> io::Result<Seen> {
        let stat = stat_fd(self.root)?;
        let Stat { kind, mtime, ctime, .. } = stat;
        Ok(Seen { identity: self.root.identity()?, kind, size: 0, mtime, ctime })
    }

    /// Everything beneath a directory: calls `visit` with the path below `top`, the directory that holds it and what
    /// statx says. A directory that `visit` answers with true is entered. Holds one directory open at a time.
    pub(super) fn walk(
        &self,
        top: &RelPath,
        visit: &mut dyn FnMut(&RelPath, &OwnedFd, &Name, &Stat) -> Result<bool>,
    ) -> Result<()> {
        let mut ahead = vec![RelPath::ROOT];
        while let Some(below) = ahead.pop() {
            let path = under(top, &below);
            let what = || format!("look at {path}");
            let dir = match self.root.open_dir(&path) {
                Ok(dir) => dir,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io(what(), error)),
            };
            for name in list(&dir).context(what)? {
                let Some(stat) = self.stat(&dir, &name).context(what)? else { continue };
                let at = below.join(&name);
                if visit(&at, &dir, &name, &stat)? && stat.kind == FileKind::Directory {
                    ahead.push(at);
                }
            }
        }
        Ok(())
    }
}

/// The path of something below a directory.
pub(super) fn under(top: &RelPath, below: &RelPath) -> RelPath {
    below.components().fold(top.clone(), |path, name| path.join(&name))
}

/// Opens a name without reading what it names, following no link.
fn open_held(dir: impl AsFd, name: &Name) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name.as_bytes(), flags, Mode::empty())?)
}

/// The names in a directory.
pub(super) fn list(dir: &OwnedFd) -> io::Result<Vec<Name>> {
    let mut names = Vec::new();
    let mut buffer = [const { MaybeUninit::uninit() }; 32 * 1024];
    let mut listing = RawDir::new(dir, &mut buffer);
    while let Some(entry) = listing.next() {
        // "." and ".." are no names.
        if let Ok(name) = Name::new(entry?.file_name().to_bytes()) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Whether an error says that something else stands on the way now.
fn replaced(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV))
}
