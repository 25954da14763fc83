//! Takes a process into its sandbox, for good: the last steps before a program starts.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio as ChildStdio};

use nix::sys::signal::SigSet;
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit, setsid};

use super::credentials::{become_user, drop_bounding_set, drop_capabilities};
use super::failure::{Doing, Failure, Result};
use super::hand_over::reaches;
use super::landlock::{self, Access, Enforced};
use super::link::Stdio;
use super::namespaces::{Namespaces, own_temporaries};
use super::order::{LeftOut, PodUser, Program};
use super::places::Places;
use super::seccomp::Filters;
use crate::sys::close_others_on_exec;

/// What a process is confined to.
#[derive(Debug)]
pub(super) struct Confinement<'a> {
    pub(super) places: &'a Places,
    pub(super) namespaces: Namespaces,
    /// Whom to become; `None` if this process is that user already.
    pub(super) user: Option<PodUser>,
    pub(super) without: &'a [LeftOut],
}

impl Confinement<'_> {
    /// Confines this process and all it starts. It dies with its parent, which is asked for after that.
    pub(super) fn enter(&self, parent_is_there: impl Fn() -> bool) -> Result<Enforced> {
        // No terminal, and no signals of one.
        let _ = setsid();
        let access = self.access();
        let rules = landlock::collect(&access)?;
        let filters = Filters::new(!self.namespaces.pid)?;
        // The kernel writes a memory image where the system says, past Landlock, or gives it to a program of the system's; with
        // a limit of 0 that one would still get it, with 1 it does not.
        let none = Rlimit { current: Some(1), maximum: Some(1) };
        setrlimit(Resource::Core, none).doing("memory images cannot be switched off")?;
        rustix::process::umask(Mode::from_raw_mode(0o022));
        drop_bounding_set();
        if let Some(user) = self.user {
            become_user(user)?;
        }
        drop_capabilities()?;
        set_parent_process_death_signal(Some(Signal::KILL))
            .doing("the program cannot be tied to its keeper")?;
        if !parent_is_there() {
            return Err(Failure::refused("the program is not started", "its keeper is gone"));
        }
        self.reached()?;
        let enforced = landlock::enforce(rules, access.scopes)?;
        close_others_on_exec().doing("descriptors cannot be closed")?;
        filters.apply()?;
        Ok(enforced)
    }

    fn access(&self) -> Access<'_> {
        let Places { task, hidden, shown, writable, .. } = self.places;
        let mut access = Access {
            task,
            own_view: self.namespaces.mount,
            // There is nothing where the hidden was.
            hidden: if self.namespaces.mount { Vec::new() } else { hidden.clone() },
            shown: shown.clone(),
            writable: writable.clone(),
            scopes: !self.without.contains(&LeftOut::Scopes),
        };
        if self.namespaces.mount {
            access.writable.extend(own_temporaries(self.places));
        }
        access
    }

    /// Another user may be stopped on the way by the directories above.
    fn reached(&self) -> Result<()> {
        let Places { task, private, home, writable, .. } = self.places;
        let task_dir = task.path();
        let write = writable.iter().any(|path| path == task_dir);
        for (path, write) in [(task_dir, write), (private, true), (home, true)] {
            reaches(path, write).doing(format_args!(
                "user {} cannot work in {}; let others search the directories above it (chmod o+x), or name another place",
                rustix::process::geteuid().as_raw(),
                path.display()
            ))?;
        }
        Ok(())
    }
}

/// Becomes the program. Returns only if that fails.
pub(super) fn start(program: &Program, environment: &[(&str, std::path::PathBuf)], stdio: Stdio) -> Failure {
    let Some((name, arguments)) = program.argv.split_first() else {
        return Failure::refused("there is nothing to start", "the order names no program");
    };
    let Stdio { input, output, error } = stdio;
    let pipe = |fd: OwnedFd| ChildStdio::from(fd);
    let mut command = Command::new(name);
    command.args(arguments).env_clear().envs(program.env.iter().map(|(key, value)| (key, value)));
    command.envs(environment.iter().map(|(key, value)| (key, value)));
    command.current_dir(&program.cwd).stdin(pipe(input)).stdout(pipe(output)).stderr(pipe(error));
    // The keeper listens to signals in another way.
    let _ = SigSet::empty().thread_set_mask();
    let failed: io::Error = command.exec();
    let hidden = match failed.kind() {
        // The commonest reason for a program that everybody else finds.
        ErrorKind::NotFound | ErrorKind::PermissionDenied => {
            "; what lies in the user's home is hidden, unless the preset's from_home names it"
        }
        _ => "",
    };
    match Err(failed).doing(format_args!("{name} cannot be started in {}{hidden}", program.cwd.display())) {
        Err(failure) => failure,
        Ok(()) => Failure::refused("the program is not started", "for no reason"),
    }
}
