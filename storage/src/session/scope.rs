//! A workspace's directory: its name, and the descriptor that holds it.

use std::io;
use std::path::{Component, Path};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::Mode;
use sha2::{Digest, Sha256};

use super::dir::{Dir, Pinned};
use super::{Error, StoreRoot};
use crate::disk::Disk;
use crate::fs::open_for_reading;

/// Hexadecimal digits of a scope's name.
const DIGITS: usize = 24;

/// The directory's permissions, and those of directories made on the way to it.
const MODE: Mode = Mode::RWXU;

/// The directory of one workspace's sessions.
#[derive(Debug)]
pub(super) struct Scope {
    pinned: Pinned,
}

impl Scope {
    /// The directory of a workspace, given its canonical path.
    pub(super) fn new(root: &StoreRoot, workspace: &str) -> Self {
        Self { pinned: Pinned::new(root.path.join(directory_name(workspace))) }
    }

    /// The directory, if it is there.
    pub(super) fn for_reading(&self) -> Result<Option<Arc<Dir>>, Error> {
        self.pinned.get()
    }

    /// The directory, made if it is not there and with nobody's rights but the user's; what was made is durable. And
    /// whether it was made.
    pub(super) fn for_writing(&self, disk: &Disk) -> Result<(Arc<Dir>, bool), Error> {
        let path = self.pinned.path();
        let refused = |error| Error::io("open scoped session directory", path, error);
        let mut made = false;
        let dir = self.pinned.get_or(|| make(disk, path, &mut made).map(Some).map_err(refused))?;
        let dir = dir.ok_or_else(|| refused(io::ErrorKind::NotFound.into()))?;
        if !made && !dir.entry_is_durable.load(Ordering::Relaxed) {
            sync_entry(disk, &dir).map_err(refused)?;
        }
        dir.entry_is_durable.store(true, Ordering::Relaxed);
        let mode = rustix::fs::fstat(&*dir).map_err(|errno| refused(errno.into()))?.st_mode;
        if Mode::from_raw_mode(mode) != MODE {
            disk.fchmod(&*dir, MODE).map_err(refused)?;
        }
        Ok((dir, made))
    }
}

/// The name of a workspace's directory.
pub(super) fn directory_name(workspace: &str) -> String {
    use std::fmt::Write;
    let mut name = String::with_capacity(DIGITS);
    for byte in &Sha256::digest(workspace)[..DIGITS / 2] {
        // Writing to a string cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

/// Whether this may be the name of a workspace's directory.
pub(super) fn is_directory_name(name: &[u8]) -> bool {
    name.len() == DIGITS && name.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Opens a directory and makes what is missing on the way, one component at a time; `made` tells whether anything was.
///
/// A directory's entry is durable before anything is made in the directory. So, of what died writers left, only the last
/// entry that is there may be lost; it is made durable again.
fn make(disk: &Disk, path: &Path, made: &mut bool) -> io::Result<Dir> {
    let mut at = Dir::root()?;
    for part in path.components() {
        let name = match part {
            Component::RootDir => continue,
            Component::Normal(name) => Path::new(name),
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        at = match at.enter(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if !*made {
                    sync_entry(disk, &at)?;
                }
                *made = true;
                match disk.mkdir(&at, name, MODE) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    done => done?,
                }
                let next = at.enter(name)?;
                sync_entry(disk, &next)?;
                next
            }
            entered => entered?,
        };
    }
    at.for_reading()
}

/// Makes a directory's name durable. Where we may not list what it is in, we made nothing there.
fn sync_entry(disk: &Disk, dir: &Dir) -> io::Result<()> {
    match open_for_reading(dir, c"..") {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        opened => disk.fsync(opened?),
    }
}
