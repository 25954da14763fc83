//! Anything beneath a root, held before it is opened: what it is cannot change any more.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::root::{Root, open_for_reading};
use super::stat::{Stat, stat_fd};
use crate::ckpt::FileKind;
use crate::path::RelPath;

/// A file of any kind, held by an `O_PATH` descriptor.
#[derive(Debug)]
pub struct Held {
    fd: OwnedFd,
    stat: Stat,
}

impl Root {
    /// Holds what stands at a path beneath, the root itself for [`RelPath::ROOT`]. A link at the end is held itself; one
    /// on the way is `ELOOP`, something mounted on the way or at the end `EXDEV`.
    pub fn hold(&self, path: &RelPath) -> io::Result<Held> {
        let mut held: Option<Held> = None;
        for name in path.components() {
            let from = match &held {
                None => self.as_fd(),
                Some(Held { fd, stat }) => match stat.kind {
                    FileKind::Directory => fd.as_fd(),
                    FileKind::Symlink => return Err(Errno::LOOP.into()),
                    _ => return Err(Errno::NOTDIR.into()),
                },
            };
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = rustix::fs::openat(from, name.as_bytes(), flags, Mode::empty())?;
            let stat = stat_fd(&fd)?;
            if stat.mount != self.mount() {
                return Err(Errno::XDEV.into());
            }
            held = Some(Held { fd, stat });
        }
        match held {
            Some(held) => Ok(held),
            None => Ok(Held { fd: self.as_fd().try_clone_to_owned()?, stat: stat_fd(self)? }),
        }
    }
}

impl Held {
    /// What it is, as it was when it was reached.
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Opens a directory to list it, without moving its access time where we may ask for that.
    pub fn open_dir(&self) -> io::Result<OwnedFd> {
        open_for_reading(&self.fd, c".")
    }

    /// Opens a regular file for reading, likewise. Waits for nobody: a file on which somebody has a lease is refused with
    /// `ErrorKind::WouldBlock`.
    pub fn open_file(&self) -> io::Result<File> {
        if self.stat.kind != FileKind::File {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let path = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::open(&path, flags | OFlags::NOATIME, Mode::empty()) {
            Err(Errno::PERM) => Ok(rustix::fs::open(&path, flags, Mode::empty())?.into()),
            opened => Ok(opened?.into()),
        }
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::path::Path;

    use cofferdam_tests::files::{fifo, rename, symlink, write};

    use super::*;

    fn hold(root: &Root, path: &str) -> io::Result<Held> {
        root.hold(&RelPath::new(path.as_bytes()).unwrap())
    }

    #[track_caller]
    fn check(root: &Root, path: &str, errno: Errno) {
        assert_eq!(Errno::from_io_error(&hold(root, path).unwrap_err()), Some(errno), "{path}");
    }

    #[test]
    fn each_kind_is_held_as_itself_and_only_a_file_is_opened_as_one() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path().join("dir/file"), "text");
        symlink("file", dir.path().join("dir/link"));
        fifo(dir.path().join("dir/fifo"));
        let root = Root::open(dir.path()).unwrap();
        let table = [
            ("dir", FileKind::Directory),
            ("dir/file", FileKind::File),
            ("dir/link", FileKind::Symlink),
            ("dir/fifo", FileKind::Fifo),
        ];
        for (path, kind) in table {
            let held = hold(&root, path).unwrap();
            assert_eq!(held.stat().kind, kind, "{path}");
            assert_eq!(held.open_file().is_ok(), kind == FileKind::File, "{path}");
            assert_eq!(held.open_dir().is_ok(), kind == FileKind::Directory, "{path}");
        }
        assert_eq!(hold(&root, "").unwrap().stat().ino, stat_fd(&root).unwrap().ino);
    }

    #[test]
    fn what_is_on_the_way_says_why_it_goes_no_further() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path().join("dir/file"), "text");
        symlink("dir", dir.path().join("link"));
        let root = Root::open(dir.path()).unwrap();
        check(&root, "link/file", Errno::LOOP);
        check(&root, "dir/file/x", Errno::NOTDIR);
        check(&root, "dir/none", Errno::NOENT);
        check(&root, "none/file", Errno::NOENT);
        let root = Root::open(Path::new("/")).unwrap();
        check(&root, "proc", Errno::XDEV);
        check(&root, "proc/self", Errno::XDEV);
    }

    #[test]
    fn what_is_held_is_read_whatever_takes_its_name() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path().join("file"), "this");
        let held = hold(&Root::open(dir.path()).unwrap(), "file").unwrap();
        rename(dir.path().join("file"), dir.path().join("moved"));
        symlink("/etc/passwd", dir.path().join("file"));
        let mut text = String::new();
        held.open_file().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "this");
    }
}
