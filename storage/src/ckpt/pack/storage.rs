//! Where packs are kept. The one place that would have to know an object store.

use std::io;
use std::os::fd::OwnedFd;

use super::PackId;
use crate::ckpt::error::Result;
use crate::disk::Disk;

/// A place for packs. A pack is written once, under a name never used before, and then only read or removed.
pub trait PackStorage: Send + Sync {
    /// Begins a new pack.
    fn create(&self, id: &PackId) -> Result<Box<dyn NewPackFile>>;
    /// Opens a pack for reading; one that is still being written shows what was written so far.
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
    fn len(&self) -> io::Result<u64>;
    /// Fills `buffer` from `offset`; `UnexpectedEof` if the pack ends before.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

/// Packs as files `<id>.pack` of one directory.
#[derive(Debug)]
#[allow(dead_code, reason = "skeleton")]
pub struct DirPacks {
    disk: Disk,
    dir: OwnedFd,
}

impl DirPacks {
    /// Packs in this directory.
    pub fn new(disk: Disk, dir: OwnedFd) -> Self {
        Self { disk, dir }
    }
}

impl PackStorage for DirPacks {
    fn create(&self, _id: &PackId) -> Result<Box<dyn NewPackFile>> {
        todo!()
    }
    fn open(&self, _id: &PackId) -> Result<Box<dyn PackFile>> {
        todo!()
    }
    fn remove(&self, _id: &PackId) -> Result<()> {
        todo!()
    }
    fn list(&self) -> Result<Vec<PackId>> {
        todo!()
    }
}
