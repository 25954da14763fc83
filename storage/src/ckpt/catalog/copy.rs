//! A copy of a catalog that another process may have open, for reading it without disturbing it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, FlockOperation, Mode, OFlags};

use super::{Catalog, FILE, LOCK_FILE};
use crate::ckpt::error::{Context, Error, Result};
use crate::clock::IdGen;
use crate::disk::Disk;

/// A private copy of a store's catalog; its files go when it is dropped. Made under the lock under which the owner
/// writes, so it is one state of the catalog.
pub(crate) struct CatalogCopy {
    // In this order: closed before its files are removed.
    catalog: Arc<Catalog>,
    _files: Files,
}

/// The copy's directory.
struct Files {
    disk: Disk,
    dir: PathBuf,
}

impl CatalogCopy {
    /// Copies the catalog of the store in `store` into a directory of its own below the system's temporary one.
    ///
    /// Not for a process that has this catalog open: closing any descriptor of a file ends SQLite's locks on it.
    pub(crate) fn take(disk: &Disk, store: &Path, ids: &dyn IdGen) -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("cofferdam-check-{}", ids.fresh()));
        disk.mkdir(CWD, &dir, Mode::from_raw_mode(0o700)).context(|| format!("making {}", dir.display()))?;
        let files = Files { disk: disk.clone(), dir };
        let lock =
            File::open(store.join(LOCK_FILE)).context(|| format!("{} holds no store", store.display()))?;
        rustix::fs::flock(&lock, FlockOperation::LockShared).context(|| "locking the catalog".to_owned())?;
        for (name, required) in [(FILE.to_owned(), true), (format!("{FILE}-wal"), false)] {
            match files.copy(store, &name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && !required => {}
                copied => copied.context(|| format!("copying the catalog to {}", files.dir.display()))?,
            }
        }
        drop(lock);
        let catalog = Catalog::open(disk, &files.dir).map_err(|error| match error {
            // The name of the copy means nothing to anybody.
            Error::NewerFormat { found, known, .. } => {
                Error::NewerFormat { what: store.join(FILE).display().to_string(), found, known }
            }
            other => other,
        })?;
        Ok(Self { catalog: Arc::new(catalog), _files: files })
    }
}

impl CatalogCopy {
    /// The catalog as it was.
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }
}

impl Files {
    fn copy(&self, store: &Path, name: &str) -> io::Result<()> {
        let mut from = File::open(store.join(name))?;
        let path = self.dir.join(name);
        let to = File::from(self.disk.create(CWD, &path, OFlags::WRONLY, Mode::from_raw_mode(0o600))?);
        let mut buffer = vec![0; 1 << 20];
        let mut offset = 0;
        loop {
            match from.read(&mut buffer)? {
                0 => return Ok(()),
                n => self.disk.write_all_at(&to, &buffer[..n], offset)?,
            }
            offset = to.metadata()?.len();
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // Best effort: what stays is a private file in a temporary directory.
        for suffix in ["", "-wal"] {
            let _ = self.disk.unlink(CWD, self.dir.join(format!("{FILE}{suffix}")));
        }
        let _ = self.disk.unlink(CWD, self.dir.join(LOCK_FILE));
        let _ = self.disk.rmdir(CWD, &self.dir);
    }
}
