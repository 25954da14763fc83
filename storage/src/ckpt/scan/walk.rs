//! Two threads that share a stack of directories.
//!
//! A directory is taken from the stack, listed and compared with its record, and the directories in it go on the
//! stack. It is finished, its node written and its memory given back, when the last directory in it is. So what is in
//! memory at one time is the way from the root to where the threads are.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::cache::StatCache;
use super::capture::Capture;
use super::file::{FileReader, is_ours};
use super::filesystem::Filesystem;
use super::found::{Found, leaf, meta, unless_unreadable};
use super::frame::PathHash;
use super::listing::{Contents, NoListing, Subdirectory, Tally};
use super::names::Names;
use super::record::{self, Items, Settled, key_of};
use super::stack::Stack;
use super::xattr;
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::{Encoder, Entry, EntryKind, Meta, NodeWriter, ObjectId};
use crate::ckpt::model::{FileKind, Warning, WarningKind};
use crate::fs::{Root, Stat, stat, stat_fd};
use crate::path::{Name, RelPath};
use crate::peer::Peer;

/// Below a longer path directories are not listed: each step down such a path costs as much as the path is long.
const LONGEST_PATH: usize = 32 << 10;
/// How much of a buffer is kept for the next directory.
const KEPT: usize = 1 << 20;
/// How often a name that changes between looking and opening is looked at.
const LOOKS: usize = 3;

/// One walk through a tree.
pub(super) struct Walk<'a> {
    work: &'a Capture<'a>,
    /// What paths are relative to.
    root: &'a Root,
    cache: Option<&'a StatCache>,
    /// The mount that is walked.
    pub(super) mount: u64,
    filesystem: Filesystem,
    settled: Settled,
    stack: Stack<Task>,
    tally: Mutex<Tally>,
    top: Mutex<Option<Top>>,
}

/// What the walk began with, captured.
#[derive(Debug)]
pub(super) struct Top {
    /// The metadata of where it began.
    pub(super) meta: Meta,
    /// The rest of it.
    pub(super) kind: EntryKind,
    /// Everything below.
    pub(super) tally: Tally,
}

/// A directory to be listed.
struct Task {
    parent: Option<Arc<Directory>>,
    /// `None` for the workspace's root.
    name: Option<Name>,
    key: Box<[u8]>,
    known: Option<Box<Entry>>,
}

/// A directory that has been listed and waits for the directories in it.
struct Directory {
    parent: Option<Arc<Directory>>,
    name: Option<Name>,
    hash: PathHash,
    meta: Meta,
    key: Vec<u8>,
    clean: bool,
    /// If its node comes out as this one, the record of the directory above stands.
    known_node: Option<ObjectId>,
    entries: Mutex<Entries>,
    /// Directories in it that are not finished.
    unfinished: AtomicUsize,
}

/// A directory's entries, as far as they are known.
struct Entries {
    base: Base,
    /// Directories in it that are not what `base` says.
    changes: Vec<Change>,
}

/// What a directory's entries are, but for the changes.
enum Base {
    /// Those of its record, which has this node.
    Record(ObjectId),
    /// These items.
    Fresh(Vec<u8>),
}

/// What became of a directory in a directory.
struct Change {
    name: Name,
    /// Its item; `None` if it is gone.
    item: Option<Vec<u8>>,
}

impl<'a> Walk<'a> {
    /// A walk through what lies below `root`.
    pub(super) fn new(
        work: &'a Capture<'a>,
        root: &'a Root,
        filesystem: Filesystem,
        cache: Option<&'a StatCache>,
    ) -> Result<Self> {
        let mount = stat_fd(root).context(|| "stat the workspace".into())?.mount;
        Ok(Self {
            work,
            root,
            cache,
            mount,
            filesystem,
            settled: Settled::new(filesystem.fine_timestamps),
            stack: Stack::new(),
            tally: Mutex::default(),
            top: Mutex::default(),
        })
    }

