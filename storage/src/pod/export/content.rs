//! Reading, hashing and copying the content of files.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::mpsc;

use rustix::fs::{Mode, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use super::notes::{Time, time};
use crate::ckpt::FileKind;
use crate::disk::Disk;
use crate::fs::{Root, Stat, stat_fd};
use crate::path::RelPath;

/// The largest file that is copied.
pub(super) const MAX_FILE: u64 = 1 << 30;

/// How much of a file is read at once.
const CHUNK: usize = 256 << 10;
/// A file of that many bytes is hashed on a thread of its own while it is copied.
const LARGE: u64 = 4 << 20;
/// How many chunks may wait for that thread.
const WAITING: usize = 4;
/// After how many bytes of a large file the disk is told to begin with them.
const WRITEBACK: u64 = 8 << 20;

/// A regular file that is open for reading.
#[derive(Debug)]
pub(super) struct Opened {
    pub file: File,
    pub stat: Stat,
}

/// A source that is to be copied.
#[derive(Debug)]
pub(super) enum Source {
    /// A small one, of which everything is in memory, as it was when nobody changed it.
    Loaded { stat: Stat, bytes: Vec<u8>, hash: String },
    /// One that is read as it is copied.
    Open(Opened),
}

/// Which file it is and what it holds, as far as its attributes say. Renames and links do not change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub dev: (u32, u32),
    pub ino: u64,
    size: u64,
    mtime: Time,
}

impl Seen {
    pub(super) fn of(stat: &Stat) -> Self {
        Self { dev: stat.dev, ino: stat.ino, size: stat.size, mtime: time(stat.mtime) }
    }
}

impl Opened {
    /// Opens `name` in `dir` if it is a regular file. Follows no link, enters no mount, and waits for nobody.
    pub(super) fn at(dir: &Root, name: &[u8]) -> io::Result<Self> {
        let name = RelPath::new(name).map_err(|_| io::ErrorKind::InvalidFilename)?;
        let held = dir.hold(&name)?;
        if held.stat().kind != FileKind::File {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, kind_in_words(held.stat().kind)));
        }
        Ok(Self { file: held.open_file()?, stat: held.stat().clone() })
    }

    pub(super) fn seen(&self) -> Seen {
        Seen::of(&self.stat)
    }

    /// The BLAKE3 of its content, as records have it.
    pub(super) fn hash(&self) -> io::Result<String> {
        let mut hasher = blake3::Hasher::new();
        self.read(|chunk, _| {
            hasher.update(chunk);
            Ok(())
        })?;
        Ok(in_hex(&hasher))
    }

    /// Copies it to the start of an empty file; the BLAKE3 of what was written.
    pub(super) fn copy_to(&self, disk: &Disk, to: &File) -> io::Result<String> {
        if self.stat.size >= LARGE {
            return self.copy_large(disk, to);
        }
        let mut hasher = blake3::Hasher::new();
        self.read(|chunk, at| {
            hasher.update(chunk);
            disk.write_all_at(to, chunk, at)
        })?;
        Ok(in_hex(&hasher))
    }

    /// The same; while this thread copies, another one hashes, and the disk writes.
    fn copy_large(&self, disk: &Disk, to: &File) -> io::Result<String> {
        std::thread::scope(|threads| {
            // They end here, whatever happens, and the thread with them.
            let (copied, to_hash) = mpsc::sync_channel::<Vec<u8>>(WAITING);
            let (spent, to_fill) = mpsc::channel();
            let hashing = std::thread::Builder::new().name("hash".to_owned());
            let hashing = hashing.spawn_scoped(threads, move || {
                let mut hasher = blake3::Hasher::new();
                for chunk in to_hash {
                    hasher.update(&chunk);
                    // Nobody fills it any more once everything is read.
                    let _ = spent.send(chunk);
                }
                in_hex(&hasher)
            })?;
            let mut begun = 0;
            self.read(|chunk, at| {
                disk.write_all_at(to, chunk, at)?;
                let end = at + chunk.len() as u64;
                if let Some(len) = NonZeroU64::new(end - begun).filter(|len| len.get() >= WRITEBACK) {
                    // It only saves time.
                    let _ = disk.begin_writeback(to, begun, len);
                    begun = end;
                }
                let filled = std::mem::replace(chunk, to_fill.try_recv().unwrap_or_default());
                copied.send(filled).map_err(|_| io::Error::other("the thread that hashes is gone"))
            })?;
            drop(copied);
            hashing.join().map_err(|_| io::Error::other("the thread that hashes panicked"))
        })
    }

    /// Reads all of it, chunk by chunk, into a buffer that may be exchanged for another one. Fails if the file is not at
    /// rest meanwhile.
    fn read(&self, take: impl FnMut(&mut Vec<u8>, u64) -> io::Result<()>) -> io::Result<()> {
        self.read_to_end(take)?;
        // Making a link or another name moves the change time too, so of our own making it says nothing.
        match Seen::of(&stat_fd(&self.file)?) == self.seen() {
            true => Ok(()),
            false => Err(changed("read")),
        }
    }

    /// The same, but for what its attributes say afterwards.
    fn read_to_end(&self, mut take: impl FnMut(&mut Vec<u8>, u64) -> io::Result<()>) -> io::Result<()> {
        let room = CHUNK.min(usize::try_from(self.stat.size).unwrap_or(CHUNK) + 1);
        let mut buffer = Vec::new();
        let mut at = 0;
        loop {
            buffer.resize(room, 0);
            let read = match self.file.read_at(&mut buffer, at) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            buffer.truncate(read);
            if read > 0 {
                take(&mut buffer, at)?;
                at += read as u64;
            }
            // A read that comes back short has seen the end.
            if read == 0 || at > self.stat.size || (at == self.stat.size && read < room) {
                break;
            }
        }
        if at == self.stat.size { Ok(()) } else { Err(changed("read")) }
    }

    /// Fails if its inode has changed since it was opened.
    fn check_unchanged(&self, what: &str) -> io::Result<()> {
        let now = stat_fd(&self.file)?;
        match now.ctime == self.stat.ctime && Seen::of(&now) == self.seen() {
            true => Ok(()),
            false => Err(changed(what)),
        }
    }
}

