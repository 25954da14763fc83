//! Another view of files and processes: what is outside is read-only or not there at all, and has no number.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount,
    open_tree,
};
use rustix::process::{fchdir, getegid, geteuid};
use rustix::thread::UnshareFlags;

use super::failure::{Doing, Result};
use super::limits::machine_memory;
use super::order::LeftOut;
use super::places::Places;
use crate::sys::{add_mount_attributes, unshare};

/// Which namespaces a sandbox gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Namespaces {
    /// A view of files of its own.
    pub(super) mount: bool,
    /// Processes of its own.
    pub(super) pid: bool,
    /// Whether a user namespace is what allows the others. Without one, root makes them.
    pub(super) user: bool,
}

impl Namespaces {
    /// What is tried, best first; the last one always works.
    pub(super) fn attempts(root: bool, without: &[LeftOut]) -> Vec<Self> {
        let all = [
            Self { mount: true, pid: true, user: false },
            Self { mount: true, pid: true, user: true },
            Self { mount: true, pid: false, user: false },
            Self { mount: true, pid: false, user: true },
            Self { mount: false, pid: false, user: false },
        ];
        let wanted = |it: &Self| {
            (root || it.user || !it.mount)
                && !(it.mount && without.contains(&LeftOut::Namespaces))
                && !(it.pid && without.contains(&LeftOut::PidNamespace))
        };
        all.into_iter().filter(wanted).collect()
    }

    /// Takes this process into them; of the namespace of processes, its next child is the first member.
    pub(super) fn enter(self, places: &Places) -> Result<()> {
        if !self.mount {
            return Ok(());
        }
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        // Goes along into the new view, which no descriptor does.
        fchdir(&*places.task).doing("the task's directory cannot be entered")?;
        let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
        flags.set(UnshareFlags::NEWPID, self.pid);
        flags.set(UnshareFlags::NEWUSER, self.user);
        unshare(flags).doing("namespaces are not allowed")?;
        if self.user {
            // One keeps one's number, and can become nobody else.
            let what = "a user namespace cannot be set up";
            fs::write("/proc/self/setgroups", "deny").doing(what)?;
            fs::write("/proc/self/uid_map", format!("{uid} {uid} 1")).doing(what)?;
            fs::write("/proc/self/gid_map", format!("{gid} {gid} 1")).doing(what)?;
        }
        View { places }.set_up()
    }

    /// Shows the processes of the namespace, and no others. Called by its first member.
    pub(super) fn show_processes(self) -> Result<()> {
        if !self.pid {
            return Ok(());
        }
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
        mount("proc", "/proc", "proc", flags, c"")
            .doing("/proc cannot be mounted for the sandbox's own processes")
    }
}

/// Files as a sandbox sees them.
struct View<'a> {
    places: &'a Places,
}

