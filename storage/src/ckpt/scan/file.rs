//! Reading one regular file: to objects, without touching it, and knowing whether to trust the reading.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use fastcdc::v2020::StreamCDC;
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use rustix::path::Arg;

use super::filesystem::Filesystem;
use super::record::{Settled, key_of};
use super::xattr;
use crate::ckpt::error::{Error, Result};
use crate::ckpt::format::{Content, Extent, Extents, ObjectKind, ObjectSink, Xattrs};
use crate::ckpt::model::FileKind;
use crate::clock::Clock;
use crate::fs::{Stat, stat_fd};
use crate::sys::{self, Writers};

/// Files up to this size without holes are one object.
const WHOLE: u64 = 1 << 20;
const MIN_CHUNK: usize = 64 << 10;
const AVERAGE_CHUNK: usize = 256 << 10;
const MAX_CHUNK: usize = 1 << 20;

/// How often a file that changes while it is read is read again.
const REREADS: usize = 3;
/// A bigger one is read again only once: a log of gigabytes that grows all the time would take minutes.
const BIG: u64 = 64 << 20;

/// Reads files of one capture.
pub(super) struct FileReader<'a> {
    /// Where content goes.
    pub(super) sink: &'a dyn ObjectSink,
    /// The wall clock.
    pub(super) clock: &'a dyn Clock,
    /// When times prove rest.
    pub(super) settled: Settled,
    /// What its files' times show.
    pub(super) filesystem: Filesystem,
    /// For small files; kept between them.
    pub(super) buffer: Vec<u8>,
}

/// A file as it was read.
#[derive(Debug)]
pub(super) struct Reading {
    /// Its attributes.
    pub(super) stat: Stat,
    /// Its extended attributes.
    pub(super) xattrs: Xattrs,
    /// Bytes that were read, holes included.
    pub(super) size: u64,
    /// Where its bytes are.
    pub(super) content: Content,
    /// Whether an equal key will prove that it still holds the same.
    pub(super) clean: bool,
    /// Whether it changed during every reading.
    pub(super) changed: bool,
}

/// A step of a reading.
type Attempt<T> = std::result::Result<T, Stop>;

/// Why there is no reading, or no reading goes on.
enum Stop {
    /// The file cannot be read.
    File(io::Error),
    /// The store cannot take it.
    Store(Error),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::File(errno.into())
    }
}

impl FileReader<'_> {
    /// Reads the regular file that was `listed` under a name. `None` if the name is gone or something else stands there
    /// by now. What cannot be read comes out as [`Content::Unread`].
    pub(super) fn read(&mut self, dir: impl AsFd, name: impl Arg, listed: &Stat) -> Result<Option<Reading>> {
        // Opening what is not a regular file can block or do things, and the name may change any time: so first hold
        // what is there, then look, then open exactly that.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = match rustix::fs::openat(&dir, name, flags, Mode::empty()) {
            Ok(held) => held,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return unread(listed.clone(), Xattrs::default(), errno.into()).map(Some),
        };
        let stat = match stat_fd(&held) {
            Ok(stat) if stat.kind == FileKind::File && stat.mount == listed.mount => stat,
            Ok(_) => return Ok(None),
            Err(error) => return unread(listed.clone(), Xattrs::default(), error).map(Some),
        };
        match self.read_held(held.as_fd()) {
            Ok(reading) => Ok(Some(reading)),
            Err(Stop::Store(error)) => Err(error),
            Err(Stop::File(error)) => {
                let xattrs = xattr::of_held(held.as_fd()).unwrap_or_default();
                unread(stat, xattrs, error).map(Some)
            }
        }
    }

    fn read_held(&mut self, held: BorrowedFd<'_>) -> Attempt<Reading> {
        let file = reopen(held)?;
        let mut reads = 0;
        loop {
            reads += 1;
            let start = self.clock.wall();
            let before = stat_fd(&file).map_err(Stop::File)?;
            let trusted = self.settled.holds(&before, start) && self.writes_will_show(&file);
            let xattrs = xattr::of_open(&file)?;
            let (size, content) = self.content(&file, &before)?;
            let after = stat_fd(&file).map_err(Stop::File)?;
            let changed = key_of(&before) != key_of(&after);
            let rereads = if before.size > BIG { 1 } else { REREADS };
            if !changed || reads > rereads {
                let clean = trusted && !changed;
                return Ok(Reading { stat: after, xattrs, size, content, clean, changed });
            }
        }
    }

    /// Whether whoever writes to the file from now on will move its times. A store through a mapping that is already
    /// there would not, and in memory one through any mapping.
    fn writes_will_show(&self, file: &OwnedFd) -> bool {
        if !self.filesystem.new_mappings_show() {
            return false;
        }
        match sys::writers(file) {
            Writers::None => true,
            Writers::Some => false,
            Writers::Unknown => {
                self.filesystem.sync_rearms_mappings(file) && rustix::fs::fdatasync(file).is_ok()
            }
        }
    }

    /// The bytes of a file, at most as many as it had in the beginning: it may grow faster than it can be read.
    fn content(&mut self, file: &OwnedFd, stat: &Stat) -> Attempt<(u64, Content)> {
        let extents = if stat.blocks.saturating_mul(512) < stat.size {
            let segments = segments(file, stat.size)?;
            match segments[..] {
                [Segment::Data(0, end)] if end <= WHOLE => return self.whole(file, end),
                _ => self.extents(file, &segments)?,
            }
        } else if stat.size <= WHOLE {
            return self.whole(file, stat.size);
        } else {
            self.extents(file, &[Segment::Data(0, stat.size)])?
        };
        match extents.size() {
            Some(0) => Ok((0, Content::Empty)),
            None => Err(Stop::File(io::ErrorKind::FileTooLarge.into())),
            Some(size) => {
                let id = self.sink.put(ObjectKind::Extents, &extents.encode()).map_err(Stop::Store)?;
                Ok((size, Content::Extents(id)))
            }
        }
    }

    fn whole(&mut self, file: &OwnedFd, size: u64) -> Attempt<(u64, Content)> {
        self.buffer.clear();
        // Not more than [`WHOLE`].
        self.buffer.reserve(size as usize);
        let mut bytes = Range { file: file.as_fd(), at: 0, end: size };
        bytes.read_to_end(&mut self.buffer).map_err(Stop::File)?;
        if self.buffer.is_empty() {
            return Ok((0, Content::Empty));
        }
        let id = self.sink.put(ObjectKind::Data, &self.buffer).map_err(Stop::Store)?;
        Ok((self.buffer.len() as u64, Content::Whole(id)))
    }

    fn extents(&self, file: &OwnedFd, segments: &[Segment]) -> Attempt<Extents> {
        let mut extents = Vec::new();
        for segment in segments {
            match *segment {
                Segment::Hole(start, end) => extents.push(Extent::Hole(end - start)),
                Segment::Data(start, end) => {
                    let bytes = Range { file: file.as_fd(), at: start, end };
                    for chunk in StreamCDC::new(bytes, MIN_CHUNK, AVERAGE_CHUNK, MAX_CHUNK) {
                        let chunk = chunk.map_err(|error| Stop::File(error.into()))?;
                        let id = self.sink.put(ObjectKind::Data, &chunk.data).map_err(Stop::Store)?;
                        extents.push(Extent::Data(chunk.data.len() as u64, id));
                    }
                }
            }
        }
        Ok(Extents(extents))
    }
}

