//! Files that are put into a private home before the program starts, and taken out of it when nothing runs any more. Their
//! content crosses in files in memory, one for each, that daemon and supervisor both hold: nothing is left anywhere.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{MemfdFlags, Mode, OFlags};

use super::order::{HomeFile, PodUser};
use crate::ckpt::FileKind;
use crate::disk::Disk;
use crate::fs::Root;
use crate::path::RelPath;

/// The most files of an order.
pub const MAX_HOME_FILES: usize = 16;
/// How much is copied at once.
const CHUNK: usize = 64 << 10;

/// A file in memory with this content, for [`launch`](super::launch): in the order of [`Order::home_files`](super::Order).
pub fn home_file(content: &[u8]) -> io::Result<OwnedFd> {
    let file = File::from(rustix::fs::memfd_create("home-file", MemfdFlags::CLOEXEC)?);
    file.write_all_at(content, 0)?;
    Ok(file.into())
}

/// What such a file holds, of at most `limit` bytes; what a supervisor gave back keeps to the order's limit.
pub fn home_file_content(file: impl AsFd, limit: u64) -> io::Result<Vec<u8>> {
    let file = File::from(file.as_fd().try_clone_to_owned()?);
    let length = file.metadata()?.len();
    if length > limit {
        return Err(too_large(limit));
    }
    let mut content = vec![0; usize::try_from(length).map_err(|_| too_large(limit))?];
    file.read_exact_at(&mut content, 0)?;
    Ok(content)
}

/// Puts a file into a home; what stands in its place, other than a directory, goes. It is `user`'s, if one is named.
pub(super) fn put(
    disk: &Disk,
    home: &Path,
    file: &HomeFile,
    content: &OwnedFd,
    user: Option<PodUser>,
) -> io::Result<()> {
    let (root, path) = (Root::open(home)?, relative(file)?);
    let give = |held: &OwnedFd| user.map_or(Ok(()), |user| disk.chown_held(held, user.uid, user.gid));
    let mut parent = RelPath::ROOT;
    let (parents, name) = path.split().ok_or(io::ErrorKind::InvalidFilename)?;
    for name in parents.components() {
        let made = disk.mkdir(root.open_dir(&parent)?, name.as_bytes(), Mode::RWXU);
        parent = parent.join(&name);
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.and_then(|()| give(&root.open_dir(&parent)?))?,
        }
    }
    let dir = root.open_dir(&parent)?;
    match disk.unlink(&dir, name.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let made = File::from(disk.create(&dir, name.as_bytes(), OFlags::WRONLY, Mode::RUSR | Mode::WUSR)?);
    let content = File::from(content.try_clone()?);
    let (mut chunk, mut at) = (vec![0; CHUNK], 0);
    loop {
        let count = content.read_at(&mut chunk, at)?;
        if count == 0 {
            return give(&made.into());
        }
        disk.write_all_at(&made, &chunk[..count], at)?;
        at += count as u64;
    }
}

/// Writes what a file in a home has become into its file in memory. Whatever the program made of its home: no link is
/// followed, and nothing but a file of one name, no longer than `limit` bytes, is read.
pub(super) fn take_back(home: &Path, file: &HomeFile, limit: u64, to: &OwnedFd) -> io::Result<()> {
    let held = Root::open(home)?.hold(&relative(file)?)?;
    if held.stat().kind != FileKind::File {
        return Err(io::Error::other("it is no regular file any more"));
    }
    if held.stat().nlink != 1 {
        return Err(io::Error::other("it has another name, too"));
    }
    let mut from = held.open_file()?.take(limit + 1);
    let to = File::from(to.try_clone()?);
    to.set_len(0)?;
    let (mut chunk, mut at) = (vec![0; CHUNK], 0);
    loop {
        match from.read(&mut chunk)? {
            0 => return Ok(()),
            count => {
                to.write_all_at(&chunk[..count], at)?;
                at += count as u64;
            }
        }
        if at > limit {
            return Err(too_large(limit));
        }
    }
}

fn relative(file: &HomeFile) -> io::Result<RelPath> {
    let bytes = file.path.as_os_str().as_encoded_bytes();
    RelPath::new(bytes).map_err(|_| io::Error::other("its path must be one below the home, without `..`"))
}

fn too_large(limit: u64) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {limit} bytes"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use cofferdam_tests::files;

    use super::*;

    fn file(path: &str) -> HomeFile {
        HomeFile { path: path.into(), back: Some(10) }
    }

    fn taken(home: &Path, path: &str) -> Result<Vec<u8>, String> {
        let memory = home_file(b"before").unwrap();
        take_back(home, &file(path), 10, &memory).map_err(|error| error.to_string())?;
        Ok(home_file_content(&memory, 10).unwrap())
    }

    #[test]
    fn what_is_put_is_there_for_its_owner_alone_and_comes_back_as_it_has_become() {
        let home = tempfile::tempdir().unwrap();
        let disk = Disk::default();
        let put_it = |text: &[u8]| {
            put(&disk, home.path(), &file("a/b/c"), &home_file(text).unwrap(), None).unwrap();
        };
        put_it(b"first and long");
        put_it(b"second");
        let path = home.path().join("a/b/c");
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        for (path, mode) in [(path.as_path(), 0o600), (&home.path().join("a"), 0o700)] {
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, mode);
        }
        assert_eq!(taken(home.path(), "a/b/c").unwrap(), b"second");
        files::write(&path, "ten bytes!");
        assert_eq!(taken(home.path(), "a/b/c").unwrap(), b"ten bytes!");
        files::write(&path, "");
        assert_eq!(taken(home.path(), "a/b/c").unwrap(), b"");
    }

    #[test]
    fn nothing_outside_of_the_home_is_written_or_read() {
        let home = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        files::write(outside.path().join("secret"), "secret");
        symlink(outside.path(), home.path().join("link")).unwrap();
        let memory = home_file(b"new").unwrap();
        for path in ["link/new", "link/deep/new", "../new", "/new", "", "a/../../new"] {
            put(&Disk::default(), home.path(), &file(path), &memory, None).unwrap_err();
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
        taken(home.path(), "link/secret").unwrap_err();
        symlink(outside.path().join("secret"), home.path().join("also")).unwrap();
        assert!(taken(home.path(), "also").unwrap_err().contains("no regular file"));
        // What is put takes a link's place.
        put(&Disk::default(), home.path(), &file("also"), &memory, None).unwrap();
        assert_eq!(std::fs::read(outside.path().join("secret")).unwrap(), b"secret");
        std::fs::hard_link(outside.path().join("secret"), home.path().join("hard")).unwrap();
        assert!(taken(home.path(), "hard").unwrap_err().contains("another name"));
    }

    #[test]
    fn what_is_no_file_or_too_large_or_gone_does_not_come_back() {
        let home = tempfile::tempdir().unwrap();
        files::fifo(home.path().join("pipe"));
        files::mkdir(home.path().join("dir"));
        files::write(home.path().join("large"), "x".repeat(11));
        for name in ["pipe", "dir", "large", "gone"] {
            taken(home.path(), name).unwrap_err();
        }
    }
}