impl View<'_> {
    fn set_up(&self) -> Result<()> {
        let what = "the outside cannot be made read-only";
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).doing(what)?;
        // Held before anything is covered, and so as it was.
        let shown = self.held(&self.places.shown)?;
        let writable = self.held(&self.places.writable)?;
        let temporary = self.held(&[self.places.private.join("tmp")])?;
        let inside: Vec<_> = shown.iter().chain(&writable).collect();
        for hidden in &self.places.hidden {
            cover(hidden, &inside).doing(format_args!("{} cannot be hidden", hidden.display()))?;
        }
        read_only(&open_tree(CWD, "/", OpenTreeFlags::OPEN_TREE_CLOEXEC).doing(what)?).doing(what)?;
        for Placed { path, tree, .. } in &shown {
            read_only(tree).doing(what)?;
            place(tree, path)?;
        }
        for Placed { path, tree, .. } in &writable {
            place(tree, path)?;
        }
        for Placed { tree, .. } in &temporary {
            self.own_temporaries(tree)?;
        }
        std::env::set_current_dir("/").doing(what)
    }

    /// Each place with the mount that is at it now, by itself.
    fn held(&self, paths: &[PathBuf]) -> Result<Vec<Placed>> {
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
        let held = |path: &PathBuf| {
            // What is at the task's path may be anything by now.
            let tree = match path == self.places.task.path() {
                true => open_tree(CWD, "", flags | OpenTreeFlags::AT_EMPTY_PATH),
                false => open_tree(CWD, path, flags),
            };
            let tree = tree.map_err(io::Error::from)?;
            add_mount_attributes(&tree, libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV)?;
            let kind = FileType::from_raw_mode(rustix::fs::fstat(&tree)?.st_mode);
            Ok::<_, io::Error>(Placed { path: path.clone(), tree, is_dir: kind == FileType::Directory })
        };
        paths
            .iter()
            .map(|path| held(path).doing(format_args!("{} cannot be mounted", path.display())))
            .collect()
    }

    /// Gives it directories for temporary files where programs expect them, unless something of this sandbox lies there.
    fn own_temporaries(&self, tmp: &OwnedFd) -> Result<()> {
        for dir in own_temporaries(self.places) {
            if dir == Path::new(SHARED_MEMORY) {
                let flags = MountFlags::NOSUID | MountFlags::NODEV;
                mount("none", &dir, "tmpfs", flags, shared_memory_size().as_c_str()).doing(dir.display())?;
                continue;
            }
            let flags = OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC
                | OpenTreeFlags::AT_EMPTY_PATH;
            let tree = open_tree(tmp, "", flags).doing(dir.display())?;
            place(&tree, &dir)?;
        }
        // Terminals of others, which may be the same user's, are not seen.
        if Path::new(TERMINALS).is_dir() {
            let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
            mount("none", TERMINALS, "devpts", flags, c"ptmxmode=0666,mode=620")
                .or_else(|_| {
                    mount("none", TERMINALS, "tmpfs", flags | MountFlags::NODEV, c"mode=755,size=4k")
                })
                .doing("the terminals of others cannot be hidden")?;
        }
        Ok(())
    }
}

fn read_only(tree: &OwnedFd) -> io::Result<()> {
    add_mount_attributes(tree, libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID)
}

fn place(tree: &OwnedFd, path: &Path) -> Result<()> {
    move_mount(tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .doing(format_args!("{} cannot be mounted", path.display()))
}

/// Something with the mount that was at it, by itself.
struct Placed {
    path: PathBuf,
    tree: OwnedFd,
    is_dir: bool,
}

/// Puts nothing in the place of a directory, but for where something in it is shown.
fn cover(hidden: &Path, shown: &[&Placed]) -> io::Result<()> {
    if !hidden.is_dir() {
        mount("/dev/null", hidden, c"", MountFlags::BIND, c"")?;
        return Ok(());
    }
    mount("none", hidden, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=755,size=1m")?;
    for Placed { path, is_dir, .. } in shown.iter().filter(|shown| shown.path.starts_with(hidden)) {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        if *is_dir {
            fs::create_dir(path)?;
        } else {
            // A name to mount on.
            let mode = rustix::fs::Mode::RUSR;
            rustix::fs::mknodat(CWD, path, FileType::RegularFile, mode, 0)?;
        }
    }
    Ok(())
}

/// Where shared memory has names.
const SHARED_MEMORY: &str = "/dev/shm";
/// Where terminals have.
pub(super) const TERMINALS: &str = "/dev/pts";

/// How much a sandbox's own may hold: the kernel would give each half of the machine's memory.
fn shared_memory_size() -> CString {
    const MOST: u64 = 512 << 20;
    const FILES: u64 = 1 << 16;
    let size = machine_memory().map_or(MOST, |machine| (machine / 8).min(MOST));
    CString::new(format!("mode=1777,size={size},nr_inodes={FILES}")).unwrap_or_default()
}

/// The places that a sandbox with a view of its own may write besides what it was given, and where others' files are not seen.
pub(super) fn own_temporaries(places: &Places) -> Vec<PathBuf> {
    let dirs = ["/tmp", "/var/tmp", SHARED_MEMORY].map(PathBuf::from);
    let is_dir = |dir: &PathBuf| dir.symlink_metadata().is_ok_and(|found| found.is_dir());
    dirs.into_iter().filter(|dir| is_dir(dir) && !places.all().any(|path| path.starts_with(dir))).collect()
}
