//! Ends every process of a sandbox at one moment. One after the other they may start others faster than they are found; whatever is
//! done here, none that is being started is missed.

use std::fs::File;

use landlock::{
    AccessFs, CompatLevel, Compatible, PathBeneath, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::io::Errno;
use rustix::process::{getpid, getppid, test_kill_process};

use super::limits::Cgroup;

/// The ways in which that can be done here; there may be none.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtOnce<'a> {
    pub(super) bounded: Option<Bounded>,
    pub(super) cgroup: Option<&'a Cgroup>,
}

impl AtOnce<'_> {
    /// Kills all but this process itself, as far as it can.
    pub(super) fn kill(self) {
        if let Some(cgroup) = self.cgroup {
            cgroup.kill();
        }
        if let Some(bounded) = self.bounded {
            bounded.kill_all();
        }
    }
}

/// Proof that this process can signal nothing but itself and what it has started since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounded(());

impl Bounded {
    /// Bounds this process, which must have one thread and mounts nothing any more, by Landlock's scope of signals; `None` where
    /// there is no such scope, or where it cannot be seen to hold.
    pub(super) fn by_landlock() -> Option<Self> {
        // One that may not be signalled anyway would prove nothing.
        let outside = getppid()?;
        test_kill_process(outside).ok()?;
        restrict(&File::open("/").ok()?).ok()?;
        (test_kill_process(outside) == Err(Errno::PERM)).then_some(Self(()))
    }

    /// The first process of a namespace of processes has no number for any other. `None` if this is none.
    pub(super) fn by_namespace() -> Option<Self> {
        getpid().is_init().then_some(Self(()))
    }

    fn kill_all(self) {
        // Everything that this process may signal, which is not much: see above.
        let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
    }
}

fn restrict(root: &File) -> Result<RestrictionStatus, RulesetError> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let rules = rules.handle_access(AccessFs::Refer)?.scope(Scope::Signal)?.create()?;
    // Every set of rules forbids moving files from one directory to another, unless it says otherwise.
    rules.add_rule(PathBeneath::new(root, AccessFs::Refer))?.restrict_self()
}
