//! The supervisor: outside of the sandbox it makes, and there until nothing of it is left.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;
use rustix::process::{WaitOptions, geteuid, getpid, set_child_subreaper, setsid, waitpid};

use super::at_once::AtOnce;
use super::confine::Confinement;
use super::copies::Copied;
use super::credentials::become_user;
use super::failure::{Doing, Failure, Result};
use super::hand_over::{hand_over, open_way};
use super::home::PrivateDir;
use super::home_files::{put, take_back};
use super::keeper::{Heard, Inner, Keeper, tell};
use super::limits::Cgroup;
use super::link::{Got, Lines, Received, Stdio, receive_order};
use super::namespaces::Namespaces;
use super::order::{CANCEL, Layer, LayerState, LeftOut, Order, PodUser, ProbeOrder, ProbeReport, Report};
use super::outside::probe_in;
use super::places::Places;
use super::probe::{Findings, Ground, Tried, try_outside};
use super::processes::end_descendants;
use super::reopen::reopen;
use super::task::Task;
use crate::clock::{Clock, SystemClock};
use crate::clock::{IdGen, RandomIds};
use crate::disk::Disk;
use crate::sys::{Fork, fork};

/// How long may be looked for what nobody may read, when all has ended.
const REOPENING: Duration = Duration::from_secs(20);

/// The program: standard input is the link to the daemon. Returns when nothing of the sandbox is left. The error is one that
/// could not be reported.
pub fn supervise(input: impl AsFd) -> Result<()> {
    let link = UnixStream::from(input.as_fd().try_clone_to_owned().doing("there is no link to a daemon")?);
    // What is started must not hold the link.
    let null = std::fs::File::open("/dev/null").doing("/dev/null cannot be opened")?;
    rustix::stdio::dup2_stdin(null).doing("standard input cannot be closed")?;
    let _ = setsid();
    rustix::process::umask(Mode::from_raw_mode(0o022));
    set_child_subreaper(Some(getpid())).doing("the supervisor cannot reap")?;
    let signals = listen()?;
    let Received { order, stdio, files, lines } = receive_order(&link).doing("no order came")?;
    let name = RandomIds.fresh();
    let line = Link { stream: link, lines, open: true };
    let user = order.user.filter(|_| geteuid().is_root());
    let mut supervisor = Supervisor {
        link: line,
        signals,
        order,
        stdio: Some(stdio),
        files,
        copied: Copied::default(),
        name,
        user,
        confined: false,
    };
    if let Err(failure) = supervisor.work(&Disk::default()) {
        supervisor.link.report(&Report::Failed { message: failure.to_string() });
    }
    Ok(())
}

fn listen() -> Result<SignalFd> {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        set.add(signal);
    }
    let what = "signals cannot be listened to";
    set.thread_block().doing(what)?;
    SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).doing(what)
}

/// The home of the user that this process is, as the system knows it, whatever `HOME` says.
fn home_of_user() -> Option<PathBuf> {
    nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten().map(|user| user.dir)
}

/// The daemon's end of things.
struct Link {
    stream: UnixStream,
    lines: Lines,
    /// Whether the daemon is still there.
    open: bool,
}

impl Link {
    fn report(&mut self, report: &Report) {
        if let Ok(mut line) = serde_json::to_vec(report) {
            line.push(b'\n');
            let _ = self.stream.write_all(&line);
        }
    }
}

struct Supervisor {
    link: Link,
    signals: SignalFd,
    order: Order,
    /// Kept until the program has it.
    stdio: Option<Stdio>,
    /// What the order's home files hold.
    files: Vec<OwnedFd>,
    /// What was copied into its home.
    copied: Copied,
    /// What its private directory and its cgroup are called.
    name: String,
    /// Whom the program runs as, if that is not whom this process runs as.
    user: Option<PodUser>,
    /// Whether a process of ours has been in the sandbox: then this is the one.
    confined: bool,
}

/// Where the sandbox is tested, and what can be done there unconfined.
type Control = std::result::Result<(Ground, Vec<Tried>), String>;

