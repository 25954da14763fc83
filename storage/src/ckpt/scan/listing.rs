//! One directory against its record: what is as it was, what has to be read, and which directories are in it.

use std::ffi::CStr;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::fs::{Access, AtFlags};

use super::file::is_ours;
use super::found::{Found, Inode, leaf, shared_inode};
use super::names::{Listed, Names};
use super::record::{Item, Items, key, split_at_name};
use super::walk::Worker;
use crate::ckpt::error::{Error, Result};
use crate::ckpt::format::{Encoder, Entry};
use crate::ckpt::model::{FileKind, Warning, WarningKind};
use crate::fs::{Stat, stat, stat_fd};
use crate::path::{Name, RelPath};

/// How often a directory that changes while it is listed is listed.
const LISTINGS: usize = 3;

/// A directory with more names is compared by two threads.
const MANY: usize = 4096;

/// What a directory holds.
#[derive(Debug)]
pub(super) struct Listing {
    /// The directory's attributes before it was listed.
    pub(super) stat: Stat,
    /// What is in it.
    pub(super) contents: Contents,
}

/// What some names of a directory are.
#[derive(Debug)]
pub(super) struct Contents {
    /// The items of the new record, without the directories whose entries are not known; `None` if every item of the
    /// old record stands.
    pub(super) items: Option<Vec<u8>>,
    /// Directories in it.
    pub(super) directories: Vec<Subdirectory>,
    /// What is in it, without directories.
    pub(super) tally: Tally,
    /// Whether a name was not there any more when it was looked at.
    missed: bool,
}

/// A directory in a directory.
#[derive(Debug)]
pub(super) struct Subdirectory {
    pub(super) name: Name,
    /// The stat cache's key for it.
    pub(super) key: Box<[u8]>,
    /// Its entry in the record, if that has the same key.
    pub(super) known: Option<Box<Entry>>,
}

/// What a capture counts and collects.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) entries: u64,
    pub(super) bytes: u64,
    pub(super) warnings: Vec<Warning>,
    pub(super) names: Vec<SharedName>,
}

/// One of several names of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SharedName {
    pub(super) inode: Inode,
    pub(super) path: RelPath,
    /// A hash of the file's key when it was captured under this name.
    pub(super) state: u64,
}

impl Tally {
    /// Adds what was found elsewhere.
    pub(super) fn add(&mut self, mut other: Self) {
        self.entries += other.entries;
        self.bytes += other.bytes;
        self.warnings.append(&mut other.warnings);
        self.names.append(&mut other.names);
    }

    /// Adds what was found under a name.
    pub(super) fn found(
        &mut self,
        path: impl Fn() -> RelPath,
        warning: Option<WarningKind>,
        inode: Option<Inode>,
        key: &[u8],
    ) {
        self.entries += 1;
        self.warnings.extend(warning.map(|kind| Warning { path: path(), kind }));
        self.names.extend(inode.map(|inode| {
            let mut hasher = DefaultHasher::new();
            hasher.write(key);
            SharedName { inode, path: path(), state: hasher.finish() }
        }));
    }
}

/// Why a directory has no listing.
pub(super) enum NoListing {
    /// It cannot be listed.
    Unreadable(io::Error),
    /// The capture cannot go on.
    Failed(Error),
}

impl From<Error> for NoListing {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for NoListing {
    fn from(error: io::Error) -> Self {
        if is_ours(&error) {
            Self::Failed(Error::io("list a directory of the workspace", error))
        } else {
            Self::Unreadable(error)
        }
    }
}

/// The directory that is being listed.
#[derive(Clone, Copy)]
struct Place<'a> {
    dir: &'a OwnedFd,
    path: &'a RelPath,
    names: &'a Names,
    ignored: &'a [Name],
}

