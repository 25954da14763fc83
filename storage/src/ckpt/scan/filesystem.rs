//! What the kind of filesystem says about its files' times.

use std::os::fd::AsFd;

use crate::ckpt::error::{Context, Result};
use crate::sys::{self, OVERLAYFS};

/// What can be relied on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filesystem {
    /// Times move with every tick of the kernel's clock.
    pub(super) fine_timestamps: bool,
    backing: Backing,
}

/// Where the bytes of files end up.
#[derive(Clone, Copy, Debug)]
enum Backing {
    Disk,
    Memory,
    /// Another filesystem, of either kind.
    Layer,
}

const EXT: u64 = 0xef53;
const XFS: u64 = 0x5846_5342;
const BTRFS: u64 = 0x9123_683e;
pub(super) const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;
const F2FS: u64 = 0xf2f5_2010;
const ZFS: u64 = 0x2fc1_2fc1;
const BCACHEFS: u64 = 0xca45_1a4e;

impl Filesystem {
    /// Of the filesystem that holds a file.
    pub(super) fn of(file: impl AsFd) -> Result<Self> {
        let found = rustix::fs::fstatfs(file).context(|| "ask for the workspace's filesystem".into())?;
        let kind = found.f_type as u64;
        Ok(Self {
            fine_timestamps: matches!(kind, EXT | XFS | BTRFS | TMPFS | F2FS | ZFS | OVERLAYFS | BCACHEFS),
            backing: match kind {
                TMPFS | RAMFS => Backing::Memory,
                OVERLAYFS => Backing::Layer,
                _ => Backing::Disk,
            },
        })
    }

    /// Whether the first store through a mapping that is made from now on moves the file's times. Not in memory: a page
    /// there that was only read through a mapping can be written without the kernel's knowing.
    pub(super) fn new_mappings_show(self) -> bool {
        !matches!(self.backing, Backing::Memory)
    }

    /// Whether after fdatasync the next store through a mapping moves the file's times again. In memory there is nothing
    /// to sync.
    pub(super) fn sync_rearms_mappings(self, file: impl AsFd) -> bool {
        match self.backing {
            Backing::Disk => true,
            Backing::Memory => false,
            Backing::Layer => sys::is_on_disk(file),
        }
    }

    /// The same, taken for one on a disk if it is in memory, as directories for temporary files often are.
    #[cfg(test)]
    pub(super) fn as_if_on_disk(self) -> Self {
        match self.backing {
            Backing::Memory => Self { backing: Backing::Disk, ..self },
            Backing::Disk | Backing::Layer => self,
        }
    }
}
