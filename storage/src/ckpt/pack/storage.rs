//! Where packs are kept. The one place that would have to know an object store.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::{Dir, Mode, OFlags};

use super::PackId;
use super::layout::damaged;
use crate::ckpt::error::{Context, Error, Result};
use crate::disk::Disk;
use crate::peer::as_daemon;

/// A place for packs. A pack is written once, under a name never used before, and then only read or removed.
/// Called from any thread, also from one with a peer's rights.
pub trait PackStorage: Send + Sync {
    /// Begins a new pack.
    fn create(&self, id: &PackId) -> Result<Box<dyn NewPackFile>>;
    /// Opens a pack for reading; one that is still being written shows what was written so far.
    /// `Error::Corrupt` if there is none of that name.
    fn open(&self, id: &PackId) -> Result<Box<dyn PackFile>>;
    /// Removes a pack. No error if there is none of that name.
    fn remove(&self, id: &PackId) -> Result<()>;
    /// All packs, finished or not, in no order.
    fn list(&self) -> Result<Vec<PackId>>;
}

/// A pack being written, by several threads.
pub trait NewPackFile: Send + Sync {
    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes what was written survive power loss, the pack's name included.
    fn sync(&self) -> io::Result<()>;
}

/// A pack being read, by several threads.
pub trait PackFile: Send + Sync {
    /// Its length in bytes.
    fn size(&self) -> io::Result<u64>;
    /// Fills `buffer` from `offset`; `UnexpectedEof` if the pack ends before.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

/// Packs as files `<id>.pack` of one directory.
#[derive(Debug)]
pub struct DirPacks {
    disk: Disk,
    dir: Arc<OwnedFd>,
}

impl DirPacks {
    /// Packs in this directory.
    pub fn new(disk: Disk, dir: OwnedFd) -> Self {
        Self { disk, dir: Arc::new(dir) }
    }
}

const SUFFIX: &str = ".pack";

fn file_name(id: &PackId) -> String {
    format!("{id}{SUFFIX}")
}

impl PackStorage for DirPacks {
    fn create(&self, id: &PackId) -> Result<Box<dyn NewPackFile>> {
        let mode = Mode::RUSR | Mode::WUSR;
        let file = as_daemon(|| self.disk.create(&*self.dir, file_name(id), OFlags::WRONLY, mode))
            .context(|| format!("create pack {id}"))?;
        Ok(Box::new(NewFile { disk: self.disk.clone(), dir: self.dir.clone(), file: file.into() }))
    }

    fn open(&self, id: &PackId) -> Result<Box<dyn PackFile>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match as_daemon(|| rustix::fs::openat(&*self.dir, file_name(id), flags, Mode::empty())) {
            Ok(file) => Ok(Box::new(File::from(file))),
            Err(rustix::io::Errno::NOENT) => Err(damaged(id, "there is no such file")),
            Err(errno) => Err(Error::io(format!("open pack {id}"), errno.into())),
        }
    }

    fn remove(&self, id: &PackId) -> Result<()> {
        match as_daemon(|| self.disk.unlink(&*self.dir, file_name(id))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.context(|| format!("remove pack {id}")),
        }
    }

    fn list(&self) -> Result<Vec<PackId>> {
        let what = || "list the packs".to_owned();
        let mut packs = Vec::new();
        for entry in as_daemon(|| Dir::read_from(&*self.dir)).context(what)? {
            let entry = entry.context(what)?;
            let id = entry.file_name().to_str().ok().and_then(|name| name.strip_suffix(SUFFIX));
            packs.extend(id.and_then(PackId::from_hex));
        }
        Ok(packs)
    }
}

struct NewFile {
    disk: Disk,
    dir: Arc<OwnedFd>,
    file: File,
}

impl NewPackFile for NewFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.write_all_at(&self.file, bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.fsync(&self.file)?;
        self.disk.fsync(&*self.dir)
    }
}

impl PackFile for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }
}
