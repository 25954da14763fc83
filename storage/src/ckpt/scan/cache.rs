//! The stat cache's file.
//!
//! A header, then frames, each with a checksum: a record of one directory, a path that has none any more, or a commit.
//! What stands behind the last commit never happened. Frames are only appended; when more than half of the file is
//! stale it is written anew.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{CWD, Mode, OFlags};

use super::boot::BootId;
use super::frame::{Commit, FrameKind, Head, PathHash};
use crate::ckpt::format::{FORMAT_VERSION, ObjectId};
use crate::disk::Disk;
use crate::peer::as_daemon;

const MAGIC: &[u8; 8] = b"cofstat\n";
/// Of the frames and of the records' own bytes; the entries in them have the store's [`FORMAT_VERSION`].
const CACHE_VERSION: u32 = 2;
const HEADER: usize = MAGIC.len() + 8;
/// A smaller file is not worth writing anew.
const SMALL: u64 = 1 << 20;
/// How much is gathered before it is written.
const GATHER: usize = 256 << 10;

/// The stat cache of one workspace: a record per directory in an append-only, checksummed file that is never
/// fsynced. Losing it costs a full read and nothing else, so a cache that cannot be opened or written goes on
/// empty.
///
/// It holds for one boot. When the machine stops without warning, the cache may be on disk and a file's new bytes not,
/// while its times are: then the key is equal and the content another.
#[derive(Debug)]
pub struct StatCache {
    disk: Disk,
    path: PathBuf,
    /// `None` if it could not be opened.
    file: Option<File>,
    /// The boot that is running; without it nothing is kept.
    boot: Option<BootId>,
    /// What the last commit left.
    committed: State,
    /// What the last capture found; becomes the committed state or nothing.
    running: Mutex<Running>,
}

/// Where the record of each directory is.
#[derive(Debug, Default)]
struct State {
    index: HashMap<PathHash, Place>,
    /// The end of the last commit; 0 for a file that has yet to be written.
    len: u64,
    /// The digest of all frames before that.
    chain: u64,
    /// The manifest of the last commit.
    base: Option<ObjectId>,
}

/// Where a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    offset: u64,
    len: u32,
}

#[derive(Debug, Default)]
struct Running {
    /// Whether there was a capture since the last commit.
    begun: bool,
    index: HashMap<PathHash, Place>,
    /// Frames not yet written.
    gathered: Vec<u8>,
    /// How long the file is with everything that is written; what follows in it is not ours.
    written: u64,
    chain: u64,
    /// The manifest, once it is committed.
    base: Option<ObjectId>,
    /// The file could not be written: nothing more is kept.
    failed: bool,
}

impl StatCache {
    /// Opens or creates the cache. Its records are used only if the cache was last committed in this `boot`, and for
    /// `base`, the manifest that the catalog protects from collection: every object a record refers to is reachable
    /// from it.
    pub fn open(disk: &Disk, path: &Path, base: Option<&ObjectId>, boot: Option<BootId>) -> Self {
        let file = as_daemon(|| open_or_make(disk, path)).inspect_err(|error| {
            tracing::warn!(cache = %path.display(), %error, "stat cache not used; this capture reads everything");
        });
        let file = file.ok();
        let state = match (&file, base, boot) {
            (Some(file), Some(_), Some(boot)) => State::load(file, boot).unwrap_or_default(),
            _ => State::default(),
        };
        let committed = if state.base.as_ref() == base { state } else { State::default() };
        let running = Mutex::new(Running::after(&committed));
        Self { disk: disk.clone(), path: path.to_owned(), file, boot, committed, running }
    }

    /// The records of the last [`capture`](super::capture()) hold from now on: its manifest `base` is published.
    /// Without this call they are forgotten. Rewrites the file when more than half of it is stale.
    ///
    /// The snapshot is published whatever becomes of its cache, so this does not fail: a cache that cannot be written
    /// goes on empty.
    pub fn commit(&mut self, base: &ObjectId) {
        if let Err(error) = as_daemon(|| self.try_commit(base)) {
            let cache = self.path.display();
            tracing::warn!(%cache, %error, "stat cache not kept; the next capture reads everything");
            self.committed = State::default();
        }
        *self.running_mut() = Running::after(&self.committed);
    }

