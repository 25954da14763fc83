//! Making a socket file: where, for whom, over what, and removing it again.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use cofferdam_storage::disk::Disk;
use cofferdam_storage::durable;
use cofferdam_storage::path::Name;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// The most bytes of a path that a socket address holds, besides the final NUL.
const MAX_PATH: usize = 107;

/// Who may connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The daemon's own user, and root.
    Owner,
    /// Every local user.
    Everybody,
}

/// Where a socket is to be.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The path.
    pub(crate) path: PathBuf,
    /// Whether the directory is one of our own, which nobody else may own or write to; else it is the user's choice.
    pub(crate) ours: bool,
    /// Who may connect.
    pub(crate) audience: Audience,
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BindError {
    #[error("socket path {} has {} bytes; a socket address holds {MAX_PATH}: choose a shorter one with {option}", path.display(), path.as_os_str().len())]
    TooLong { path: PathBuf, option: &'static str },
    #[error("{} is not a socket; move it away or choose another path with {option}", path.display())]
    NotASocket { path: PathBuf, option: &'static str },
    #[error("another daemon serves {}; stop it or choose another path with {option}", path.display())]
    Live { path: PathBuf, option: &'static str },
    #[error("{} belongs to another user or may be written by one, who could replace a socket in it; take that right away (chmod go-w) or choose another path with {option}", path.display())]
    Unsafe { path: PathBuf, option: &'static str },
    #[error("{what} {}: {source}; mend that or choose another path with {option}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error, option: &'static str },
}

impl BindError {
    /// Whether it failed for want of space.
    pub(crate) fn is_no_space(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// A socket file that this process made, or a note about one. Removed when dropped, if it is still that file.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

/// Listens at a place. A socket file that nobody serves is replaced; nothing else ever is. `option` is what a user
/// changes to get another path.
pub(crate) fn bind(place: &Place, option: &'static str) -> Result<(UnixListener, SocketFile), BindError> {
    let path = &place.path;
    let failed = |what| move |source| BindError::Io { what, path: path.clone(), source, option };
    if path.as_os_str().len() > MAX_PATH {
        return Err(BindError::TooLong { path: path.clone(), option });
    }
    prepare_directory(place, option)?;
    remove_stale(path, option)?;
    let listener = UnixListener::bind(path).map_err(failed("cannot listen at"))?;
    let file = open_to(place.audience, path).map_err(failed("cannot set the mode of"))?;
    listener.set_nonblocking(true).map_err(failed("cannot listen at"))?;
    Ok((listener, file))
}

/// Writes the path of a socket down at `note`, for clients that do not know it.
pub(crate) fn note(socket: &Path, note: &Path) -> io::Result<SocketFile> {
    let (directory, name) = held_parent(note)?;
    let (bytes, mode) = (socket.as_os_str().as_bytes(), Mode::RUSR | Mode::WUSR);
    durable::write_atomic(&Disk::default(), &directory, &name, bytes, mode)?;
    let identity = identity(&std::fs::symlink_metadata(note)?);
    Ok(SocketFile { path: note.to_owned(), identity })
}

/// The socket that a note names; `None` if there is no note.
pub(crate) fn noted(note: &Path) -> io::Result<Option<PathBuf>> {
    let (directory, name) = held_parent(note)?;
    let bytes = durable::read(&directory, &name, MAX_PATH as u64)?;
    Ok(bytes.map(|bytes| PathBuf::from(OsString::from_vec(bytes))))
}

/// The directory of a path, held open, and the path's last name.
fn held_parent(path: &Path) -> io::Result<(File, Name)> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let name = path.file_name().and_then(|name| Name::new(name.as_bytes()).ok()).ok_or_else(invalid)?;
    Ok((File::open(path.parent().ok_or_else(invalid)?)?, name))
}

/// Gives a new socket the mode for its audience. Where others can write to the directory, the name may lead to
/// another file by now: so it is done through a descriptor that follows no link, and to a socket of our own only.
fn open_to(audience: Audience, path: &Path) -> io::Result<SocketFile> {
    let mode = match audience {
        Audience::Owner => 0o600,
        Audience::Everybody => 0o666,
    };
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = made.metadata()?;
    if !found.file_type().is_socket() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("something else has taken its place"));
    }
    // A descriptor of this kind takes no fchmod.
    let itself = format!("/proc/self/fd/{}", made.as_raw_fd());
    std::fs::set_permissions(itself, Permissions::from_mode(mode))?;
    Ok(SocketFile { path: path.to_owned(), identity: identity(&found) })
}

fn prepare_directory(place: &Place, option: &'static str) -> Result<(), BindError> {
    let directory = match place.path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let failed = |what| move |source| BindError::Io { what, path: directory.to_owned(), source, option };
    let mode = match place.audience {
        Audience::Owner => 0o700,
        Audience::Everybody => 0o755,
    };
    if !directory.exists() {
        let made = DirBuilder::new().recursive(true).mode(mode).create(directory);
        made.map_err(failed("cannot make directory"))?;
        // The umask may have taken away what the audience needs.
        let mode = Permissions::from_mode(mode);
        std::fs::set_permissions(directory, mode).map_err(failed("cannot set the mode of"))?;
    }
    let found = std::fs::metadata(directory).map_err(failed("cannot look at"))?;
    if !is_safe(&found) {
        if place.ours {
            return Err(BindError::Unsafe { path: directory.to_owned(), option });
        }
        tracing::warn!(directory = %directory.display(), "other users can replace a socket in this directory");
    }
    Ok(())
}

/// Whether nobody but this user and root can replace what is in a directory.
fn is_safe(directory: &Metadata) -> bool {
    let ours = directory.uid() == 0 || directory.uid() == rustix::process::geteuid().as_raw();
    let (others_write, sticky) = (directory.mode() & 0o022 != 0, directory.mode() & 0o1000 != 0);
    ours && (!others_write || sticky)
}

fn remove_stale(path: &Path, option: &'static str) -> Result<(), BindError> {
    let failed = |what| move |source| BindError::Io { what, path: path.to_owned(), source, option };
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("cannot look at")(error)),
    };
    if !found.file_type().is_socket() {
        return Err(BindError::NotASocket { path: path.to_owned(), option });
    }
    match try_connect(path) {
        // A daemon that is too busy to take another connection serves as well.
        Ok(()) | Err(Errno::AGAIN) => Err(BindError::Live { path: path.to_owned(), option }),
        Err(Errno::CONNREFUSED) => {
            Disk::default().unlink(rustix::fs::CWD, path).map_err(failed("cannot replace"))
        }
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(failed("cannot tell whether a daemon serves")(errno.into())),
    }
}

/// Connects without waiting, not even for room in the backlog.
fn try_connect(path: &Path) -> Result<(), Errno> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &address)
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