impl Worker<'_> {
    /// Compares a directory with the items of its record, and reads whatever is not provably as it was.
    ///
    /// A name that moves within the directory meanwhile can be missed in both places, so a directory that changed
    /// under the listing is listed again, a bounded number of times, and then named in the warnings.
    pub(super) fn list(
        &mut self,
        dir: &OwnedFd,
        path: &RelPath,
        record: Option<&[u8]>,
    ) -> std::result::Result<Listing, NoListing> {
        let mut names = std::mem::take(&mut self.names);
        let listing = self.list_into(&mut names, dir, path, record);
        names.shrink();
        self.names = names;
        listing
    }

    fn list_into(
        &mut self,
        names: &mut Names,
        dir: &OwnedFd,
        path: &RelPath,
        record: Option<&[u8]>,
    ) -> std::result::Result<Listing, NoListing> {
        let ignored = self.walk.ignored_in(path);
        let mut listings = 0;
        loop {
            listings += 1;
            let before = stat_fd(dir)?;
            names.read(dir)?;
            let after = stat_fd(dir)?;
            let moved = (before.mtime, before.ctime) != (after.mtime, after.ctime);
            if moved && listings < LISTINGS {
                continue;
            }
            let place = Place { dir, path, names, ignored: &ignored };
            let mut contents = if names.len() < MANY {
                self.compare(place, 0..names.len(), record)?
            } else {
                self.compare_by_two(place, record)?
            };
            if contents.missed && listings < LISTINGS {
                continue;
            }
            if names.unusable > 0 {
                let kind = WarningKind::Unreadable;
                contents.tally.warnings.push(Warning { path: path.clone(), kind });
            }
            if moved || contents.missed {
                let kind = WarningKind::ChangedWhileRead;
                contents.tally.warnings.push(Warning { path: path.clone(), kind });
            }
            return Ok(Listing { stat: before, contents });
        }
    }

    /// Each thread takes half of the names.
    fn compare_by_two(&mut self, place: Place<'_>, record: Option<&[u8]>) -> Result<Contents> {
        let (half, all) = (place.names.len() / 2, place.names.len());
        let middle = place.names.range(half..all).next().map_or(&b""[..], |listed| listed.name.to_bytes());
        let (low, high) = match record.map(|items| split_at_name(items, middle)) {
            Some((low, high)) => (Some(low), Some(high)),
            None => (None, None),
        };
        let walk = self.walk;
        let (one, other) = std::thread::scope(|threads| {
            let help = std::thread::Builder::new().name("scan".into()).spawn_scoped(threads, || {
                Worker::new(walk).with_rights(|worker| worker.compare(place, half..all, high))
            });
            let one = self.compare(place, 0..half, low);
            let other = match help.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(other)) => other,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(_) => self.compare(place, half..all, high),
            };
            (one, other)
        });
        Ok(one?.join(low, other?, high))
    }

    fn compare(&mut self, place: Place<'_>, range: Range<usize>, record: Option<&[u8]>) -> Result<Contents> {
        let mut comparison = Comparison::new(record);
        for listed in place.names.range(range) {
            let bytes = listed.name.to_bytes();
            if place.ignored.iter().any(|name| name.as_bytes() == bytes) {
                continue;
            }
            comparison.missed |= !self.compare_name(&mut comparison, listed, place)?;
        }
        Ok(comparison.finish())
    }

    /// Returns whether the name was there.
    fn compare_name(
        &mut self,
        comparison: &mut Comparison<'_>,
        listed: Listed<'_>,
        place: Place<'_>,
    ) -> Result<bool> {
        let Place { dir, path, .. } = place;
        let bytes = listed.name.to_bytes();
        let name =
            || Name::new(bytes).map_err(|_| Error::Corrupt("a directory lists an impossible name".into()));
        let below = || Name::new(bytes).map_or_else(|_| path.clone(), |name| path.join(&name));
        let cached = comparison.advance_to(bytes);
        let mut stat = match stat(dir, listed.name) {
            Ok(stat) => stat,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if cached.is_some() {
                    comparison.diverge();
                }
                return Ok(false);
            }
            Err(error) if is_ours(&error) => return Err(Error::io("stat a file of the workspace", error)),
            Err(_) => {
                comparison.add(Found::unknown(listed.is_directory), name()?, &below);
                return Ok(true);
            }
        };
        if stat.mount != self.walk.mount {
            stat.kind = FileKind::MountPoint;
        }
        self.key.clear();
        key(&stat, &mut self.key);
        let hit = cached.filter(|item| {
            item.clean && item.key == self.key.as_slice() && self.may_read(dir, listed.name, &stat)
        });
        match (stat.kind, hit) {
            (FileKind::Directory, hit) => {
                let known = hit.and_then(|item| Some((item, item.decode_entry().ok()?)));
                match &known {
                    Some((item, _)) => comparison.keep(item),
                    None => comparison.diverge(),
                }
                comparison.directories.push(Subdirectory {
                    name: name()?,
                    key: self.key.as_slice().into(),
                    known: known.map(|(_, entry)| Box::new(entry)),
                });
            }
            (kind, Some(item)) => {
                let warning = (kind == FileKind::MountPoint).then_some(WarningKind::MountPoint);
                comparison.tally.found(below, warning, shared_inode(&stat), item.key);
                if kind == FileKind::File {
                    comparison.tally.bytes += stat.size;
                }
                comparison.keep(&item);
            }
            (_, None) => {
                let Some(found) = leaf(&mut self.files, dir, listed.name, &stat)? else {
                    comparison.diverge();
                    return Ok(false);
                };
                comparison.add(found, name()?, &below);
            }
        }
        Ok(true)
    }
}

