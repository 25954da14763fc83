//! Gives the user's own rights back, where a program has taken them from what is the user's.
//!
//! What its owner may not read can neither be kept nor taken back, and one `chmod` would be enough to spoil both. Only the right
//! to read is given, and for directories the one to pass through. Root needs neither.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

use crate::disk::Disk;
use crate::fs::Root;
use crate::path::{Name, RelPath};

/// How many bytes the paths of directories may have that wait for their turn. What is more is left as it is.
const WAITING: usize = 64 << 20;

/// Gives them in a directory that is held, also deep below one that was closed, following no link and entering no mount. Ends when it is `late`: what
/// is then left, and what cannot be given, is told when it cannot be kept. Nothing of the sandbox runs any more.
pub(super) fn reopen(disk: &Disk, dir: impl AsFd, late: &dyn Fn() -> bool) -> io::Result<()> {
    let held = dir.as_fd();
    let found = rustix::fs::fstat(held)?;
    let owner = rustix::process::geteuid().as_raw();
    if found.st_uid == owner
        && let Some(mode) = wanted(&found)
    {
        disk.chmod_held(held, mode)?;
    }
    let mut walk = Walk {
        disk,
        root: Root::held(held)?,
        owner,
        dirs: vec![RelPath::ROOT],
        waiting: 0,
        names: HashMap::new(),
    };
    while let Some(path) = walk.dirs.pop()
        && !late()
    {
        walk.waiting -= path.as_bytes().len();
        // The others are not the worse for one that cannot be looked through.
        let _ = walk.enter(&path, late);
    }
    Ok(())
}

struct Walk<'a> {
    disk: &'a Disk,
    root: Root,
    owner: u32,
    /// What is still to be looked through.
    dirs: Vec<RelPath>,
    waiting: usize,
    /// How many names of a file were met that has several, by its number.
    names: HashMap<u64, u64>,
}

impl Walk<'_> {
    fn enter(&mut self, path: &RelPath, late: &dyn Fn() -> bool) -> io::Result<()> {
        let dir = self.root.open_dir(path)?;
        for entry in Dir::read_from(&dir)? {
            if late() {
                break;
            }
            let Ok(name) = Name::new(entry?.file_name().to_bytes()) else { continue };
            let Ok(found) = rustix::fs::statat(&dir, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if found.st_uid == self.owner && wanted(&found).is_some() {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let held = rustix::fs::openat(&dir, name.as_bytes(), flags, Mode::empty())?;
                let found = rustix::fs::fstat(&held)?;
                if found.st_uid == self.owner
                    && let Some(mode) = wanted(&found)
                    && self.is_all_in_here(&found)
                {
                    let _ = self.disk.chmod_held(&held, mode);
                }
            }
            if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
                let below = path.join(&name);
                let waiting = self.waiting + below.as_bytes().len();
                if waiting <= WAITING {
                    self.waiting = waiting;
                    self.dirs.push(below);
                }
            }
        }
        Ok(())
    }

    /// Whether something has no name outside, as far as is known; of a file with several names the last one that is met says so.
    fn is_all_in_here(&mut self, found: &Stat) -> bool {
        if found.st_nlink == 1 || FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            return true;
        }
        let met = self.names.entry(found.st_ino).or_default();
        *met += 1;
        *met == names_of(found)
    }
}

/// How many names something has. Kernels count them in integers of other widths on other machines.
#[allow(clippy::useless_conversion, reason = "it is none everywhere")]
fn names_of(found: &Stat) -> u64 {
    u64::from(found.st_nlink)
}

/// The rights of something that lacks what its owner needs to read it.
fn wanted(found: &Stat) -> Option<Mode> {
    let needed = match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => Mode::RUSR | Mode::XUSR,
        FileType::RegularFile => Mode::RUSR,
        _ => return None,
    };
    let mode = Mode::from_raw_mode(found.st_mode);
    (!mode.contains(needed)).then_some(mode | needed)
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use cofferdam_tests::files::{chmod, mkdir, symlink, write};

    use super::*;

    fn held(dir: impl AsRef<Path>) -> OwnedFd {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(dir.as_ref(), flags, Mode::empty()).unwrap()
    }

    fn mode(path: impl AsRef<Path>) -> u32 {
        std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_its_owner_may_not_read_can_be_read_again_and_nothing_else_changes() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for file in ["task/file", "task/kept", "task/deep/er/file", "task/one", "task/out", "outside"] {
            write(at(file), "");
        }
        std::fs::hard_link(at("task/one"), at("task/deep/two")).unwrap();
        std::fs::hard_link(at("task/out"), at("elsewhere")).unwrap();
        symlink(at("outside"), at("task/link"));
        mkdir(at("task/read"));
        let modes = [
            ("outside", 0, 0),
            ("task/link", 0o777, 0o777),
            ("task/file", 0o020, 0o420),
            ("task/kept", 0o444, 0o444),
            ("task/one", 0, 0o400),
            // It may be somebody's outside.
            ("task/out", 0, 0),
            ("task/read", 0o555, 0o555),
            ("task/deep/er/file", 0, 0o400),
            ("task/deep/er", 0, 0o500),
            ("task/deep", 0o200, 0o700),
            ("task", 0, 0o500),
        ];
        for (path, before, _) in modes {
            if path != "task/link" {
                chmod(at(path), before);
            }
        }
        reopen(&Disk::default(), held(at("task")), &|| false).unwrap();
        for (path, _, after) in modes {
            assert_eq!(mode(at(path)), after, "{path}");
        }
    }

    #[test]
    fn what_is_deep_is_reached_and_time_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d/".repeat(1000));
        mkdir(&deep);
        write(deep.join("file"), "");
        chmod(deep.join("file"), 0);
        reopen(&Disk::default(), held(dir.path()), &|| true).unwrap();
        assert_eq!(mode(deep.join("file")), 0);
        reopen(&Disk::default(), held(dir.path()), &|| false).unwrap();
        assert_eq!(mode(deep.join("file")), 0o400);
    }
}
