//! A cgroup of a sandbox's own, where one can be made: it limits what the sandbox uses, and ends all of it at once.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::PathBuf;

use rustix::process::{WaitOptions, waitpid};

use super::order::Limits;
use crate::sys::{Fork, fork};

impl Limits {
    /// What an agent gets: as many processes and threads as a large build needs, and three quarters of the machine's memory,
    /// so that what runs beside it goes on.
    pub fn usual() -> Self {
        let machine = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Self { memory: total(&machine).map(|total| total / 4 * 3), processes: Some(4096) }
    }
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
}

impl Cgroup {
    /// Makes one below this process's own; the error says why there is none.
    pub(super) fn make(name: &str) -> Result<Self, String> {
        let dir = dir_of(OsStr::new(name)).ok_or("there is no cgroup2 here")?;
        rustix::fs::mkdir(&dir, rustix::fs::Mode::from_raw_mode(0o755))
            .map_err(|error| format!("none can be made: {error}"))?;
        let made = Self { dir };
        // Also tells a kernel that cannot kill a whole group.
        if !made.dir.join("cgroup.kill").exists() {
            made.remove();
            return Err("the kernel cannot end one at once".to_owned());
        }
        if let Err(error) = made.try_out() {
            made.remove();
            return Err(format!("one cannot be entered: {error}"));
        }
        Ok(made)
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
        fs::write(self.dir.join("cgroup.procs"), "0")
    }

    /// Kills all that is in it.
    pub(super) fn kill(&self) {
        let _ = fs::write(self.dir.join("cgroup.kill"), "1");
    }

    /// Removes one that a killed supervisor has left, if nothing is in it.
    pub(super) fn forget(name: &OsStr) {
        if let Some(dir) = dir_of(name) {
            Self { dir }.remove();
        }
    }

    /// Removes it, if nothing is in it.
    pub(super) fn remove(&self) {
        let _ = fs::remove_dir(&self.dir);
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
