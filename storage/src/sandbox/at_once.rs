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

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::{Resource, Rlimit, setrlimit};

    use super::super::processes::{Children, reap};
    use super::*;

    /// Set for this test once more, where its processes are counted and have a namespace of their own.
    const CONTAINED: &str = "COFFERDAM_TEST_CONTAINED";
    /// What that says where there are no scopes.
    const NO_SCOPES: i32 = 77;

    #[test]
    fn one_signal_ends_processes_that_are_always_somebody_else_and_nothing_outside() {
        if std::env::var_os(CONTAINED).is_some() {
            return end_a_storm();
        }
        let test = "sandbox::at_once::tests::one_signal_ends_processes_that_are_always_somebody_else_and_nothing_outside";
        let script = format!(
            "sleep 1000 & \"$0\" --exact {test} --test-threads=1; code=$?; kill $! || code=3; exit $code"
        );
        let mut contained = Command::new("timeout");
        contained.args(["--signal=KILL", "60", "unshare", "--user", "--map-current-user", "--pid", "--fork"]);
        contained.args(["--kill-child", "--mount-proc", "sh", "-c", &script]);
        contained.arg(std::env::current_exe().unwrap()).env(CONTAINED, "").stdout(Stdio::null());
        match contained.status().map(|status| status.code()) {
            Ok(Some(0)) => {}
            Ok(Some(code @ (101 | 3))) => panic!("{code}: see above"),
            other => cofferdam_tests::skipped(format_args!(
                "this needs namespaces, and Landlock with a scope of signals: {other:?}"
            )),
        }
    }

    fn end_a_storm() {
        let few = Rlimit { current: Some(1000), maximum: Some(1000) };
        setrlimit(Resource::Nproc, few).unwrap();
        let Some(bounded) = Bounded::by_landlock() else { std::process::exit(NO_SCOPES) };
        rustix::process::set_child_subreaper(Some(getpid())).unwrap();
        let next = |_| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "next() { next & exit; }; next"]).stdin(Stdio::null()).stderr(Stdio::null());
            // As many may have ended by now as there may be.
            reap(|_, _| {});
            shell.spawn().unwrap()
        };
        let _storm: Vec<_> = (0..20).map(next).collect();
        // They are on their way.
        let mut ended = 0;
        while ended < 100 {
            assert_ne!(reap(|_, _| ended += 1), Children::None);
        }
        bounded.kill_all();
        while reap(|_, _| {}) != Children::None {
            std::thread::yield_now();
        }
    }
}
