//! Space that is kept for what gives space back: on a disk without a byte left a removal has to be written down, too.

use std::path::PathBuf;
use std::sync::Mutex;

use rustix::fs::{CWD, Mode, OFlags};

use crate::disk::Disk;

/// The file's name in the store's directory.
const FILE: &str = "spare";

/// Its bytes: the log of a removal of a thousand snapshots fits.
const BYTES: u64 = 1 << 20;

/// So many times as much must be free, or the spare would be what fills the disk.
const ROOM: u64 = 8;

/// A file that holds nothing but space, where the filesystem can promise that.
#[derive(Debug)]
pub(super) struct Spare {
    disk: Disk,
    file: PathBuf,
    /// Whether it is there.
    kept: Mutex<bool>,
}

impl Spare {
    /// The spare of the store in that directory; not looked at before [`Spare::keep`].
    pub(super) fn new(disk: &Disk, store: &std::path::Path) -> Self {
        Self { disk: disk.clone(), file: store.join(FILE), kept: Mutex::new(false) }
    }

    /// Has it there, if it can be had.
    pub(super) fn keep(&self) {
        let mut kept = self.kept();
        if *kept {
            return;
        }
        *kept = match self.make() {
            Ok(made) => made,
            Err(error) => {
                tracing::debug!(%error, "no space is kept for removals on a full disk");
                false
            }
        };
    }

    /// Gives its space to whatever comes next. False if there was none.
    pub(super) fn give_up(&self) -> bool {
        let mut kept = self.kept();
        std::mem::take(&mut *kept) && self.disk.unlink(CWD, &self.file).is_ok()
    }

    fn make(&self) -> std::io::Result<bool> {
        match std::fs::symlink_metadata(&self.file) {
            Ok(found) if found.is_file() && found.len() == BYTES => return Ok(true),
            // Its making was cut short.
            Ok(_) => self.disk.unlink(CWD, &self.file)?,
            Err(_) => {}
        }
        let dir = self.file.parent().unwrap_or(&self.file);
        let space = rustix::fs::statvfs(dir)?;
        if space.f_bavail.saturating_mul(space.f_frsize) < BYTES * ROOM {
            return Ok(false);
        }
        let flags = OFlags::WRONLY;
        let file = self.disk.create(CWD, &self.file, flags, Mode::from_raw_mode(0o600))?;
        match self.disk.allocate(&file, BYTES) {
            Ok(()) => Ok(true),
            Err(error) => {
                self.disk.unlink(CWD, &self.file)?;
                Err(error)
            }
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, bool> {
        self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