impl Supervisor {
    fn work(&mut self, disk: &Disk) -> Result<()> {
        if geteuid().is_root() && self.user.is_none_or(|user| user.uid == 0 || user.gid == 0) {
            return Err(Failure::refused(
                "there is no sandbox for root",
                "name another user for the program",
            ));
        }
        let task = Rc::new(Task::hold(&self.order)?);
        let kept = self.order.kept_home.as_deref();
        let private =
            PrivateDir::make(disk.clone(), &self.name, &self.order.private_parent, self.user, kept)?;
        let cgroup = match self.order.without.contains(&LeftOut::Cgroup) {
            true => Err("left out".to_owned()),
            false => Cgroup::make(&self.name),
        };
        let control = match self.order.probe.clone() {
            Some(probe) => {
                let dirs = probe.places.iter().map(PathBuf::as_path).chain([task.path()]);
                let made: Vec<_> = dirs.map(|dir| probe_in(dir, &self.name)).collect();
                let recorded = private.record_outside(&made).map_err(|failure| failure.to_string());
                Some(recorded.and_then(|()| self.control(&probe)))
            }
            None => None,
        };
        let worked =
            self.in_private(disk, &task, &private, cgroup.as_ref().map_err(String::as_str), control.as_ref());
        // Nothing runs any more, whatever has happened. What only this process can do comes first, and each whatever became of
        // the others: a tree may be too large to be looked through in time.
        self.give_back(&private);
        let done = [
            worked,
            private.take_away(&self.copied),
            if control.is_some() { private.remove_outside() } else { Ok(()) },
            private.remove(),
            cgroup.map_or(Ok(()), |cgroup| cgroup.remove().doing("the cgroup cannot be removed")),
        ];
        self.reopen(disk, &task, &private);
        Failure::all(done)
    }

    fn in_private(
        &mut self,
        disk: &Disk,
        task: &Rc<Task>,
        private: &PrivateDir,
        cgroup: std::result::Result<&Cgroup, &str>,
        control: Option<&Control>,
    ) -> Result<()> {
        if let Some(home) = self.order.real_home.clone() {
            for shown in self.order.from_home.clone() {
                private.show(&home, &shown, &mut self.copied)?;
            }
        }
        for (file, content) in self.order.home_files.iter().zip(&self.files) {
            put(disk, private.home(), file, content, self.user)
                .doing(format_args!("{} cannot be put into the private home", file.path.display()))?;
        }
        let copied = self.user.is_some();
        let own = (private.path(), private.home());
        let places = Places::of(&self.order, task.clone(), own, home_of_user(), copied)?;
        if let Some(user) = self.user {
            hand_over(disk, task, task.path(), user)?;
        }
        let mut layers = vec![LayerState {
            layer: Layer::Cgroup,
            holds: cgroup.is_ok(),
            detail: cgroup.map_or_else(str::to_owned, |cgroup| cgroup.limit(self.order.limits)),
        }];
        layers.extend(self.user.map(|user| LayerState {
            layer: Layer::OtherUser,
            holds: true,
            detail: format!("user {}", user.uid),
        }));
        let mut failures = Vec::new();
        for namespaces in Namespaces::attempts(geteuid().is_root(), &self.order.without) {
            let attempt = Attempt { namespaces, places: &places, layers: &layers, failures: &failures };
            if self.user.is_some() && !namespaces.mount {
                open_way(disk, &places)?;
            }
            let environment = private.environment();
            match self.attempt(&attempt, environment, cgroup.ok(), control) {
                // Without namespaces there is no next one.
                Err(failure) if namespaces.mount && !self.confined => failures.push(failure.to_string()),
                ended => return ended,
            }
        }
        Err(Failure::refused("there is no sandbox", "every kind of it is left out"))
    }

    /// Lets the user read again what is the user's, so that it can be kept and taken back.
    fn reopen(&self, disk: &Disk, task: &Task, private: &PrivateDir) {
        if self.order.program.is_none() || geteuid().is_root() {
            return;
        }
        let clock = SystemClock::new();
        let until = clock.monotonic() + REOPENING;
        let kept = self.order.kept_home.as_ref().map(|_| private.home_held());
        for dir in kept.into_iter().chain([task.as_fd()]) {
            // What cannot be read is told when it cannot be kept.
            let _ = reopen(disk, dir, &|| clock.monotonic() >= until);
        }
    }

    /// Gives back what home files have become.
    fn give_back(&mut self, private: &PrivateDir) {
        for (file, to) in self.order.home_files.iter().zip(&self.files) {
            let Some(limit) = file.back else { continue };
            let taken = take_back(private.home(), file, limit, to);
            let problem = taken.err().map(|error| error.to_string());
            self.link.report(&Report::Returned { path: file.path.clone(), problem });
        }
    }

