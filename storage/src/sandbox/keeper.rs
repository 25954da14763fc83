//! The process between a supervisor and its program: the first of the sandbox's processes, outside of its Landlock domain. It
//! starts the program, reaps what the program leaves behind, and takes everything with it when it ends.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::exit;
use std::time::Duration;

use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getppid, set_child_subreaper, set_parent_process_death_signal,
    waitpid,
};
use serde::{Deserialize, Serialize};

use super::at_once::{AtOnce, Bounded};
use super::confine::{self, Confinement};
use super::credentials::{become_user, drop_capabilities};
use super::failure::{Doing, Failure, Result};
use super::landlock::Enforced;
use super::limits::Cgroup;
use super::link::{Got, Lines, Stdio};
use super::order::{LeftOut, Order, PodUser, ProbeOrder};
use super::probe::{Tried, try_inside, try_outside};
use super::processes::{Children, end_descendants, reap, signal_descendants};
use crate::clock::{Clock, SystemClock};
use crate::sys::{Fork, fork};

/// What a keeper tells its supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Inner {
    /// There is no such sandbox.
    Unable { message: String },
    /// A process was confined, and tried this.
    Confined { abi: u32, scopes: bool, tried: Vec<Tried> },
    /// The program runs.
    Started,
    /// The program has ended.
    Exited { code: Option<i32>, signal: Option<i32> },
}

/// What a supervisor tells its keeper, a byte each. The end of it means: end everything.
pub(super) mod tell {
    /// The process in between is gone.
    pub(in super::super) const GO: u8 = b'g';
    /// Start the program.
    pub(in super::super) const RUN: u8 = b'r';
    /// End it, with grace.
    pub(in super::super) const CANCEL: u8 = b'c';
}

/// What a keeper works with.
pub(super) struct Keeper<'a> {
    pub(super) line: UnixStream,
    pub(super) order: &'a Order,
    pub(super) confinement: Confinement<'a>,
    /// Whom this process becomes before all else: a user namespace is made by the user it is for.
    pub(super) become_first: Option<PodUser>,
    pub(super) environment: Vec<(&'static str, PathBuf)>,
    pub(super) cgroup: Option<&'a Cgroup>,
    pub(super) signals: &'a SignalFd,
    /// Where the test's confined side tries.
    pub(super) ground: Option<PathBuf>,
    /// Distinguishes what the test makes.
    pub(super) name: &'a str,
}

