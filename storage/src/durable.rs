//! Files that are replaced whole and survive power loss: temporary name, write, fsync, rename, fsync the directory.
//! And the directories they are in.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};

use crate::disk::Disk;
use crate::path::Name;

/// Gives `name` in `dir` exactly `bytes`. Whoever opens the name, at any time and after any crash, finds either the
/// whole old file or the whole new one. When this returns, the new one survives power loss.
///
/// Two writers of one name must not run at the same time.
pub fn write_atomic(disk: &Disk, dir: impl AsFd, name: &Name, bytes: &[u8], mode: Mode) -> io::Result<()> {
    let dir = dir.as_fd();
    let temporary = temporary_name(name);
    let staged = match Staged::write(disk, dir, &temporary, bytes, mode) {
        // A writer that died left it. The name says whose it is.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk.unlink(dir, &*temporary)?;
            Staged::write(disk, dir, &temporary, bytes, mode)?
        }
        staged => staged?,
    };
    staged.rename(name.as_bytes())?;
    disk.fsync(dir)
}

/// A new file, whole and durable, under a temporary name; removed with this unless it is renamed.
#[derive(Debug)]
pub struct Staged<'a> {
    disk: &'a Disk,
    dir: BorrowedFd<'a>,
    /// None once it is renamed.
    temporary: Option<&'a [u8]>,
}

impl<'a> Staged<'a> {
    /// Writes the file. `AlreadyExists` if the temporary name is taken.
    pub fn write(
        disk: &'a Disk,
        dir: BorrowedFd<'a>,
        temporary: &'a [u8],
        bytes: &[u8],
        mode: Mode,
    ) -> io::Result<Self> {
        let file = File::from(disk.create(dir, temporary, OFlags::WRONLY, mode)?);
        let staged = Self { disk, dir, temporary: Some(temporary) };
        // The umask may have taken bits away.
        disk.fchmod(&file, mode)?;
        disk.write_all_at(&file, bytes, 0)?;
        disk.fsync(&file)?;
        Ok(staged)
    }

    /// Gives it its name, over whatever has that name; durable when the directory is synced.
    pub fn rename(mut self, name: &[u8]) -> io::Result<()> {
        if let Some(temporary) = self.temporary {
            self.disk.rename((self.dir, temporary), (self.dir, name))?;
        }
        self.temporary = None;
        Ok(())
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary {
            // Best effort: it is known by its name as a leftover.
            let _ = self.disk.unlink(self.dir, temporary);
        }
    }
}

/// What `name` in `dir` holds; `None` if there is no such file. Follows no link; fails if the file has more than
/// `limit` bytes.
pub fn read(dir: impl AsFd, name: &Name, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(dir, name.as_bytes(), flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is larger than it can be"));
    }
    Ok(Some(bytes))
}

/// Makes a directory and those above it, as far as they are missing, with that mode. When this returns, their names
/// survive power loss.
pub fn make_dirs(disk: &Disk, path: &Path, mode: Mode) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let missing: Vec<&Path> = path.ancestors().take_while(|dir| !dir.is_dir()).collect();
    for dir in missing.into_iter().rev() {
        match disk.mkdir(CWD, dir, mode) {
            // Another process was quicker.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            made => made?,
        }
        let parent = dir.parent().unwrap_or(Path::new("/"));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(parent, flags, Mode::empty()) {
            Ok(parent) => disk.fsync(parent)?,
            // One that may be written and not read cannot be synced.
            Err(rustix::io::Errno::ACCESS) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// `.NAME.tmp`, with NAME cut where it would get too long.
fn temporary_name(name: &Name) -> Vec<u8> {
    let kept = name.as_bytes().len().min(Name::MAX - 5);
    [b".", &name.as_bytes()[..kept], b".tmp"].concat()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use rustix::io::Errno;

    use super::*;
    use crate::disk::Op;
    use crate::disk::testing::{Faults, Recorder};

    fn dir() -> (tempfile::TempDir, std::os::fd::OwnedFd) {
        let dir = tempfile::tempdir().unwrap();
        let fd = rustix::fs::open(dir.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        (dir, fd)
    }

    fn name() -> Name {
        Name::new(&b"config.toml"[..]).unwrap()
    }

    #[test]
    fn directories_are_made_with_those_above_them_and_each_name_is_synced() {
        let (dir, _) = dir();
        let (done, disk) = Recorder::disk();
        let path = dir.path().join("a/b/c");
        make_dirs(&disk, &path, Mode::from_raw_mode(0o700)).unwrap();
        assert_eq!(done.take(), [Op::Mkdir, Op::Fsync].repeat(3));
        make_dirs(&disk, &path, Mode::from_raw_mode(0o700)).unwrap();
        assert_eq!(done.take(), []);
        assert_eq!(dir.path().join("a").metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(path.join("file"), "").unwrap();
        make_dirs(&disk, &path.join("file"), Mode::from_raw_mode(0o700)).unwrap_err();
    }

    #[test]
    fn whichever_operation_fails_the_file_is_whole_and_a_retry_succeeds() {
        for nth in 0.. {
            let (_keep, dir) = dir();
            let mode = Mode::from_raw_mode(0o600);
            write_atomic(&Disk::default(), &dir, &name(), b"old", mode).unwrap();
            let failing = Disk::with_faults(Faults::new(nth, Errno::NOSPC, true));
            let result = write_atomic(&failing, &dir, &name(), b"new and longer", mode);
            let found = read(&dir, &name(), 100).unwrap().unwrap();
            assert!(found == b"old" || found == b"new and longer", "operation {nth}");
            write_atomic(&Disk::default(), &dir, &name(), b"third", mode).unwrap();
            assert_eq!(read(&dir, &name(), 100).unwrap().unwrap(), b"third");
            if result.is_ok() {
                return;
            }
        }
    }

    #[test]
    fn a_replacement_costs_two_fsyncs_and_leaves_one_name() {
        let (keep, dir) = dir();
        let (done, disk) = Recorder::disk();
        write_atomic(&disk, &dir, &name(), b"x", Mode::from_raw_mode(0o640)).unwrap();
        assert_eq!(done.take(), [Op::Create, Op::SetMeta, Op::Write, Op::Fsync, Op::Rename, Op::Fsync]);
        assert_eq!(std::fs::read_dir(keep.path()).unwrap().count(), 1);
        let mode = rustix::fs::statat(&dir, "config.toml", rustix::fs::AtFlags::empty()).unwrap().st_mode;
        assert_eq!(mode & 0o7777, 0o640);
    }

    #[test]
    fn reading_tells_a_missing_file_from_an_oversized_one() {
        let (_keep, dir) = dir();
        assert!(read(&dir, &name(), 10).unwrap().is_none());
        write_atomic(&Disk::default(), &dir, &name(), &[b'x'; 11], Mode::from_raw_mode(0o600)).unwrap();
        assert_eq!(read(&dir, &name(), 10).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn the_longest_name_still_has_a_temporary_name() {
        let (_keep, dir) = dir();
        let longest = Name::new(vec![b'n'; Name::MAX]).unwrap();
        write_atomic(&Disk::default(), &dir, &longest, b"x", Mode::from_raw_mode(0o600)).unwrap();
        assert_eq!(read(&dir, &longest, 10).unwrap().unwrap(), b"x");
    }
}