    /// Does on other files, unconfined, what the confined process will try.
    fn control(&mut self, probe: &ProbeOrder) -> Control {
        for place in &probe.places {
            let Ok(ground) = Ground::make(place, &self.name, self.user) else { continue };
            match self.try_unconfined(&ground, probe) {
                Ok(Some(tried)) => return Ok((ground, tried)),
                Ok(None) | Err(_) => {
                    let _ = ground.remove();
                }
            }
        }
        Err("the test found no place outside where the program's user could have written".to_owned())
    }

    fn try_unconfined(&self, ground: &Ground, probe: &ProbeOrder) -> Result<Option<Vec<Tried>>> {
        let what = "the test's counterpart cannot be made";
        let (mut ours, mut theirs) = UnixStream::pair().doing(what)?;
        match fork().doing(what)? {
            Fork::Child => {
                drop(ours);
                let ready = self.user.map_or(Ok(()), become_user).is_ok() && ground.fill().is_ok();
                if ready {
                    let tried = try_outside(&ground.unconfined(), &probe.sockets, Some(probe.process));
                    let _ = theirs.write_all(&serde_json::to_vec(&tried).unwrap_or_default());
                }
                std::process::exit(0)
            }
            Fork::Parent(child) => {
                drop(theirs);
                let mut said = Vec::new();
                ours.read_to_end(&mut said).doing(what)?;
                waitpid(Some(child), WaitOptions::empty()).doing(what)?;
                Ok(serde_json::from_slice(&said).ok())
            }
        }
    }

    /// Makes the sandbox in one way, and runs the program in it. An error before anything was reported lets another way be
    /// tried.
    fn attempt(
        &mut self,
        attempt: &Attempt<'_>,
        environment: Vec<(&'static str, PathBuf)>,
        cgroup: Option<&Cgroup>,
        control: Option<&Control>,
    ) -> Result<()> {
        let what = "no keeper can be started";
        let (ours, theirs) = UnixStream::pair().doing(what)?;
        let ground = control.and_then(|control| control.as_ref().ok()).map(|(ground, _)| ground.confined());
        match fork().doing(what)? {
            Fork::Child => {
                drop(ours);
                let Self { order, stdio, name, user, signals, link, .. } = self;
                let Some(stdio) = stdio.take() else { std::process::exit(1) };
                // The daemon must see this side end when the supervisor does.
                let null = std::fs::File::open("/dev/null").map(OwnedFd::from);
                if let Ok(null) = null {
                    drop(std::mem::replace(&mut link.stream, UnixStream::from(null)));
                }
                let keeper = Keeper {
                    line: theirs,
                    order,
                    confinement: Confinement {
                        places: attempt.places,
                        namespaces: attempt.namespaces,
                        user: user.filter(|_| !attempt.namespaces.user),
                        without: &order.without,
                    },
                    become_first: user.filter(|_| attempt.namespaces.user),
                    environment,
                    cgroup,
                    signals,
                    ground,
                    name,
                };
                keeper.leave_one(stdio)
            }
            Fork::Parent(between) => {
                drop(theirs);
                waitpid(Some(between), WaitOptions::empty()).doing(what)?;
                let _ = (&ours).write_all(&[tell::GO]);
            }
        }
        let at_once = AtOnce { bounded: None, cgroup };
        let ended = self.accompany(&ours, attempt, at_once, control);
        end_descendants(&self.signals, at_once, |_, _| {});
        ended
    }

    /// Carries what is said between the daemon and the keeper, until the keeper is gone.
    fn accompany(
        &mut self,
        keeper: &UnixStream,
        attempt: &Attempt<'_>,
        at_once: AtOnce<'_>,
        control: Option<&Control>,
    ) -> Result<()> {
        let mut heard = Heard::default();
        let mut running = false;
        loop {
            let mut fds = vec![PollFd::new(keeper, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
            if self.link.open {
                fds.push(PollFd::new(&self.link.stream, PollFlags::IN));
            }
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                polled => polled.doing("the supervisor cannot wait")?,
            };
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            drop(fds);
            if ready[1] {
                self.hear_signals(keeper, at_once);
            }
            if ready.get(2) == Some(&true) {
                self.hear_daemon(keeper, at_once);
            }
            if !ready[0] {
                continue;
            }
            let more = heard.fill(keeper);
            while let Some(said) = heard.next() {
                match said {
                    Inner::Unable { message } => {
                        let what = match self.confined {
                            false => "the sandbox cannot be made",
                            true => "the sandbox is made, and its program cannot run",
                        };
                        return Err(Failure::refused(what, message));
                    }
                    Inner::Confined { abi, scopes, tried } => {
                        let layers = attempt.layers(abi, scopes);
                        self.link.report(&Report::Ready { layers: layers.clone() });
                        self.confined = true;
                        let lacks = |layer: &Layer| layers.iter().find(|it| it.layer == *layer && !it.holds);
                        if let Some(lost) = self.order.least.iter().find_map(lacks) {
                            return Err(Failure::refused(
                                format!("the sandbox lacks what it had when it was tested, {:?}", lost.layer),
                                lost.detail.as_str(),
                            ));
                        }
                        let holds = self.report_probe(&layers, control, &tried);
                        self.stdio = None;
                        if !holds || (&*keeper).write_all(&[tell::RUN]).is_err() {
                            let _ = keeper.shutdown(Shutdown::Write);
                        }
                    }
                    Inner::Started => {
                        running = true;
                        self.link.report(&Report::Started);
                    }
                    Inner::Exited { code, signal } => {
                        running = false;
                        // It would end the rest itself, but what is left of the program may keep it from that.
                        at_once.kill();
                        self.link.report(&Report::Exited { code, signal });
                    }
                }
            }
            if !more {
                let lost = self.link.open && (running || !self.confined);
                let failure = || {
                    Failure::refused("the program was lost", "its keeper was killed, and it with the keeper")
                };
                return if lost { Err(failure()) } else { Ok(()) };
            }
        }
    }

    /// Whether the program may start.
    fn report_probe(&mut self, layers: &[LayerState], control: Option<&Control>, confined: &[Tried]) -> bool {
        let Some(control) = control else { return true };
        let whole = control.as_ref().is_ok_and(|(ground, _)| ground.is_whole().unwrap_or(false));
        let findings = Findings {
            mode: self.order.mode,
            layers,
            unconfined: control.as_ref().map(|(_, tried)| tried.as_slice()).map_err(String::as_str),
            confined,
            whole: whole || control.is_err(),
        };
        let report: ProbeReport = findings.report();
        let holds = report.probe != cofferdam_protocol::pod::Probe::Allowed;
        self.link.report(&Report::Probe(report));
        holds
    }

    fn hear_signals(&mut self, keeper: &UnixStream, at_once: AtOnce<'_>) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            if signal.ssi_signo != Signal::SIGCHLD as u32 {
                at_once.kill();
                let _ = keeper.shutdown(Shutdown::Write);
            }
        }
    }

