//! A directory held open, and what lies beneath it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use super::identity::FileIdentity;
use super::stat::stat_fd;
use crate::disk::Disk;
use crate::path::{Name, RelPath};

/// A directory held open. Everything beneath it is reached through the descriptor: following no link, entering no
/// mount, whatever happens to the path meanwhile.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
    mount: u64,
}

impl Root {
    /// Opens the directory at an absolute path; the last component may not be a symbolic link.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !path.is_absolute() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not an absolute path"));
        }
        // A trailing slash would follow a link.
        let bytes = path.as_os_str().as_bytes();
        let end = bytes.iter().rposition(|b| *b != b'/').map_or(1, |last| last + 1);
        let fd = open_for_reading(rustix::fs::CWD, &bytes[..end])?;
        let mount = stat_fd(&fd)?.mount;
        Ok(Self { fd, mount })
    }

    /// Opens the directory at an absolute path in which there is no link; `ELOOP` if one has come into it.
    pub fn open_without_links(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), resolve) {
            Ok(fd) => Self::held(fd),
            // No openat2 here, or a sandbox that forbids it.
            Err(Errno::NOSYS | Errno::PERM) => Self::descend(path),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The same, one component at a time.
    fn descend(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut fd = rustix::fs::open(c"/", flags, Mode::empty())?;
        for name in path.iter().skip(1) {
            fd = rustix::fs::openat(&fd, name.as_bytes(), flags, Mode::empty())?;
        }
        Self::held(open_for_reading(&fd, c".")?)
    }

    /// A directory that is held already, its lifetime apart from the other descriptor's.
    pub fn held(dir: impl AsFd) -> io::Result<Self> {
        let mount = stat_fd(&dir)?.mount;
        Ok(Self { fd: dir.as_fd().try_clone_to_owned()?, mount })
    }

    /// The mount it is on.
    pub(super) fn mount(&self) -> u64 {
        self.mount
    }

    /// What tells this directory from any other that ever stood at its path.
    pub fn identity(&self) -> io::Result<FileIdentity> {
        FileIdentity::of(&self.fd)
    }

    /// Whether it is on an overlay filesystem. There a directory of a lower layer cannot be moved, and becomes another,
    /// as far as [`FileIdentity`] can tell, when it is first changed.
    pub fn is_overlay(&self) -> io::Result<bool> {
        crate::sys::is_overlay(&self.fd)
    }

    /// Makes its identity last: on an overlay filesystem it is changed now, into what it is.
    pub fn settle(&self, disk: &Disk) -> io::Result<()> {
        if !self.is_overlay()? {
            return Ok(());
        }
        let mode = Mode::from_raw_mode(stat_fd(&self.fd)?.mode);
        match disk.fchmod(&self.fd, mode) {
            // What nobody can change stays what it is.
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::PERM | Errno::ROFS)) => Ok(()),
            done => done,
        }
    }

    /// Opens a directory beneath (the root itself for [`RelPath::ROOT`]) for reading.
    pub fn open_dir(&self, path: &RelPath) -> io::Result<OwnedFd> {
        if path.is_root() {
            return open_for_reading(&self.fd, c".");
        }
        let mut held: Option<OwnedFd> = None;
        let mut pieces = pieces(path.as_bytes()).peekable();
        while let Some(piece) = pieces.next() {
            let from = held.as_ref().map_or(self.fd.as_fd(), |fd| fd.as_fd());
            let last = pieces.peek().is_none();
            let flags = if last { OFlags::RDONLY | OFlags::NOATIME } else { OFlags::PATH };
            held = Some(
                match open_beneath(from, piece, flags) {
                    Err(Errno::PERM) if last => open_beneath(from, piece, OFlags::RDONLY),
                    opened => opened,
                }
                .or_else(|errno| match errno {
                    // No openat2 here, or a sandbox that forbids it; or a rename elsewhere came between too often.
                    Errno::NOSYS | Errno::PERM | Errno::AGAIN => self.walk(from, piece, last),
                    other => Err(other.into()),
                })?,
            );
        }
        // A path that is not the root has a piece.
        held.ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// Opens the directory that holds `path` and returns it with the last name. `None` for the root.
    pub fn open_parent(&self, path: &RelPath) -> io::Result<Option<(OwnedFd, Name)>> {
        match path.split() {
            Some((parent, name)) => Ok(Some((self.open_dir(&parent)?, name))),
            None => Ok(None),
        }
    }

    /// What openat2 does, one component at a time.
    fn walk(&self, from: BorrowedFd<'_>, piece: &[u8], read: bool) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut held: Option<OwnedFd> = None;
        for name in piece.split(|b| *b == b'/') {
            let from = held.as_ref().map_or(from, |fd| fd.as_fd());
            let next = rustix::fs::openat(from, name, flags, Mode::empty())?;
            if stat_fd(&next)?.mount != self.mount {
                return Err(Errno::XDEV.into());
            }
            held = Some(next);
        }
        match held {
            Some(fd) if read => open_for_reading(&fd, c"."),
            Some(fd) => Ok(fd),
            None => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens a directory for reading, following no link at the end of the name, and without moving its access time when it
/// is listed, where we may ask for that.
pub fn open_for_reading(dir: impl AsFd, name: impl Arg + Copy) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(&dir, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => Ok(rustix::fs::openat(&dir, name, flags, Mode::empty())?),
        opened => Ok(opened?),
    }
}

fn open_beneath(from: BorrowedFd<'_>, piece: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(from, piece, flags, Mode::empty(), resolve)
}

/// Runs of whole components, each short enough for one system call.
fn pieces(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    const LONGEST: usize = 4000;
    let mut rest = path;
    std::iter::from_fn(move || {
        let end = match rest.len() {
            0 => return None,
            len if len <= LONGEST => len,
            _ => rest[..LONGEST].iter().rposition(|b| *b == b'/')?,
        };
        let piece = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;

    fn path(text: &str) -> RelPath {
        RelPath::new(text.as_bytes()).unwrap()
    }

    fn ino(fd: impl AsFd) -> u64 {
        stat_fd(fd).unwrap().ino
    }

    /// Both ways to go must lead to the same place or nowhere.
    fn open_both_ways(root: &Root, at: &RelPath) -> io::Result<OwnedFd> {
        let mut walked: io::Result<OwnedFd> = open_for_reading(root, c".");
        for piece in pieces(at.as_bytes()) {
            walked = walked.and_then(|from| root.walk(from.as_fd(), piece, true));
        }
        let opened = root.open_dir(at);
        match (&opened, &walked) {
            (Ok(one), Ok(other)) => assert_eq!(ino(one), ino(other)),
            (Err(_), Err(_)) => {}
            differ => panic!("openat2 and the walk differ: {differ:?}"),
        }
        opened
    }

    #[test]
    fn a_directory_beneath_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let expected = ino(std::fs::File::open(dir.path().join("a/b")).unwrap());
        assert_eq!(ino(open_both_ways(&root, &path("a/b")).unwrap()), expected);
        assert_eq!(ino(root.open_dir(&RelPath::ROOT).unwrap()), ino(&root));
        let (parent, name) = root.open_parent(&path("a/b/c")).unwrap().unwrap();
        assert_eq!((ino(parent), name.as_bytes()), (expected, &b"c"[..]));
        assert!(root.open_parent(&RelPath::ROOT).unwrap().is_none());
    }

    #[test]
    fn no_link_is_followed_wherever_it_stands() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("real/in")).unwrap();
        symlink("real", dir.path().join("link")).unwrap();
        symlink("/", dir.path().join("out")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        for bad in ["link", "link/in", "out/etc"] {
            assert!(open_both_ways(&root, &path(bad)).is_err(), "{bad}");
        }
        assert!(Root::open(&dir.path().join("link")).is_err());
        assert!(Root::open(&dir.path().join("link/")).is_err());
    }

    #[test]
    fn a_path_without_links_is_opened_across_mounts_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(real.join("a/b")).unwrap();
        symlink("a", real.join("link")).unwrap();
        for open in [Root::open_without_links, Root::descend] {
            let expected = ino(std::fs::File::open(real.join("a/b")).unwrap());
            assert_eq!(ino(open(&real.join("a/b")).unwrap()), expected);
            assert_eq!(
                ino(open(Path::new("/proc/sys")).unwrap()),
                ino(std::fs::File::open("/proc/sys").unwrap())
            );
            assert_eq!(ino(open(Path::new("/")).unwrap()), ino(std::fs::File::open("/").unwrap()));
            for bad in ["link", "link/b"] {
                let error = open(&real.join(bad)).unwrap_err();
                assert!(matches!(Errno::from_io_error(&error), Some(Errno::LOOP | Errno::NOTDIR)), "{error}");
            }
        }
    }

    #[test]
    fn no_mount_is_entered() {
        let root = Root::open(Path::new("/")).unwrap();
        let error = open_both_ways(&root, &path("proc")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::CrossesDevices);
        assert!(open_both_ways(&root, &path("proc/self")).is_err());
    }

    #[test]
    fn a_path_longer_than_any_system_call_takes_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let name = Name::new([b'n'; 255]).unwrap();
        let mut at = RelPath::ROOT;
        let mut fd = root.open_dir(&at).unwrap();
        let disk = Disk::default();
        for _ in 0..40 {
            disk.mkdir(&fd, name.as_bytes(), Mode::from_raw_mode(0o700)).unwrap();
            fd = open_for_reading(&fd, name.as_bytes()).unwrap();
            at = at.join(&name);
        }
        assert!(at.as_bytes().len() > 2 * 4096);
        assert_eq!(ino(open_both_ways(&root, &at).unwrap()), ino(&fd));
        super::super::remove_tree(&disk, &root, &name).unwrap();
    }

    #[test]
    fn a_root_that_is_no_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(Root::open(&file).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert_eq!(Root::open(&dir.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(Root::open(Path::new("tmp")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn programs_that_are_started_do_not_inherit_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let flags = rustix::io::fcntl_getfd(&root).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC), "{}", root.as_fd().as_raw_fd());
    }
}
