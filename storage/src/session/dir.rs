//! A directory of session files, held open: what is in it is reached through the descriptor, and no link is followed.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use cofferdam_protocol::session::{SessionId, limits};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::Error;
use crate::fs::open_for_reading;

/// A directory held open.
#[derive(Debug)]
pub(super) struct Dir {
    fd: OwnedFd,
    /// Where it was when it was opened; for messages.
    path: PathBuf,
    /// Whether this process has made the directory's own name durable.
    pub(super) entry_is_durable: AtomicBool,
}

/// A directory that is held from the first time it is found. One that was removed is looked for again; one that was moved
/// away, whatever took its place, stays the one that is meant.
#[derive(Debug)]
pub(super) struct Pinned {
    path: PathBuf,
    held: Mutex<Option<Arc<Dir>>>,
}

/// A session's file, open for reading: regular, as large and as old as it then was.
#[derive(Debug)]
pub(super) struct SessionFile {
    /// The file.
    pub(super) file: File,
    /// Bytes.
    pub(super) size: u64,
    /// Milliseconds since 1970.
    pub(super) modified_ms: u64,
    path: PathBuf,
}

impl Pinned {
    /// A directory at a canonical path; it need not be there.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, held: Mutex::default() }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory, if it is there. Makes nothing.
    pub(super) fn get(&self) -> Result<Option<Arc<Dir>>, Error> {
        self.get_or(|| match Dir::open(&self.path) {
            Ok(dir) => Ok(Some(dir)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("open session directory", &self.path, error)),
        })
    }

    /// The directory; from `open` if it is not held yet, or not there any more.
    pub(super) fn get_or(
        &self,
        open: impl FnOnce() -> Result<Option<Dir>, Error>,
    ) -> Result<Option<Arc<Dir>>, Error> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dir) = &*held
            && !dir.is_removed().map_err(|error| Error::io("look at session directory", &self.path, error))?
        {
            return Ok(Some(dir.clone()));
        }
        *held = open()?.map(Arc::new);
        Ok(held.clone())
    }
}

impl Dir {
    fn new(fd: OwnedFd, path: PathBuf) -> Self {
        Self { fd, path, entry_is_durable: AtomicBool::new(false) }
    }

    /// Opens the directory at an absolute path, one component at a time.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut at = Self::root()?;
        for part in path.components() {
            at = match part {
                Component::RootDir => continue,
                Component::Normal(name) => at.enter(Path::new(name))?,
                _ => return Err(io::ErrorKind::InvalidInput.into()),
            };
        }
        at.for_reading()
    }

    /// The root of the filesystem, only to go on from.
    pub(super) fn root() -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self::new(rustix::fs::open("/", flags, Mode::empty())?, "/".into()))
    }

    /// A directory in this one, only to go on from.
    pub(super) fn enter(&self, name: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty())?;
        Ok(Self::new(fd, self.path.join(name)))
    }

    /// This directory with a descriptor, and so a position in it, of its own.
    pub(super) fn for_reading(&self) -> io::Result<Self> {
        Ok(Self::new(open_for_reading(&self.fd, c".")?, self.path.clone()))
    }

    /// Where it was when it was opened; for messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where a session's file is; for messages.
    pub(super) fn path_of(&self, id: &SessionId) -> PathBuf {
        self.path.join(file_name(id))
    }

    /// Whether it has no name any more.
    fn is_removed(&self) -> io::Result<bool> {
        Ok(rustix::fs::fstat(&self.fd)?.st_nlink == 0)
    }

    /// What stands at a session's name, whatever it is.
    pub(super) fn stat(&self, id: &SessionId) -> Result<Option<Stat>, Error> {
        match rustix::fs::statat(&self.fd, file_name(id), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Error::io("look at session", self.path_of(id), errno)),
        }
    }

    /// Opens a session's file. What is no regular file is `Corrupt` and is not opened: to open a FIFO or a device can
    /// have effects.
    pub(super) fn open_session(&self, id: &SessionId) -> Result<Option<SessionFile>, Error> {
        let corrupt = |what: &str| Error::Corrupt { id: id.clone(), detail: what.to_owned() };
        let refused = |errno: Errno| Error::io("open session", self.path_of(id), errno);
        let Some(found) = self.stat(id)? else { return Ok(None) };
        if let Some(what) = irregular(&found) {
            return Err(corrupt(what));
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&self.fd, file_name(id), flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            // Something else took its place just now.
            Err(Errno::LOOP) => return Err(corrupt(LINK)),
            Err(Errno::NXIO) => return Err(corrupt(NO_FILE)),
            Err(errno) => return Err(refused(errno)),
        };
        let stat = rustix::fs::fstat(&fd).map_err(refused)?;
        if let Some(what) = irregular(&stat) {
            return Err(corrupt(what));
        }
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        Ok(Some(SessionFile {
            file: fd.into(),
            size,
            modified_ms: modified_ms(&stat),
            path: self.path_of(id),
        }))
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl SessionFile {
    /// What the file of session `id` holds. One that is larger than any session is `Corrupt`, and is not read.
    pub(super) fn read(&self, id: &SessionId) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        if self.size <= limits::SESSION_FILE {
            // One byte more shows the end of the file, and whether it grew.
            bytes.reserve_exact(self.size as usize + 1);
            let read = (&self.file).take(limits::SESSION_FILE + 1).read_to_end(&mut bytes);
            read.map_err(|error| Error::io("read session", &self.path, error))?;
            if bytes.len() as u64 <= limits::SESSION_FILE {
                return Ok(bytes);
            }
        }
        let detail = format!("session file exceeds the {} byte safety limit", limits::SESSION_FILE);
        Err(Error::Corrupt { id: id.clone(), detail })
    }
}

/// The name of a session's file.
pub(super) fn file_name(id: &SessionId) -> String {
    format!("{id}.json")
}

/// The session whose file has this name.
pub(super) fn session_of(name: &[u8]) -> Option<SessionId> {
    let id = std::str::from_utf8(name.strip_suffix(b".json")?).ok()?;
    SessionId::new(id).ok()
}

/// Milliseconds since 1970; 0 for earlier ones.
pub(super) fn modified_ms(stat: &Stat) -> u64 {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
    let millis = if stat.st_mtime < 0 { 0 } else { stat.st_mtime_nsec / 1_000_000 };
    seconds.saturating_mul(1000).saturating_add(millis)
}

const LINK: &str = "session file is a symbolic link";
const NO_FILE: &str = "session file is not a regular file";

/// What it is, if it is no regular file.
pub(super) fn irregular(stat: &Stat) -> Option<&'static str> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => None,
        FileType::Symlink => Some(LINK),
        _ => Some(NO_FILE),
    }
}