    /// Walks through the directory under `name`, or the whole root. `None` if it is gone.
    pub(super) fn run(self, name: Option<Name>) -> Result<Option<Top>> {
        self.stack.push([Task { parent: None, name, key: Box::default(), known: None }]);
        std::thread::scope(|threads| {
            // One thread alone is as right, only slower.
            let second = std::thread::Builder::new()
                .name("scan".into())
                .spawn_scoped(threads, || Worker::new(&self).run());
            let first = Worker::new(&self).run();
            let second = match second.map(std::thread::ScopedJoinHandle::join) {
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Ok(Ok(result)) => result,
                Err(_) => Ok(()),
            };
            first.and(second)
        })?;
        let tally = self.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        let top = self.top.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(top.map(|top| Top { tally, ..top }))
    }

    /// Whose rights the walk has.
    pub(super) fn peer(&self) -> &Peer {
        self.work.peer
    }

    /// The names in a directory that are not captured.
    pub(super) fn ignored_in(&self, path: &RelPath) -> Vec<Name> {
        let split = self.work.ignore.iter().filter_map(RelPath::split);
        split.filter(|(parent, _)| parent == path).map(|(_, name)| name).collect()
    }

    /// What stands under a directory's name, if it is not a directory that was listed.
    fn settle(
        &self,
        parent: Option<&Arc<Directory>>,
        name: Option<Name>,
        path: &RelPath,
        found: Option<Found>,
    ) {
        if let Some(found) = &found {
            lock(&self.tally).found(|| path.clone(), found.warning, found.inode, &found.key);
        }
        match (parent, name) {
            (Some(parent), Some(name)) => {
                let item = found.map(|found| {
                    let mut out = Encoder::new();
                    let size = found.encode(name.clone(), &mut out);
                    lock(&self.tally).bytes += size;
                    out.finish()
                });
                lock(&parent.entries).changes.push(Change { name, item });
            }
            _ => {
                let top =
                    found.map(|found| Top { meta: found.meta, kind: found.kind, tally: Tally::default() });
                *lock(&self.top) = top;
            }
        }
    }

    /// A directory in `dir` is finished; so may be `dir` itself, and the one it is in.
    fn finish_upwards(&self, mut dir: Arc<Directory>, buffer: &mut Vec<u8>) -> Result<()> {
        while dir.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
            let node = self.finish(&dir, buffer)?;
            let (Some(parent), Some(name)) = (&dir.parent, &dir.name) else {
                let kind = EntryKind::Directory(Some(node));
                let meta = dir.meta.clone();
                *lock(&self.top) = Some(Top { meta, kind, tally: Tally::default() });
                return Ok(());
            };
            if dir.known_node != Some(node) {
                let found = Found {
                    meta: dir.meta.clone(),
                    kind: EntryKind::Directory(Some(node)),
                    key: dir.key.clone(),
                    clean: dir.clean,
                    warning: None,
                    inode: None,
                };
                let mut item = Encoder::new();
                found.encode(name.clone(), &mut item);
                lock(&parent.entries).changes.push(Change { name: name.clone(), item: Some(item.finish()) });
            }
            dir = parent.clone();
        }
        Ok(())
    }

    /// Writes a directory's node and its record, unless both stand.
    fn finish(&self, dir: &Directory, buffer: &mut Vec<u8>) -> Result<ObjectId> {
        let nothing = Entries { base: Base::Fresh(Vec::new()), changes: Vec::new() };
        let Entries { base, changes } = std::mem::replace(&mut *lock(&dir.entries), nothing);
        let items = match base {
            Base::Record(node) if changes.is_empty() => {
                self.cache.inspect(|cache| cache.keep(dir.hash));
                return Ok(node);
            }
            Base::Record(_) => {
                let found = self.cache.is_some_and(|cache| cache.read(dir.hash, buffer));
                let record = record::open(buffer).filter(|_| found);
                record
                    .ok_or_else(|| Error::Corrupt("the stat cache changed under a capture".into()))?
                    .0
                    .to_vec()
            }
            Base::Fresh(items) => items,
        };
        let items = if changes.is_empty() { items } else { merge(&items, changes) };
        let mut node = NodeWriter::new(self.work.sink);
        for item in Items::new(&items) {
            node.push(&item.decode_entry().map_err(|malformed| Error::Corrupt(malformed.to_string()))?)?;
        }
        let node = node.finish()?;
        if let Some(cache) = self.cache {
            cache.put(dir.hash, &record::seal(items, &node));
        }
        Ok(node)
    }
}

