//! The lock of one session: held by whoever writes or removes it.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use cofferdam_protocol::session::SessionId;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::Error;
use super::dir::{Dir, file_name};
use crate::disk::Disk;

/// Of session files, their locks and temporary files.
pub(super) const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// How often a lock may be removed by its holder between our opening and locking it, before that counts as contention.
const ATTEMPTS: usize = 64;

/// A file that nobody else has locked. Given back when dropped, also if a program that was started meanwhile still has
/// the descriptor; by the kernel if the process dies.
#[derive(Debug)]
pub(super) struct Lock {
    dir: Arc<Dir>,
    name: String,
    file: File,
}

impl Lock {
    /// The lock of a session, whose file is made if it is not there. `Conflict` if somebody has it.
    pub(super) fn take(disk: &Disk, dir: &Arc<Dir>, id: &SessionId) -> Result<Self, Error> {
        let name = format!(".{id}.lock");
        Self::hold(dir, name, id, |name| open_or_create(disk, dir, name).map(Some))?
            .ok_or_else(|| Error::Conflict(id.clone()))
    }

    /// The lock of a file in the flat directory: the file itself. `None` if there is no such file, or what stands there is
    /// none; `Conflict` if somebody has it.
    pub(super) fn of_file(dir: &Arc<Dir>, id: &SessionId) -> Result<Option<Self>, Error> {
        Self::hold(dir, file_name(id), id, |_| match dir.open_session(id) {
            Err(Error::Corrupt { .. }) => Ok(None),
            opened => Ok(opened?.map(|session| session.file)),
        })
    }

    /// Whoever removes a session removes the file that is locked, too. So a lock counts only if its name still leads to
    /// it once it is held; else there may be another holder, of the new file of that name.
    fn hold(
        dir: &Arc<Dir>,
        name: String,
        id: &SessionId,
        open: impl Fn(&str) -> Result<Option<File>, Error>,
    ) -> Result<Option<Self>, Error> {
        for _ in 0..ATTEMPTS {
            let Some(file) = open(&name)? else { return Ok(None) };
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => break,
                Err(errno) => return Err(refused(dir, &name, errno)),
            }
            let lock = Self { dir: dir.clone(), name: name.clone(), file };
            if lock.is_named()? {
                return Ok(Some(lock));
            }
        }
        Err(Error::Conflict(id.clone()))
    }

    /// Whether its name leads to it.
    fn is_named(&self) -> Result<bool, Error> {
        let refused = |errno| refused(&self.dir, &self.name, errno);
        let held = rustix::fs::fstat(&self.file).map_err(refused)?;
        match rustix::fs::statat(&*self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) => Ok((named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(refused(errno)),
        }
    }

    /// Removes the file that is locked. Nothing that the lock is for may be done after that. Not durable yet.
    pub(super) fn remove(self, disk: &Disk) -> Result<(), Error> {
        if self.is_named()? {
            disk.unlink(&*self.dir, &self.name).map_err(|error| Error::io("remove", self.path(), error))?;
        }
        Ok(())
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join(&self.name)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the descriptor is not enough: a program that is just being started may have it, too.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

fn open_or_create(disk: &Disk, dir: &Dir, name: &str) -> Result<File, Error> {
    let refused = |error: io::Error| refused(dir, name, error);
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    for _ in 0..ATTEMPTS {
        match rustix::fs::openat(dir.as_fd(), name, flags, Mode::empty()) {
            Ok(found) => return private(disk, found.into()).map_err(refused),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(refused(errno.into())),
        }
        match disk.create(dir, name, OFlags::RDWR, FILE_MODE) {
            Ok(made) => return private(disk, made.into()).map_err(refused),
            // Somebody else was quicker.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(refused(error)),
        }
    }
    Err(refused(Errno::AGAIN.into()))
}

/// A lock's file that is a file, and nobody else's business.
fn private(disk: &Disk, file: File) -> io::Result<File> {
    let mode = rustix::fs::fstat(&file)?.st_mode;
    if FileType::from_raw_mode(mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    if Mode::from_raw_mode(mode) != FILE_MODE {
        disk.fchmod(&file, FILE_MODE)?;
    }
    Ok(file)
}

fn refused(dir: &Dir, name: &str, error: impl Into<io::Error>) -> Error {
    Error::io("open lock", dir.path().join(name), error)
}