impl Source {
    /// Reads it now, unless it is too large to be kept in memory.
    pub(super) fn new(from: Opened) -> io::Result<Self> {
        if from.stat.size > CHUNK as u64 {
            return Ok(Self::Open(from));
        }
        let mut bytes = Vec::new();
        from.read_to_end(|chunk, _| {
            match bytes.is_empty() {
                true => std::mem::swap(&mut bytes, chunk),
                false => bytes.extend_from_slice(chunk),
            }
            Ok(())
        })?;
        from.check_unchanged("read")?;
        let hash = blake3::hash(&bytes).to_hex().to_string();
        Ok(Self::Loaded { stat: from.stat, bytes, hash })
    }

    /// Its attributes as it was opened.
    pub(super) fn stat(&self) -> &Stat {
        match self {
            Self::Loaded { stat, .. } | Self::Open(Opened { stat, .. }) => stat,
        }
    }

    /// Copies it to the start of an empty file; the BLAKE3 of what was written. Fails if it changes meanwhile.
    pub(super) fn copy_to(self, disk: &Disk, to: &File) -> io::Result<String> {
        match self {
            Self::Loaded { bytes, hash, .. } => {
                if !bytes.is_empty() {
                    disk.write_all_at(to, &bytes, 0)?;
                }
                Ok(hash)
            }
            Self::Open(from) => {
                let hash = from.copy_to(disk, to)?;
                from.check_unchanged("copied")?;
                Ok(hash)
            }
        }
    }
}

fn changed(what: &str) -> io::Error {
    io::Error::other(format!("it changed while it was {what}"))
}

/// A hash as records have it.
fn in_hex(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex().to_string()
}

/// Gives a new file permission bits and a modification time, as far as the filesystem can hold them: FAT refuses most
/// modes.
pub(super) fn dress(disk: &Disk, file: impl AsFd, mode: u32, mtime: Time) -> io::Result<()> {
    let unless_unknown = |done: io::Result<()>| match done {
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::PERM | Errno::OPNOTSUPP)) => Ok(()),
        done => done,
    };
    unless_unknown(disk.fchmod(&file, Mode::from_raw_mode(mode)))?;
    unless_unknown(disk.futimens(file, &modified(mtime)))
}

/// Sets a modification time and no other.
pub(super) fn set_mtime(disk: &Disk, file: impl AsFd, mtime: Time) -> io::Result<()> {
    disk.set_times_held(file, &modified(mtime))
}

fn modified((secs, nanos): Time) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: secs, tv_nsec: nanos.into() },
    }
}

/// A system's answer in words for the message of an item.
pub(super) fn in_words(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::LOOP) => "a link is in the way".to_owned(),
        Some(Errno::NOTDIR) => "something that is no directory is in the way".to_owned(),
        Some(Errno::XDEV) => "another filesystem is mounted there".to_owned(),
        Some(Errno::NOENT) => "it is not there".to_owned(),
        Some(Errno::AGAIN) => "another program holds it".to_owned(),
        _ => error.to_string(),
    }
}

/// What stands where a regular file should.
pub(super) fn kind_in_words(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "a file",
        FileKind::Directory => "a directory",
        FileKind::Symlink => "a link",
        FileKind::MountPoint => "a mount",
        FileKind::Fifo | FileKind::Socket | FileKind::CharDevice | FileKind::BlockDevice => "a special file",
    }
}
