//! A task's directory, held from the start of its sandbox to the end.
//!
//! A task's directory may lie in that of another task, whose programs can put anything in its place at any time: a link, or another
//! directory. So the way to it is gone once, step by step, and whatever is done to it is done to what is held.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::failure::{Doing, Failure, Result};
use super::order::Order;
use crate::ckpt::FileKind;
use crate::fs::Root;
use crate::path::RelPath;

/// A task's directory, and those on the way to it.
#[derive(Debug)]
pub(super) struct Task {
    /// The sandbox root, without links.
    root: PathBuf,
    /// Where the directory is below that.
    path: PathBuf,
    /// The directories on the way, the sandbox root first.
    above: Vec<OwnedFd>,
    dir: OwnedFd,
}

const NONE: &str = "there is no sandbox for this task";

impl Task {
    /// Holds that of an order. Links lead to the sandbox root, if the user has made them, and none leads on from there; nor does
    /// a mount.
    pub(super) fn hold(order: &Order) -> Result<Self> {
        for path in [&order.sandbox_root, &order.task_dir] {
            if !path.is_absolute() {
                return Err(Failure::refused(NONE, format!("{} is not an absolute path", path.display())));
            }
        }
        let way = order.task_dir.strip_prefix(&order.sandbox_root).ok().and_then(below);
        let way = way.ok_or_else(|| Failure::refused(NONE, "its directory is not in the sandbox root"))?;
        let root = std::fs::canonicalize(&order.sandbox_root).doing(order.sandbox_root.display())?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut dir = rustix::fs::open(&root, flags, Mode::empty()).doing(root.display())?;
        let mut above = Vec::new();
        for name in way.components() {
            let next = step(&dir, &RelPath::ROOT.join(&name)).doing(order.task_dir.display())?;
            above.push(std::mem::replace(&mut dir, next));
        }
        Ok(Self { path: root.join(way.as_path()), root, above, dir })
    }

    /// The sandbox root, without links.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Where the directory was found, without links. What is there by now may be something else.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The directories on the way to it, beginning with the sandbox root.
    pub(super) fn above(&self) -> &[OwnedFd] {
        &self.above
    }
}

impl AsFd for Task {
    /// The directory, by an `O_PATH` descriptor.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

/// A way that leads down, and somewhere.
fn below(way: &Path) -> Option<RelPath> {
    let names: Vec<_> = way.components().map(|part| part.as_os_str().as_encoded_bytes()).collect();
    RelPath::new(&names.join(&b'/')).ok().filter(|way| !way.is_root())
}

fn step(dir: &OwnedFd, name: &RelPath) -> io::Result<OwnedFd> {
    let held = Root::held(dir)?.hold(name).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::XDEV) => io::Error::other("something is mounted on the way to it"),
        _ => error,
    })?;
    match held.stat().kind {
        FileKind::Directory => held.as_fd().try_clone_to_owned(),
        FileKind::Symlink => Err(io::Error::other("a link is in the way")),
        _ => Err(Errno::NOTDIR.into()),
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_tests::files::{mkdir, rename, symlink, write};

    use super::*;

    fn hold(root: &Path, dir: &Path) -> std::result::Result<Task, String> {
        let order = serde_json::json!({
            "taskDir": dir, "sandboxRoot": root, "mode": "workspace-write", "privateParent": "/", "hidden": [],
        });
        Task::hold(&serde_json::from_value(order).unwrap()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_task_is_what_stood_at_its_path_whatever_comes_there_later() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        let at = |name: &str| real.join(name);
        mkdir(at("root/outer/inner"));
        mkdir(at("root/other"));
        symlink(at("root"), at("way"));
        let task = hold(&at("way"), &at("way/outer/inner")).unwrap();
        assert_eq!((task.root(), task.path()), (&*at("root"), &*at("root/outer/inner")));
        rename(at("root/outer/inner"), at("root/outer/moved"));
        symlink("../other", at("root/outer/inner"));
        let number = |fd: BorrowedFd<'_>| rustix::fs::fstat(fd).unwrap().st_ino;
        let moved = std::fs::File::open(at("root/outer/moved")).unwrap();
        assert_eq!(number(task.as_fd()), number(moved.as_fd()));
        assert_eq!(task.above().len(), 2);
    }

    #[test]
    fn what_is_no_directory_below_the_sandbox_root_is_no_task() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        mkdir(at("root/task"));
        mkdir(at("outside"));
        write(at("root/file"), "");
        symlink("task", at("root/link"));
        symlink("../outside", at("root/out"));
        let table = [
            ("root/link", "a link is in the way"),
            ("root/out", "a link is in the way"),
            ("root/link/deeper", "a link is in the way"),
            ("root/file", "Not a directory"),
            ("root/gone", "No such file"),
            ("root/../outside", "not in the sandbox root"),
            ("outside", "not in the sandbox root"),
            ("root", "not in the sandbox root"),
        ];
        for (task, why) in table {
            let refused = hold(&at("root"), &at(task)).unwrap_err();
            assert!(refused.contains(why), "{task}: {refused}");
        }
        let refused = hold(Path::new("/"), Path::new("/proc/sys")).unwrap_err();
        assert!(refused.contains("mounted on the way"), "{refused}");
        assert!(hold(&at("root"), Path::new("task")).unwrap_err().contains("not an absolute path"));
    }
}