/// Puts changes into their places among items.
fn merge(items: &[u8], mut changes: Vec<Change>) -> Vec<u8> {
    changes.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    let mut merged = Vec::with_capacity(items.len());
    let mut rest = items;
    for change in changes {
        let (before, behind) = record::split_at_name(rest, change.name.as_bytes());
        merged.extend_from_slice(before);
        merged.extend(change.item.unwrap_or_default());
        rest = record::without_name(behind, change.name.as_bytes());
    }
    merged.extend_from_slice(rest);
    merged
}

impl Task {
    fn path(&self) -> RelPath {
        path_of(self.parent.as_ref(), self.name.as_ref())
    }
}

/// The path of a name below a directory that waits.
fn path_of(parent: Option<&Arc<Directory>>, name: Option<&Name>) -> RelPath {
    let mut names: Vec<&Name> = name.into_iter().collect();
    let mut above = parent;
    while let Some(dir) = above {
        names.extend(&dir.name);
        above = dir.parent.as_ref();
    }
    names.into_iter().rev().collect()
}

impl Drop for Directory {
    /// When a walk stops half-way a whole chain of parents goes at once, and may be longer than a thread's stack.
    fn drop(&mut self) {
        let mut above = self.parent.take();
        while let Some(mut dir) = above.and_then(Arc::into_inner) {
            above = dir.parent.take();
        }
    }
}

/// One of the two threads.
pub(super) struct Worker<'a> {
    pub(super) walk: &'a Walk<'a>,
    pub(super) files: FileReader<'a>,
    pub(super) names: Names,
    /// The key of the name that is looked at.
    pub(super) key: Encoder,
    /// A directory's record.
    record: Vec<u8>,
}

/// What opening a directory's name came to.
enum Opened {
    Directory(OwnedFd),
    Other(Option<Found>),
}

impl<'a> Worker<'a> {
    pub(super) fn new(walk: &'a Walk<'a>) -> Self {
        Self {
            walk,
            files: FileReader {
                sink: walk.work.sink,
                clock: walk.work.clock,
                settled: walk.settled,
                filesystem: walk.filesystem,
                buffer: Vec::new(),
            },
            names: Names::new(),
            key: Encoder::new(),
            record: Vec::new(),
        }
    }

    /// Takes directories from the stack until none is left.
    fn run(self) -> Result<()> {
        let stack = &self.walk.stack;
        self.with_rights(|worker| {
            while let Some((task, _busy)) = stack.next() {
                worker.list_directory(task)?;
            }
            Ok(())
        })
        .inspect_err(|_| stack.stop())
    }

    /// Works with the peer's rights.
    pub(super) fn with_rights<T>(mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let _rights = self.walk.work.peer.enter().context(|| "take the peer's rights".into())?;
        work(&mut self)
    }