    fn try_commit(&mut self, base: &ObjectId) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner);
        let nothing_new = running.index == self.committed.index && self.committed.base.as_ref() == Some(base);
        if !running.begun || nothing_new {
            return Ok(());
        }
        let Some(boot) = self.boot else {
            return Err(io::Error::other(format!("{} cannot be read", BootId::FILE)));
        };
        if running.failed {
            return Err(io::Error::other("not all records were written"));
        }
        // Else a directory that comes back, moved as it was, would find its old record, and that refers to objects
        // which nothing protects any more.
        for path in self.committed.index.keys() {
            if !running.index.contains_key(path) {
                running.gone(*path);
            }
        }
        running.commit(base, boot);
        running.write(&self.disk, file)?;
        self.committed = running.take();
        let live: u64 = self.committed.index.values().map(|place| u64::from(place.len)).sum();
        if self.committed.len > SMALL && live < self.committed.len / 2 {
            self.rewrite(boot)?;
        }
        Ok(())
    }

    /// Writes what is live into a new file and puts that in the place of the old one.
    fn rewrite(&mut self, boot: BootId) -> io::Result<()> {
        let (Some(old), Some(base)) = (&self.file, self.committed.base) else { return Ok(()) };
        let mut fresh = self.path.clone().into_os_string();
        fresh.push(".new");
        match self.disk.unlink(CWD, &*fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = File::from(self.disk.create(CWD, &*fresh, OFlags::RDWR, Mode::RUSR | Mode::WUSR)?);
        let mut places: Vec<(PathHash, Place)> =
            self.committed.index.iter().map(|(path, place)| (*path, *place)).collect();
        places.sort_unstable_by_key(|(_, place)| place.offset);
        let mut running = Running::default();
        let mut record = Vec::new();
        for (path, place) in places {
            // A damaged record is left behind.
            if read_record(old, path, place, &mut record).is_ok()
                && let Some(head) = Head::new(FrameKind::Record, path, &record)
            {
                running.record(&head, &record, &self.disk, &file)?;
            }
        }
        running.commit(&base, boot);
        running.write(&self.disk, &file)?;
        self.disk.rename((CWD, &*fresh), (CWD, &*self.path))?;
        self.committed = running.take();
        self.file = Some(file);
        Ok(())
    }

    /// A capture begins: forgets what was not committed.
    pub(super) fn begin(&mut self) {
        let fresh = Running { begun: true, ..Running::after(&self.committed) };
        *self.running_mut() = fresh;
    }

    /// Reads a directory's record into `buffer`; false if there is none.
    pub(super) fn read(&self, path: PathHash, buffer: &mut Vec<u8>) -> bool {
        match (&self.file, self.committed.index.get(&path)) {
            (Some(file), Some(place)) => read_record(file, path, *place, buffer).is_ok(),
            _ => false,
        }
    }

    /// A directory's record still holds.
    pub(super) fn keep(&self, path: PathHash) {
        if let Some(place) = self.committed.index.get(&path) {
            self.running().index.insert(path, *place);
        }
    }

    /// Puts a new record in the place of a directory's old one, unless they are the same: a file that is never at rest
    /// makes a record that says the same again and again.
    pub(super) fn put(&self, path: PathHash, record: &[u8]) {
        let Some(file) = &self.file else { return };
        // A directory too big for any frame has no record.
        let Some(head) = Head::new(FrameKind::Record, path, record) else { return };
        let old = self.committed.index.get(&path);
        let same = |place: &Place| {
            read_head(file, *place).is_some_and(|old| old == head)
                // Else a damaged one would stay damaged.
                && read_record(file, path, *place, &mut Vec::new()).is_ok()
        };
        if old.is_some_and(same) {
            return self.keep(path);
        }
        let mut running = self.running();
        if !running.failed {
            running.failed = running.record(&head, record, &self.disk, file).is_err();
        }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running_mut(&mut self) -> &mut Running {
        self.running.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Reads the file up to its last commit; what cannot be read ends it, and so does a commit of another boot.
    fn load(file: &File, boot: BootId) -> io::Result<Self> {
        let mut state = Self::default();
        let size = file.metadata()?.len();
        rustix::fs::seek(file, rustix::fs::SeekFrom::Start(0))?;
        let mut file = BufReader::with_capacity(GATHER, file);
        let mut found = [0; HEADER];
        if file.read_exact(&mut found).is_err() || found != header() {
            return Ok(state);
        }
        let (mut at, mut chain) = (HEADER as u64, 0);
        let mut since_commit = Vec::new();
        while let Ok(Some(head)) = Head::read(&mut file) {
            let place = Place { offset: at, len: head.len() };
            at += u64::from(head.len());
            if at > size {
                break;
            }
            match head.kind {
                FrameKind::Record => {
                    file.seek_relative(head.body.into())?;
                    since_commit.push((head.path, Some(place)));
                }
                FrameKind::Gone => since_commit.push((head.path, None)),
                FrameKind::Commit => {
                    let mut body = [0; Commit::LEN];
                    file.read_exact(&mut body)?;
                    let commit = Commit::decode(&body).filter(|_| head.covers(&body));
                    let commit = commit.filter(|commit| commit.chain == chain && commit.boot == boot);
                    let Some(commit) = commit else { break };
                    for (path, place) in since_commit.drain(..) {
                        match place {
                            Some(place) => state.index.insert(path, place),
                            None => state.index.remove(&path),
                        };
                    }
                    (state.base, state.len, state.chain) = (Some(commit.base), at, head.chained(chain));
                }
            }
            chain = head.chained(chain);
        }
        Ok(state)
    }
}

impl Running {
    fn after(state: &State) -> Self {
        Self { written: state.len, chain: state.chain, ..Self::default() }
    }

    /// Everything has been written and is the committed state from now on.
    fn take(&mut self) -> State {
        State {
            index: std::mem::take(&mut self.index),
            len: self.written,
            chain: self.chain,
            base: self.base,
        }
    }

    /// A directory's record from now on. What is gathered is written from time to time.
    fn record(&mut self, head: &Head, record: &[u8], disk: &Disk, file: &File) -> io::Result<()> {
        let place = if record.len() < GATHER {
            self.append(head, record)
        } else {
            let place = self.append(head, &[]);
            self.write(disk, file)?;
            disk.write_all_at(file, record, self.written)?;
            self.written += record.len() as u64;
            place
        };
        self.index.insert(head.path, place);
        if self.gathered.len() < GATHER { Ok(()) } else { self.write(disk, file) }
    }

    fn gone(&mut self, path: PathHash) {
        self.append(&Head::of(FrameKind::Gone, path, &[]), &[]);
    }

    fn commit(&mut self, base: &ObjectId, boot: BootId) {
        let body = Commit { base: *base, boot, chain: self.chain }.encode();
        self.append(&Head::of(FrameKind::Commit, Commit::PATH, &body), &body);
        self.base = Some(*base);
    }

    /// Returns where the frame will be.
    fn append(&mut self, head: &Head, body: &[u8]) -> Place {
        if self.written == 0 && self.gathered.is_empty() {
            self.gathered.extend_from_slice(&header());
        }
        let place = Place { offset: self.written + self.gathered.len() as u64, len: head.len() };
        head.encode(&mut self.gathered);
        self.gathered.extend_from_slice(body);
        self.chain = head.chained(self.chain);
        place
    }

    fn write(&mut self, disk: &Disk, file: &File) -> io::Result<()> {
        // What a capture that was not committed, or damage, has left behind.
        if file.metadata()?.len() > self.written {
            disk.set_len(file, self.written)?;
        }
        disk.write_all_at(file, &self.gathered, self.written)?;
        self.written += self.gathered.len() as u64;
        self.gathered.clear();
        Ok(())
    }
}

fn open_or_make(disk: &Disk, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file: OwnedFd = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => disk.create(CWD, path, OFlags::RDWR, Mode::RUSR | Mode::WUSR)?,
        opened => opened?,
    };
    Ok(file.into())
}

fn header() -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    header[12..].copy_from_slice(&CACHE_VERSION.to_le_bytes());
    header
}

fn read_head(file: &File, place: Place) -> Option<Head> {
    let mut bytes = [0; Head::LEN];
    file.read_exact_at(&mut bytes, place.offset).ok()?;
    Head::decode(&bytes)
}

/// Reads a record, proven against its checksum, into `buffer`.
fn read_record(file: &File, path: PathHash, place: Place, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.resize(place.len as usize, 0);
    file.read_exact_at(buffer, place.offset)?;
    match Head::split(buffer) {
        Some((head, body)) if head.kind == FrameKind::Record && head.path == path && head.covers(body) => {
            let len = buffer.len() - body.len();
            buffer.drain(..len);
            Ok(())
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
