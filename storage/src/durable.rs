//! Files that are replaced whole and survive power loss: temporary name, write, fsync, rename, fsync the directory.
//! And the directories they are in.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
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
    let file = match create(disk, dir, &temporary, mode) {
        // A writer that died left it. The name says whose it is.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk.unlink(dir, &*temporary)?;
            create(disk, dir, &temporary, mode)?
        }
        created => created?,
    };
    let written = disk
        .write_all_at(&file, bytes, 0)
        // The umask may have taken bits away.
        .and_then(|()| disk.fchmod(&file, mode))
        .and_then(|()| disk.fsync(&file))
        .and_then(|()| disk.rename((dir, &*temporary), (dir, name.as_bytes())));
    if let Err(error) = written {
        // Best effort: the next writer removes it otherwise.
        let _ = disk.unlink(dir, &*temporary);
        return Err(error);
    }
    disk.fsync(dir)
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

fn create(disk: &Disk, dir: impl AsFd, name: &[u8], mode: Mode) -> io::Result<File> {
    disk.create(dir, name, OFlags::WRONLY, mode).map(File::from)
}

/// `.NAME.tmp`, with NAME cut where it would get too long.
fn temporary_name(name: &Name) -> Vec<u8> {
    let kept = name.as_bytes().len().min(Name::MAX - 5);
    [b".", &name.as_bytes()[..kept], b".tmp"].concat()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::disk::{FaultHook, Op};

    fn dir() -> (tempfile::TempDir, std::os::fd::OwnedFd) {
        let dir = tempfile::tempdir().unwrap();
        let fd = rustix::fs::open(dir.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        (dir, fd)
    }

    fn name() -> Name {
        Name::new(&b"config.toml"[..]).unwrap()
    }

    /// Fails the Nth operation and every later one, as a disk that went away.
    #[derive(Debug)]
    struct FailFrom {
        nth: u64,
        seen: AtomicU64,
        fsyncs: AtomicU64,
    }

    impl FailFrom {
        fn new(nth: u64) -> Arc<Self> {
            Arc::new(Self { nth, seen: AtomicU64::new(0), fsyncs: AtomicU64::new(0) })
        }
    }

    impl FaultHook for FailFrom {
        fn before(&self, op: Op) -> io::Result<()> {
            self.fsyncs.fetch_add(u64::from(op == Op::Fsync), Ordering::Relaxed);
            match self.seen.fetch_add(1, Ordering::Relaxed) >= self.nth {
                true => Err(rustix::io::Errno::NOSPC.into()),
                false => Ok(()),
            }
        }
        fn step(&self, _: &str) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn directories_are_made_with_those_above_them_and_each_name_is_synced() {
        let (dir, _) = dir();
        let hook = FailFrom::new(u64::MAX);
        let disk = Disk::with_faults(hook.clone());
        let path = dir.path().join("a/b/c");
        for _ in 0..2 {
            make_dirs(&disk, &path, Mode::from_raw_mode(0o700)).unwrap();
            assert_eq!(hook.fsyncs.load(Ordering::Relaxed), 3);
        }
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
            let failing = Disk::with_faults(FailFrom::new(nth));
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
        let hook = FailFrom::new(u64::MAX);
        let disk = Disk::with_faults(hook.clone());
        write_atomic(&disk, &dir, &name(), b"x", Mode::from_raw_mode(0o640)).unwrap();
        assert_eq!(hook.fsyncs.load(Ordering::Relaxed), 2);
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