    fn list_directory(&mut self, task: Task) -> Result<()> {
        let path = task.path();
        let start = self.files.clock.wall();
        let hash = PathHash::of(&path);
        let mut buffer = std::mem::take(&mut self.record);
        let cached = self.walk.cache.is_some_and(|cache| cache.read(hash, &mut buffer));
        let record = record::open(&buffer).filter(|_| cached);
        let mut looks = 0;
        let (dir, listing) = loop {
            looks += 1;
            let dir = match self.open(&task, &path)? {
                Opened::Directory(dir) => dir,
                Opened::Other(found) => return self.give_up(task, &path, found),
            };
            let error = match self.list(&dir, &path, record.map(|(items, _)| items)) {
                Ok(listing) => break (dir, listing),
                Err(NoListing::Failed(error)) => return Err(error),
                Err(NoListing::Unreadable(error)) => error,
            };
            let Some(name) = &task.name else { return Err(unreadable_root(error)) };
            // It was removed while it was listed, and something else may stand there by now.
            if error.kind() == io::ErrorKind::NotFound && looks < LOOKS {
                continue;
            }
            let looked = self.look(&path, name)?;
            let found = looked.map(|(dir, stat)| Found::unlisted(&dir, name.as_bytes(), &stat));
            return self.give_up(task, &path, found);
        };
        let Contents { items, directories, mut tally, .. } = listing.contents;
        let base = match (items, record) {
            (None, Some((_, node))) => Base::Record(node),
            (items, _) => Base::Fresh(items.unwrap_or_default()),
        };
        buffer.shrink_to(KEPT);
        self.record = buffer;
        let key = key_of(&listing.stat);
        let known = task.known.filter(|_| *key == *task.key);
        let (meta, clean, known_node) = match known {
            Some(entry) => {
                let Entry { meta, kind, .. } = *entry;
                (meta, true, if let EntryKind::Directory(node) = kind { node } else { None })
            }
            None => {
                let (xattrs, whole) = unless_unreadable(xattr::of_open(&dir))?;
                if !whole {
                    let kind = WarningKind::Unreadable;
                    tally.warnings.push(Warning { path: path.clone(), kind });
                }
                let clean = whole && self.walk.settled.holds(&listing.stat, start);
                (meta(&listing.stat, xattrs), clean, None)
            }
        };
        drop(dir);
        if task.name.is_some() {
            tally.entries += 1;
        }
        lock(&self.walk.tally).add(tally);
        let directory = Arc::new(Directory {
            parent: task.parent,
            name: task.name,
            hash,
            meta,
            key,
            clean,
            known_node,
            entries: Mutex::new(Entries { base, changes: Vec::new() }),
            // One more than there are, until all of them are on the stack.
            unfinished: AtomicUsize::new(directories.len() + 1),
        });
        // The first name on top.
        self.walk.stack.push(directories.into_iter().rev().map(|Subdirectory { name, key, known }| Task {
            parent: Some(directory.clone()),
            name: Some(name),
            key,
            known,
        }));
        self.walk.finish_upwards(directory, &mut self.record)
    }

    /// Something is known about the name, but it is not listed.
    fn give_up(&mut self, task: Task, path: &RelPath, found: Option<Found>) -> Result<()> {
        self.walk.settle(task.parent.as_ref(), task.name, path, found);
        match task.parent {
            Some(parent) => self.walk.finish_upwards(parent, &mut self.record),
            None => Ok(()),
        }
    }

    /// Opens a directory, or finds out what is in its place.
    fn open(&mut self, task: &Task, path: &RelPath) -> Result<Opened> {
        let Some(name) = &task.name else {
            return self.walk.root.open_dir(path).map(Opened::Directory).map_err(unreadable_root);
        };
        let too_long = path.as_bytes().len() > LONGEST_PATH;
        let mut looks = 0;
        loop {
            looks += 1;
            let opened =
                if too_long { Err(Errno::NAMETOOLONG.into()) } else { self.walk.root.open_dir(path) };
            let error = match opened {
                Ok(dir) => return Ok(Opened::Directory(dir)),
                Err(error) => error,
            };
            if is_ours(&error) {
                return Err(Error::io("open a directory of the workspace", error));
            }
            let Some((dir, stat)) = self.look(path, name)? else { return Ok(Opened::Other(None)) };
            let name = name.as_bytes();
            if stat.kind == FileKind::Directory {
                // If it was something else or nowhere a moment ago, the next try opens it.
                let moved = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::XDEV];
                let moved = moved.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
                if !moved || looks == LOOKS {
                    return Ok(Opened::Other(Some(Found::unlisted(&dir, name, &stat))));
                }
            } else if let Some(found) = leaf(&mut self.files, &dir, name, &stat)? {
                return Ok(Opened::Other(Some(found)));
            } else if looks == LOOKS {
                return Ok(Opened::Other(None));
            }
        }
    }

    /// What stands under a path, and the directory it is in. `None` if it is gone.
    fn look(&self, path: &RelPath, name: &Name) -> Result<Option<(OwnedFd, Stat)>> {
        let looked = self.walk.root.open_parent(path).and_then(|parent| match parent {
            Some((dir, _)) => stat(&dir, name.as_bytes()).map(|stat| Some((dir, stat))),
            None => Ok(None),
        });
        match looked {
            Ok(Some((dir, mut stat))) => {
                if stat.mount != self.walk.mount {
                    stat.kind = FileKind::MountPoint;
                }
                Ok(Some((dir, stat)))
            }
            Err(error) if is_ours(&error) => Err(Error::io("stat a file of the workspace", error)),
            Ok(None) | Err(_) => Ok(None),
        }
    }
}

fn unreadable_root(error: io::Error) -> Error {
    Error::io("read the workspace", error)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