    fn hear_daemon(&mut self, keeper: &UnixStream, at_once: AtOnce<'_>) {
        let end = self.link.lines.fill(&self.link.stream) == Got::End;
        while let Some(line) = self.link.lines.next() {
            if line == CANCEL.as_bytes() {
                let _ = (&*keeper).write_all(&[tell::CANCEL]);
            }
        }
        if end {
            self.link.open = false;
            at_once.kill();
            let _ = keeper.shutdown(Shutdown::Write);
        }
    }
}

/// One way to make the sandbox.
struct Attempt<'a> {
    namespaces: Namespaces,
    places: &'a Places,
    /// The layers that are the same in every way.
    layers: &'a [LayerState],
    /// Why better ways did not work.
    failures: &'a [String],
}

impl Attempt<'_> {
    fn layers(&self, abi: u32, scopes: bool) -> Vec<LayerState> {
        let state = |layer, holds, detail: &str| LayerState { layer, holds, detail: detail.to_owned() };
        let Namespaces { mount, pid, user } = self.namespaces;
        let why = match self.failures.last() {
            Some(failure) => failure.as_str(),
            None => "left out",
        };
        let by = if user { "in a user namespace" } else { "made by root" };
        let mut layers = vec![
            state(Layer::Landlock, true, &format!("version {abi}")),
            state(
                Layer::Scopes,
                scopes,
                if scopes { "signals and abstract sockets" } else { "they need version 6" },
            ),
            state(
                Layer::Seccomp,
                true,
                "no unix sockets, io_uring, keyrings, shared memory by number, other architectures",
            ),
            state(Layer::MountNamespace, mount, if mount { by } else { why }),
            state(Layer::PidNamespace, pid, if pid { by } else { why }),
        ];
        layers.extend_from_slice(self.layers);
        layers
    }
}
