//! What stands under one name that is no directory, or a directory that cannot be listed.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use super::file::{FileReader, Reading, is_ours};
use super::record::{Item, key_of};
use super::xattr;
use crate::ckpt::error::{Error, Result};
use crate::ckpt::format::{Content, Encoder, Entry, EntryKind, Meta, Xattrs};
use crate::ckpt::model::{FileKind, WarningKind};
use crate::fs::Stat;
use crate::path::Name;

/// What stands under a name.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) meta: Meta,
    pub(super) kind: EntryKind,
    /// The stat cache's key for it.
    pub(super) key: Vec<u8>,
    /// Whether an equal key will prove that it still is the same.
    pub(super) clean: bool,
    /// What the user should know about it.
    pub(super) warning: Option<WarningKind>,
    /// Which file it is, if that has other names.
    pub(super) inode: Option<Inode>,
}

/// What the names of one file share: device and inode number.
pub(super) type Inode = ((u32, u32), u64);

impl Found {
    /// Appends it to a record, under a name.
    pub(super) fn encode(self, name: Name, out: &mut Encoder) -> u64 {
        let size = match self.kind {
            EntryKind::File { size, .. } => size,
            _ => 0,
        };
        let entry = Entry { name, meta: self.meta, kind: self.kind };
        let mut encoded = Encoder::new();
        entry.encode(&mut encoded);
        let item = Item {
            name: entry.name.as_bytes(),
            key: &self.key,
            clean: self.clean,
            entry: encoded.as_slice(),
        };
        item.encode(out);
        size
    }

    /// A name that is there and about which the kernel says nothing else.
    pub(super) fn unknown(is_directory: bool) -> Self {
        let kind = if is_directory {
            EntryKind::Directory(None)
        } else {
            EntryKind::File { size: 0, content: Content::Unread }
        };
        Self {
            meta: Meta::default(),
            kind,
            key: Vec::new(),
            clean: false,
            warning: Some(WarningKind::Unreadable),
            inode: None,
        }
    }

    /// A directory that cannot be listed.
    pub(super) fn unlisted(dir: impl AsFd, name: impl Arg + Copy, stat: &Stat) -> Self {
        Self {
            meta: meta(stat, held_xattrs(dir, name).unwrap_or_default()),
            kind: EntryKind::Directory(None),
            key: key_of(stat),
            clean: false,
            warning: Some(WarningKind::Unreadable),
            inode: None,
        }
    }
}

/// Captures a name that is no directory. `None` if it is gone or something else by now.
pub(super) fn leaf(
    files: &mut FileReader<'_>,
    dir: impl AsFd,
    name: impl Arg + Copy,
    stat: &Stat,
) -> Result<Option<Found>> {
    let start = files.clock.wall();
    let kind = match stat.kind {
        FileKind::File => return Ok(files.read(&dir, name, stat)?.map(file)),
        FileKind::Directory => return Ok(None),
        FileKind::MountPoint => {
            return Ok(Some(Found {
                meta: Meta::default(),
                kind: EntryKind::MountPoint,
                key: key_of(stat),
                clean: true,
                warning: Some(WarningKind::MountPoint),
                inode: None,
            }));
        }
        FileKind::Symlink => match rustix::fs::readlinkat(&dir, name, Vec::new()) {
            Ok(target) => EntryKind::Symlink(target.into_bytes().into()),
            Err(_) => return Ok(None),
        },
        FileKind::Fifo => EntryKind::Fifo,
        FileKind::Socket => EntryKind::Socket,
        FileKind::CharDevice => EntryKind::CharDevice(stat.rdev.0, stat.rdev.1),
        FileKind::BlockDevice => EntryKind::BlockDevice(stat.rdev.0, stat.rdev.1),
    };
    let xattrs = match stat.kind {
        // A link has none of the attributes that are kept.
        FileKind::Symlink => Ok(Xattrs::default()),
        _ => held_xattrs(&dir, name),
    };
    let (xattrs, whole) = unless_unreadable(xattrs)?;
    Ok(Some(Found {
        meta: meta(stat, xattrs),
        kind,
        key: key_of(stat),
        clean: whole && files.settled.holds(stat, start),
        warning: (!whole).then_some(WarningKind::Unreadable),
        inode: shared_inode(stat),
    }))
}

/// A file's attributes, and whether they are all that could be there.
pub(super) fn unless_unreadable(xattrs: std::result::Result<Xattrs, Errno>) -> Result<(Xattrs, bool)> {
    match xattrs.map_err(io::Error::from) {
        Ok(xattrs) => Ok((xattrs, true)),
        Err(error) if is_ours(&error) => {
            Err(Error::io("read the attributes of a file of the workspace", error))
        }
        Err(_) => Ok((Xattrs::default(), false)),
    }
}

fn file(reading: Reading) -> Found {
    let Reading { stat, xattrs, size, content, clean, changed } = reading;
    Found {
        key: key_of(&stat),
        inode: shared_inode(&stat),
        meta: meta(&stat, xattrs),
        kind: EntryKind::File { size, content },
        clean,
        warning: match content {
            Content::Unread => Some(WarningKind::Unreadable),
            _ if changed => Some(WarningKind::ChangedWhileRead),
            _ => None,
        },
    }
}

/// What an entry keeps of a file's attributes.
pub(super) fn meta(stat: &Stat, xattrs: Xattrs) -> Meta {
    // A link's mode means nothing.
    let mode = if stat.kind == FileKind::Symlink { 0 } else { stat.mode };
    Meta { mode, uid: stat.uid, gid: stat.gid, mtime: stat.mtime, xattrs }
}

/// The file's identity among the names of this tree, if it has more than one.
pub(super) fn shared_inode(stat: &Stat) -> Option<Inode> {
    let other_names = stat.nlink > 1 && !matches!(stat.kind, FileKind::Directory | FileKind::MountPoint);
    other_names.then_some((stat.dev, stat.ino))
}

/// The attributes of what may not be opened; none if it is gone.
fn held_xattrs(dir: impl AsFd, name: impl Arg + Copy) -> std::result::Result<Xattrs, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(dir, name, flags, Mode::empty()) {
        Ok(held) => xattr::of_held(held.as_fd()),
        Err(Errno::NOENT) => Ok(Xattrs::default()),
        Err(errno) => Err(errno),
    }
}