impl Keeper<'_> {
    /// Enters the namespaces, and leaves a keeper there. Ends this process.
    pub(super) fn leave_one(self, stdio: Stdio) -> ! {
        let forked = self.enter().and_then(|()| fork().doing("no keeper can be started"));
        match forked {
            Ok(Fork::Child) => {
                self.say_if_unable(|keeper| keeper.keep(stdio));
                exit(0)
            }
            Ok(Fork::Parent(_)) => exit(0),
            Err(failure) => {
                self.say_if_unable(|_| Err(failure));
                exit(1)
            }
        }
    }

    fn enter(&self) -> Result<()> {
        if let Some(user) = self.become_first {
            become_user(user)?;
        }
        self.confinement.namespaces.enter(self.confinement.places)
    }

    fn keep(&self, stdio: Stdio) -> Result<()> {
        if self.hear() != Some(tell::GO) {
            return Ok(());
        }
        if self.confinement.namespaces.pid {
            // Its own end ends everybody, and the supervisor is its parent from now on. Elsewhere it has to live on to find them.
            set_parent_process_death_signal(Some(Signal::KILL))
                .doing("the keeper cannot be tied to its supervisor")?;
        }
        self.confinement.namespaces.show_processes()?;
        if self.confinement.namespaces.user {
            drop_capabilities()?;
        }
        set_child_subreaper(Some(rustix::process::getpid())).doing("the keeper cannot reap")?;
        let bounded = match self.confinement.namespaces.pid {
            true => Bounded::by_namespace(),
            false if self.order.without.contains(&LeftOut::Scopes) => None,
            false => Bounded::by_landlock(),
        };
        if !self.check()? || self.hear() != Some(tell::RUN) {
            return Ok(());
        }
        self.run(stdio, AtOnce { bounded, cgroup: self.cgroup })
    }

    /// Confines this process, which the keeper has just started. The keeper itself stays outside, also of the cgroup: it has to
    /// be left when that is killed.
    fn confine(&self) -> Result<Enforced> {
        let parent = getppid();
        if let Some(cgroup) = self.cgroup {
            cgroup.enter().doing("the cgroup cannot be entered")?;
        }
        self.confinement.enter(|| getppid() == parent)
    }

    /// Has a process confined that tries to get out. Whether it was confined; if not, it has said why.
    fn check(&self) -> Result<bool> {
        match fork().doing("the sandbox cannot be tested")? {
            Fork::Child => {
                let confined = self.say_if_unable(|keeper| {
                    let enforced = keeper.confine()?;
                    let tried =
                        keeper.order.probe.as_ref().map_or_else(Vec::new, |probe| keeper.try_out(probe));
                    keeper.say(&Inner::Confined { abi: enforced.abi, scopes: enforced.scopes, tried });
                    Ok(())
                });
                exit(i32::from(!confined))
            }
            Fork::Parent(child) => {
                let ended =
                    waitpid(Some(child), WaitOptions::empty()).doing("the sandbox cannot be tested")?;
                match ended {
                    Some((_, status)) if status.exit_status() == Some(0) => Ok(true),
                    Some((_, status)) if status.exit_status() == Some(1) => Ok(false),
                    _ => {
                        Err(Failure::refused("the sandbox cannot be tested", "the process in it was killed"))
                    }
                }
            }
        }
    }

    fn try_out(&self, probe: &ProbeOrder) -> Vec<Tried> {
        let process = Some(probe.process).filter(|_| !self.confinement.namespaces.pid);
        let nowhere = PathBuf::from("/nonexistent");
        let side = self.ground.as_ref().unwrap_or(&nowhere);
        let mut tried = try_outside(side, &probe.sockets, process);
        tried.push(try_inside(self.confinement.places.task.path(), self.name));
        tried
    }

    fn run(&self, stdio: Stdio, at_once: AtOnce<'_>) -> Result<()> {
        let Some(program) = &self.order.program else { return Ok(()) };
        // Closed by the start of the program; what goes through it first is why there is no start.
        let (mut failed, mut failing) = UnixStream::pair().doing("the program cannot be started")?;
        let agent = match fork().doing("the program cannot be started")? {
            Fork::Child => {
                drop(failed);
                let failure = match self.confine() {
                    Ok(_) => confine::start(program, &self.environment, stdio),
                    Err(failure) => failure,
                };
                let _ = failing.write_all(failure.to_string().as_bytes());
                exit(127)
            }
            Fork::Parent(agent) => agent,
        };
        drop((stdio, failing));
        let mut why = String::new();
        let _ = std::io::Read::read_to_string(&mut failed, &mut why);
        if !why.is_empty() {
            self.say(&Inner::Unable { message: why });
            return Ok(());
        }
        self.say(&Inner::Started);
        let status = self.wait_for(agent, at_once);
        if let Some(status) = status {
            self.say(&Inner::Exited { code: status.exit_status(), signal: status.terminating_signal() });
        }
        if !self.confinement.namespaces.pid {
            // There everything ends with the keeper.
            end_descendants(self.signals, at_once, |_, _| {});
        }
        Ok(())
    }

    /// Waits until the program has ended; `None` if nobody wants to know any more.
    fn wait_for(&self, agent: Pid, at_once: AtOnce<'_>) -> Option<WaitStatus> {
        let clock = SystemClock::new();
        let grace = Duration::from_millis(self.order.grace_ms.into());
        let mut deadline = None;
        loop {
            let mut ended = None;
            let children = reap(|pid, status| ended = ended.or((pid == agent).then_some(status)));
            if ended.is_some() {
                return ended;
            }
            let left = deadline.map(|deadline: Duration| deadline.saturating_sub(clock.monotonic()));
            if left == Some(Duration::ZERO) {
                end_descendants(self.signals, at_once, |pid, status| {
                    ended = ended.or((pid == agent).then_some(status))
                });
                return ended;
            }
            // In a storm of processes whoever tells something is heard all the same.
            let left = if children == Children::More { Some(Duration::ZERO) } else { left };
            let limit = left.and_then(|left| Timespec::try_from(left).ok());
            let fds = &mut [PollFd::new(self.signals, PollFlags::IN), PollFd::new(&self.line, PollFlags::IN)];
            let _ = poll(fds, limit.as_ref());
            let told = !fds[1].revents().is_empty();
            while let Ok(Some(_)) = self.signals.read_signal() {}
            if told {
                match self.hear() {
                    Some(tell::CANCEL) if deadline.is_none() => {
                        deadline = Some(clock.monotonic() + grace);
                        signal_descendants(Signal::TERM);
                    }
                    Some(_) => {}
                    None => return None,
                }
            }
        }
    }

    /// What the supervisor says next; `None` once it says no more.
    fn hear(&self) -> Option<u8> {
        let mut byte = [0];
        loop {
            match rustix::io::read(self.line.as_fd(), &mut byte) {
                Ok(1) => return Some(byte[0]),
                Err(rustix::io::Errno::INTR) => {}
                _ => return None,
            }
        }
    }

    fn say(&self, what: &Inner) {
        if let Ok(mut line) = serde_json::to_vec(what) {
            line.push(b'\n');
            // Nobody hears it: then there will be an end of the line, too.
            let _ = (&self.line).write_all(&line);
        }
    }

    /// Whether the work was done; if not, the supervisor has been told why.
    fn say_if_unable(&self, work: impl FnOnce(&Self) -> Result<()>) -> bool {
        let done = work(self);
        if let Err(failure) = &done {
            self.say(&Inner::Unable { message: failure.to_string() });
        }
        done.is_ok()
    }
}

/// What comes from a keeper.
#[derive(Debug, Default)]
pub(super) struct Heard(Lines);

impl Heard {
    /// Takes what there is; `false` once the keeper and all it started are gone, or closed the line.
    pub(super) fn fill(&mut self, line: &UnixStream) -> bool {
        self.0.fill(line) == Got::Something
    }

    /// The next thing it said.
    pub(super) fn next(&mut self) -> Option<Inner> {
        serde_json::from_slice(&self.0.next()?).ok()
    }
}
