//! Recursive delete that cannot leave its directory.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::root::open_for_reading;
use super::stat::{Stat, stat, stat_fd};
use crate::ckpt::FileKind;
use crate::disk::Disk;
use crate::path::Name;

/// How deep the walk goes before it moves what is deeper up to the directory that is removed. Somebody who holds a directory
/// deep down keeps every directory on the way to it in the kernel's memory, and the kernel walks through all of them
/// each time one of them is removed.
const DEEPEST: usize = 100;

/// Removes a name and, if it is a directory, everything beneath it. Follows no link; checks each directory's mount
/// before entering it, and fails with `ErrorKind::CrossesDevices`, leaving what is left, where something else is
/// mounted: a directory that holds a mount can be moved, and a naive delete would then empty somebody's disk.
///
/// Holds three descriptors however deep the tree is. A directory of our own that forbids us to write is made writable.
pub fn remove_tree(disk: &Disk, dir: impl AsFd, name: &Name) -> io::Result<()> {
    let dir = dir.as_fd();
    let found = stat(dir, name.as_bytes())?;
    match found.kind {
        FileKind::MountPoint => return Err(Errno::XDEV.into()),
        FileKind::Directory => {}
        _ => return disk.unlink(dir, name.as_bytes()).map_err(mounted),
    }
    let (mut current, top) = enter(disk, dir, name, found.mount)?;
    let (held_top, mut moved) = (current.try_clone()?, 0);
    let mut levels = vec![top];
    while let Some(level) = levels.last_mut() {
        if level.pending.is_empty() {
            level.clear_names(disk, &current)?;
        }
        if let Some(name) = level.pending.pop() {
            match disk.rmdir(&current, name.as_bytes()) {
                Ok(()) => level.progressed = true,
                Err(error) if full(&error) => {
                    if levels.len() >= DEEPEST
                        && let Some(new) = move_up(disk, (&current, &name), &held_top, &mut moved)
                    {
                        levels[0].pending.push(new);
                        continue;
                    }
                    let (entered, below) = enter(disk, &current, &name, found.mount)?;
                    levels.push(below);
                    current = entered;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(mounted(error)),
            }
            continue;
        }
        // Nothing is left in here that can be seen: up, and away with it.
        let up = match levels.len() {
            1 => None,
            len => Some(ascend(&current, &levels[len - 2])?),
        };
        let parent = up.as_ref().map_or(dir, |fd| fd.as_fd());
        let Some(done) = levels.last_mut() else { break };
        match disk.rmdir(parent, done.name.as_bytes()) {
            Ok(()) => {}
            // Listing a directory while it shrinks can miss names.
            Err(error) if full(&error) && done.progressed => {
                done.progressed = false;
                rustix::fs::seek(&current, rustix::fs::SeekFrom::Start(0))?;
                continue;
            }
            Err(error) => return Err(mounted(error)),
        }
        levels.pop();
        if let (Some(up), Some(level)) = (up, levels.last_mut()) {
            level.progressed = true;
            current = up;
        }
    }
    Ok(())
}

/// A directory on the way down.
struct Level {
    /// Its name in the directory above.
    name: Name,
    /// To know it again on the way up.
    dev: (u32, u32),
    ino: u64,
    mount: u64,
    /// Directories in it that were seen and are not yet removed.
    pending: Vec<Name>,
    /// Whether something in it was removed since it was last listed from its start.
    progressed: bool,
}

impl Level {
    fn is(&self, stat: &Stat) -> bool {
        (self.dev, self.ino, self.mount) == (stat.dev, stat.ino, stat.mount)
    }

    /// Lists on from where the descriptor is, removes what is no directory, and returns at the end or when it has
    /// found directories.
    fn clear_names(&mut self, disk: &Disk, current: &OwnedFd) -> io::Result<()> {
        let mut buffer = [const { MaybeUninit::uninit() }; 32 * 1024];
        let mut listing = RawDir::new(current, &mut buffer);
        while let Some(entry) = listing.next() {
            let entry = entry?;
            let bytes = entry.file_name().to_bytes();
            let Ok(name) = Name::new(bytes) else {
                if matches!(bytes, b"." | b"..") {
                    continue;
                }
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a directory lists an impossible name",
                ));
            };
            let is_directory = match entry.file_type() {
                rustix::fs::FileType::Directory => true,
                rustix::fs::FileType::Unknown => match stat(current, name.as_bytes()) {
                    Ok(stat) => matches!(stat.kind, FileKind::Directory | FileKind::MountPoint),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(error),
                },
                _ => false,
            };
            if is_directory {
                self.pending.push(name);
            } else {
                match disk.unlink(current, name.as_bytes()) {
                    Ok(()) => self.progressed = true,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) if error.kind() == io::ErrorKind::IsADirectory => self.pending.push(name),
                    Err(error) => return Err(mounted(error)),
                }
            }
            // The rest of the buffer would be lost with it, so only a used-up buffer ends the round.
            if listing.is_buffer_empty() && !self.pending.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

fn enter(disk: &Disk, parent: impl AsFd, name: &Name, mount: u64) -> io::Result<(OwnedFd, Level)> {
    let held = rustix::fs::openat(
        &parent,
        name.as_bytes(),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let stat = stat_fd(&held)?;
    if stat.mount != mount {
        return Err(Errno::XDEV.into());
    }
    if stat.mode & 0o700 != 0o700 {
        // If it is not ours to change, the next step says so.
        let _ = disk.chmod_held(&held, Mode::RWXU);
    }
    let fd = open_for_reading(&held, c".")?;
    let level = Level {
        name: name.clone(),
        dev: stat.dev,
        ino: stat.ino,
        mount: stat.mount,
        pending: Vec::new(),
        progressed: false,
    };
    Ok((fd, level))
}

/// Moves a directory up to the top under a name that is free there; `None` if that cannot be done.
fn move_up(disk: &Disk, from: (&OwnedFd, &Name), top: &OwnedFd, moved: &mut u64) -> Option<Name> {
    loop {
        let name = Name::new(format!(".deep-{moved}").into_bytes()).ok()?;
        *moved += 1;
        match disk.rename_exclusive((from.0, from.1.as_bytes()), (top, name.as_bytes())) {
            Ok(()) => return Some(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // Where it is, it can be removed all the same.
            Err(_) => return None,
        }
    }
}

/// The directory above, if it is still the one we came from: somebody may have moved ours elsewhere.
fn ascend(current: &OwnedFd, above: &Level) -> io::Result<OwnedFd> {
    let up = open_for_reading(current, c"..")?;
    if above.is(&stat_fd(&up)?) {
        Ok(up)
    } else {
        Err(io::Error::other("a directory was moved away while it was being removed"))
    }
}

fn full(error: &io::Error) -> bool {
    // Some filesystems say EEXIST.
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}

/// A name cannot go while something is mounted on it.
fn mounted(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::ResourceBusy { Errno::XDEV.into() } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    fn remove(dir: &Path, name: &str) -> io::Result<()> {
        let dir = fs::File::open(dir).unwrap();
        remove_tree(&Disk::default(), &dir, &Name::new(name.as_bytes()).unwrap())
    }

    fn entries(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn everything_beneath_goes_and_nothing_behind_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, kept) = (dir.path().join("tree"), dir.path().join("kept"));
        fs::create_dir_all(&kept).unwrap();
        fs::write(kept.join("file"), "x").unwrap();
        fs::create_dir_all(tree.join("a/b/c")).unwrap();
        symlink(&kept, tree.join("a/link")).unwrap();
        for n in 0..2000 {
            fs::write(tree.join(format!("a/{n}-with-a-rather-long-name")), "").unwrap();
            if n % 10 == 0 {
                fs::create_dir_all(tree.join(format!("a/dir-{n}/in"))).unwrap();
            }
        }
        remove(dir.path(), "tree").unwrap();
        assert_eq!(entries(dir.path()), 1);
        assert_eq!(fs::read(kept.join("file")).unwrap(), b"x");
    }

    #[test]
    fn a_file_and_a_link_go_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "x").unwrap();
        symlink("file", dir.path().join("link")).unwrap();
        remove(dir.path(), "link").unwrap();
        assert_eq!(entries(dir.path()), 1);
        remove(dir.path(), "file").unwrap();
        assert_eq!(remove(dir.path(), "file").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn directories_that_forbid_it_are_removed_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        for (n, mode) in [0o000, 0o111, 0o444, 0o555].into_iter().enumerate() {
            let sub = dir.path().join(format!("tree/{n}"));
            fs::create_dir_all(sub.join("empty")).unwrap();
            fs::write(sub.join("file"), "").unwrap();
            fs::set_permissions(&sub, PermissionsExt::from_mode(mode)).unwrap();
        }
        fs::set_permissions(dir.path().join("tree"), PermissionsExt::from_mode(0o555)).unwrap();
        remove(dir.path(), "tree").unwrap();
        assert_eq!(entries(dir.path()), 0);
    }

    #[test]
    fn a_tree_deeper_than_any_limit_on_descriptors_is_removed_while_somebody_holds_its_deepest_directory() {
        // Each directory costs a disk some milliseconds, and memory none.
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let disk = Disk::default();
        let mut fd: OwnedFd = fs::File::open(dir.path()).unwrap().into();
        for _ in 0..20_000 {
            disk.mkdir(&fd, "d", Mode::RWXU).unwrap();
            disk.create(&fd, "f", OFlags::WRONLY, Mode::RWXU).unwrap();
            fd = open_for_reading(&fd, c"d").unwrap();
        }
        remove(dir.path(), "d").unwrap();
        assert_eq!(entries(dir.path()), 1);
        assert_eq!(stat_fd(&fd).unwrap().nlink, 0);
    }

    #[test]
    fn what_is_deep_is_removed_beside_files_of_any_name_and_in_directories_that_forbid_it() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("tree").join(["d"; 250].join("/"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "").unwrap();
        for n in 0..4 {
            fs::create_dir_all(dir.path().join(format!("tree/.deep-{n}/in"))).unwrap();
        }
        for at in deep.ancestors().take(250) {
            fs::set_permissions(at, PermissionsExt::from_mode(0o555)).unwrap();
        }
        remove(dir.path(), "tree").unwrap();
        assert_eq!(entries(dir.path()), 0);
    }

    #[test]
    fn what_is_mounted_is_never_entered() {
        let error = remove(Path::new("/"), "proc").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::CrossesDevices);
    }
}
