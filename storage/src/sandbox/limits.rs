//! A cgroup of a sandbox's own, where one can be made: it limits what the sandbox uses, and ends all of it at once.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, waitpid};

use super::order::Limits;
use crate::sys::{Fork, fork};

impl Limits {
    /// What an agent gets: as many processes and threads as a large build needs, and three quarters of the machine's memory,
    /// so that what runs beside it goes on.
    pub fn usual() -> Self {
        Self { memory: machine_memory().map(|total| total / 4 * 3), processes: Some(4096) }
    }
}

/// The machine's memory in bytes.
pub(super) fn machine_memory() -> Option<u64> {
    total(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// The machine's memory in bytes, by `/proc/meminfo`.
fn total(machine: &str) -> Option<u64> {
    let kib = machine.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    kib.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// A cgroup. Removed when nothing is in it any more.
#[derive(Debug)]
pub(super) struct Cgroup {
    dir: PathBuf,
    /// Held, for whoever cannot open them any more: where one enters it, and where all in it are killed.
    entry: File,
    killer: File,
}

impl Cgroup {
    /// Makes one below this process's own; the error says why there is none.
    pub(super) fn make(name: &str) -> Result<Self, String> {
        let dir = dir_of(OsStr::new(name)).ok_or("there is no cgroup2 here")?;
        rustix::fs::mkdir(&dir, rustix::fs::Mode::from_raw_mode(0o755))
            .map_err(|error| format!("none can be made: {error}"))?;
        // Also tells a kernel that cannot kill a whole group.
        let killer = open(&dir, KILL).map_err(|error| format!("the kernel cannot end one at once: {error}"));
        let made = killer.and_then(|killer| {
            let entered = open(&dir, ENTRY).and_then(|entry| {
                let made = Self { dir: dir.clone(), entry, killer };
                made.try_out().map(|()| made)
            });
            entered.map_err(|error| format!("one cannot be entered: {error}"))
        });
        if made.is_err() {
            let _ = remove(&dir);
        }
        made
    }

    /// Has a process enter it that ends at once: whoever may make one may not always move there.
    fn try_out(&self) -> io::Result<()> {
        match fork()? {
            Fork::Child => std::process::exit(i32::from(self.enter().is_err())),
            Fork::Parent(child) => match waitpid(Some(child), WaitOptions::empty())? {
                Some((_, status)) if status.exit_status() == Some(0) => Ok(()),
                _ => Err(io::ErrorKind::PermissionDenied.into()),
            },
        }
    }

    /// Limits what is in it; says what holds, for people.
    pub(super) fn limit(&self, limits: Limits) -> String {
        let wanted = [("memory.max", "memory", limits.memory), ("pids.max", "processes", limits.processes)];
        let mut said = vec!["ends all at once".to_owned()];
        for (file, what, limit) in wanted {
            let Some(limit) = limit else { continue };
            said.push(match fs::write(self.dir.join(file), limit.to_string()) {
                Ok(()) => format!("{what} limited to {limit}"),
                Err(_) => format!("{what} not limited: the controller is not available"),
            });
        }
        said.join(", ")
    }

    /// Moves this process into it.
    pub(super) fn enter(&self) -> io::Result<()> {
        (&self.entry).write_all(b"0")
    }

    /// Kills all that is in it.
    pub(super) fn kill(&self) {
        let _ = (&self.killer).write_all(b"1");
    }

    /// Ends what a killed supervisor has left in one, and removes it.
    pub(super) fn forget(name: &OsStr) -> io::Result<()> {
        let Some(dir) = dir_of(name).filter(|dir| dir.exists()) else { return Ok(()) };
        open(&dir, KILL)?.write_all(b"1")?;
        remove(&dir)
    }

    /// Removes it. Nothing is in it any more.
    pub(super) fn remove(&self) -> io::Result<()> {
        remove(&self.dir)
    }
}

/// Where a process enters a cgroup.
const ENTRY: &str = "cgroup.procs";
/// Where all in it are killed.
const KILL: &str = "cgroup.kill";

fn open(dir: &Path, name: &str) -> io::Result<File> {
    File::options().write(true).open(dir.join(name))
}

/// Removes one once the processes in it, which have been killed, have ended; they may take a second.
fn remove(dir: &Path) -> io::Result<()> {
    const ROUND: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let mut removed = fs::remove_dir(dir);
    for _ in 0..10 {
        if !removed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy) {
            break;
        }
        // It tells when the last one has left, to whoever has read it.
        let events = File::open(dir.join("cgroup.events"))?;
        io::read_to_string(&events)?;
        let _ = poll(&mut [PollFd::from_borrowed_fd(events.as_fd(), PollFlags::PRI)], Some(&ROUND));
        removed = fs::remove_dir(dir);
    }
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn dir_of(name: &OsStr) -> Option<PathBuf> {
    let mut own_name = OsString::from("cofferdam-pod-");
    own_name.push(name);
    Some(own_dir()?.join(own_name))
}

/// Where this process's own cgroup is.
fn own_dir() -> Option<PathBuf> {
    let cgroups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = cgroups.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        after.starts_with("cgroup2 ").then_some(())?;
        let below = PathBuf::from("/").join(&own);
        Some(PathBuf::from(point).join(below.strip_prefix(root).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_memory_is_what_the_kernel_says() {
        assert_eq!(total("MemTotal:        8000 kB\nMemFree:  1 kB\n"), Some(8_192_000));
        assert_eq!(total("MemFree:  1 kB\n"), None);
        let usual = Limits::usual();
        assert!(usual.memory.unwrap() > 1 << 20 && usual.processes == Some(4096), "{usual:?}");
    }
}