impl SocketFile {
    /// The path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let still_ours =
            std::fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity);
        if still_ours && let Err(error) = Disk::default().unlink(rustix::fs::CWD, &self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove what clients find this daemon by");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn place(path: PathBuf) -> Place {
        Place { path, ours: true, audience: Audience::Owner }
    }

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_socket_is_made_for_its_audience_and_removed_in_the_end() {
        let dir = tempfile::tempdir().unwrap();
        for (audience, modes) in [(Audience::Owner, (0o700, 0o600)), (Audience::Everybody, (0o755, 0o666))] {
            let path = dir.path().join(format!("{audience:?}/a.sock"));
            let (_listener, file) =
                bind(&Place { path: path.clone(), ours: true, audience }, "--socket").unwrap();
            assert_eq!((mode(path.parent().unwrap()), mode(&path)), modes);
            drop(file);
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        drop(UnixListener::bind(&path).unwrap());
        let (listener, _file) = bind(&place(path.clone()), "--socket").unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        let error = bind(&place(path.clone()), "--socket").unwrap_err();
        assert!(matches!(error, BindError::Live { .. }), "{error}");
        assert!(UnixStream::connect(&path).is_ok());
        drop(listener);
    }

    #[test]
    fn a_daemon_too_busy_to_take_connections_is_a_live_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&socket, 0).unwrap();
        let _queued = UnixStream::connect(&path).unwrap();
        assert_eq!(try_connect(&path), Err(Errno::AGAIN));
        assert!(matches!(bind(&place(path.clone()), "--socket"), Err(BindError::Live { .. })));
        assert!(path.exists());
    }

    #[test]
    fn what_took_the_place_of_a_new_socket_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("a.sock"));
        std::fs::write(&target, "secret").unwrap();
        std::fs::set_permissions(&target, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        for taken in [&link, &target] {
            assert!(open_to(Audience::Everybody, taken).is_err());
        }
        assert_eq!(mode(&target), 0o640);
    }

    #[test]
    fn what_is_not_a_socket_is_never_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("a.sock"), dir.path().join("link"));
        std::fs::write(&path, "precious").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for taken in [&path, &link] {
            let error = bind(&place(taken.clone()), "--socket").unwrap_err();
            assert!(matches!(error, BindError::NotASocket { .. }), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn a_socket_that_took_the_place_of_ours_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        let (_listener, file) = bind(&place(path.clone()), "--socket").unwrap();
        // Both exist at once, so that they cannot have the same inode.
        let other = dir.path().join("b.sock");
        let _theirs = UnixListener::bind(&other).unwrap();
        let at = rustix::fs::CWD;
        Disk::default().rename((at, &other), (at, &path)).unwrap();
        drop(file);
        assert!(path.exists());
    }

    #[test]
    fn a_path_too_long_for_an_address_is_refused_and_says_what_to_do() {
        let long = Path::new("/tmp").join("x".repeat(104));
        let error = bind(&place(long), "--socket").unwrap_err().to_string();
        assert!(error.contains("109 bytes") && error.contains("--socket"), "{error}");
    }

    #[test]
    fn a_directory_of_ours_that_others_may_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        let chosen = Place { ours: false, ..place(dir.path().join("a.sock")) };
        assert!(matches!(bind(&place(chosen.path.clone()), "--socket"), Err(BindError::Unsafe { .. })));
        assert!(bind(&chosen, "--socket").is_ok());
    }
}