/// For reading, without moving the access time. Waits while somebody gives back a lease on the file, as file servers
/// have them; the kernel takes it away from who does not.
fn reopen(held: BorrowedFd<'_>) -> Attempt<OwnedFd> {
    let path = format!("/proc/self/fd/{}", held.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    match rustix::fs::open(&path, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => Ok(rustix::fs::open(&path, flags, Mode::empty())?),
        opened => Ok(opened?),
    }
}

/// What is kept of a file that cannot be read.
fn unread(stat: Stat, xattrs: Xattrs, why: io::Error) -> Result<Reading> {
    if is_ours(&why) {
        return Err(Error::io("read a file of the workspace", why));
    }
    let size = stat.size;
    Ok(Reading { stat, xattrs, size, content: Content::Unread, clean: false, changed: false })
}

/// Whether it is this process that is at its limits, and not the file that cannot be read.
pub(super) fn is_ours(error: &io::Error) -> bool {
    let ours = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    ours.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// A run of a file: from, to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segment {
    Hole(u64, u64),
    Data(u64, u64),
}

/// Where the file's data and holes are, without gaps from 0 to `size`.
fn segments(file: &OwnedFd, size: u64) -> Attempt<Vec<Segment>> {
    let mut segments = Vec::new();
    let mut at = 0;
    while at < size {
        let data = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(data) => data.min(size),
            // Nothing but a hole up to the end.
            Err(Errno::NXIO) => size,
            // The filesystem does not say.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
            Err(errno) => return Err(errno.into()),
        };
        if data > at {
            segments.push(Segment::Hole(at, data));
        }
        if data < size {
            let hole = match rustix::fs::seek(file, SeekFrom::Hole(data)) {
                Ok(hole) => hole.min(size),
                Err(Errno::NXIO | Errno::INVAL | Errno::OPNOTSUPP) => size,
                Err(errno) => return Err(errno.into()),
            };
            segments.push(Segment::Data(data, hole));
            at = hole.max(data + 1);
        } else {
            at = size;
        }
    }
    Ok(segments)
}

/// Some bytes of a file, whatever its offset.
struct Range<'a> {
    file: BorrowedFd<'a>,
    at: u64,
    end: u64,
}

impl Read for Range<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        if wanted == 0 {
            return Ok(0);
        }
        let read =
            rustix::io::retry_on_intr(|| rustix::io::pread(self.file, &mut buffer[..wanted], self.at))?;
        self.at += read as u64;
        Ok(read)
    }
}