impl Worker<'_> {
    /// What somebody with more rights has read is not for this peer. The owner could read it in any case; of whom else
    /// the groups, the mode and the access list let in, the kernel knows.
    fn may_read(&self, dir: &OwnedFd, name: &CStr, stat: &Stat) -> bool {
        let peer = self.walk.peer();
        let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
        stat.kind != FileKind::File
            || peer.is_privileged()
            || stat.uid == peer.uid
            || rustix::fs::accessat(dir, name, Access::READ_OK, flags).is_ok()
    }
}

/// A directory's names, in order, against its record's items.
struct Comparison<'a> {
    record: &'a [u8],
    items: Items<'a>,
    /// The next item of the record.
    next: Option<Item<'a>>,
    /// How many items of the record stand, from its beginning, while nothing else was found.
    standing: usize,
    /// The new record's items, once it cannot be the old one any more.
    fresh: Option<Encoder>,
    directories: Vec<Subdirectory>,
    tally: Tally,
    missed: bool,
}

impl<'a> Comparison<'a> {
    fn new(record: Option<&'a [u8]>) -> Self {
        let bytes = record.unwrap_or_default();
        let mut items = Items::new(bytes);
        Self {
            record: bytes,
            next: items.next(),
            items,
            standing: 0,
            fresh: record.is_none().then(Encoder::new),
            directories: Vec::new(),
            tally: Tally::default(),
            missed: false,
        }
    }

    /// The record's item of that name. Items before it stand for names that are gone.
    fn advance_to(&mut self, name: &[u8]) -> Option<Item<'a>> {
        while self.next.take_if(|item| item.name < name).is_some() {
            self.diverge();
            self.next = self.items.next();
        }
        let found = self.next.take_if(|item| item.name == name);
        if found.is_some() {
            self.next = self.items.next();
        }
        found
    }

    /// An item of the record stands.
    fn keep(&mut self, item: &Item<'_>) {
        match &mut self.fresh {
            Some(items) => item.encode(items),
            None => self.standing += 1,
        }
    }

    /// The directory is not what its record says.
    fn diverge(&mut self) {
        self.fresh();
    }

    /// The new record's items, with those of the old one that stand so far.
    fn fresh(&mut self) -> &mut Encoder {
        let (record, standing) = (self.record, self.standing);
        self.fresh.get_or_insert_with(|| {
            let mut items = Encoder::new();
            Items::new(record).take(standing).for_each(|item| item.encode(&mut items));
            items
        })
    }

    /// Something else was found under a name.
    fn add(&mut self, found: Found, name: Name, path: &impl Fn() -> RelPath) {
        self.tally.found(path, found.warning, found.inode, &found.key);
        let size = found.encode(name, self.fresh());
        self.tally.bytes += size;
    }

    fn finish(mut self) -> Contents {
        if self.next.is_some() || self.items.damaged() {
            self.diverge();
        }
        Contents {
            items: self.fresh.map(Encoder::finish),
            directories: self.directories,
            tally: self.tally,
            missed: self.missed,
        }
    }
}

impl Contents {
    /// These names and those behind them; each with the record's items for its names.
    fn join(mut self, record: Option<&[u8]>, mut other: Self, other_record: Option<&[u8]>) -> Self {
        self.items = match (self.items, other.items) {
            (None, None) => None,
            (these, those) => {
                let mut items = these.unwrap_or_else(|| record.unwrap_or_default().to_vec());
                items.extend_from_slice(those.as_deref().or(other_record).unwrap_or_default());
                Some(items)
            }
        };
        self.directories.append(&mut other.directories);
        self.tally.add(other.tally);
        self.missed |= other.missed;
        self
    }
}
