//! Tries to get out of a sandbox, from within it. A refusal proves something only where the same user could do it unconfined,
//! so that is tried, too.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use cofferdam_protocol::pod::{Probe, SandboxMode};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use super::failure::{Doing, Result};
use super::order::{Layer, LayerState, PodUser, ProbeReport};
use super::outside::{self, probe_in};
use crate::disk::Disk;

/// What is tried outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Act {
    Create,
    Write,
    Truncate,
    Link,
    Rename,
    Chmod,
    /// To reach one of our sockets.
    Connect,
    /// To signal the daemon.
    Signal,
    /// To create a file in the task's own directory.
    Inside,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// It was done.
    Done,
    /// It was refused.
    Refused,
    /// It failed in a way that proves nothing.
    Unclear(i32),
}

/// What was tried, and what came of it.
pub(super) type Tried = (Act, Outcome);

/// The acts that change files outside and that every layer of files must refuse.
const WRITES: [Act; 5] = [Act::Create, Act::Write, Act::Truncate, Act::Link, Act::Rename];

const CONTENT: &str = "kept";

/// A place outside with files to try on: one for the confined and one for the unconfined try.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    dir: PathBuf,
}

impl Ground {
    /// Makes an empty one in `place`, for `user` if that is somebody else.
    pub(super) fn make(place: &Path, name: &str, user: Option<PodUser>) -> io::Result<Self> {
        let ground = Self { dir: probe_in(place, name) };
        rustix::fs::mkdir(&ground.dir, Mode::RWXU)?;
        if let Some(PodUser { uid, gid }) = user {
            // Whoever owns the place could have put something else there.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let held = rustix::fs::open(&ground.dir, flags, Mode::empty())?;
            if rustix::fs::fstat(&held)?.st_uid != rustix::process::geteuid().as_raw() {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            std::os::unix::fs::fchown(&held, Some(uid), Some(gid))?;
        }
        Ok(ground)
    }

    /// Makes the files in it. For whoever tries.
    pub(super) fn fill(&self) -> io::Result<()> {
        for side in [self.confined(), self.unconfined()] {
            rustix::fs::mkdir(&side, Mode::RWXU)?;
            for name in ["write", "truncate", "link", "rename", "chmod"] {
                fs::write(side.join(name), CONTENT)?;
                fs::set_permissions(side.join(name), fs::Permissions::from_mode(0o600))?;
            }
        }
        Ok(())
    }

    /// Where the confined process tries.
    pub(super) fn confined(&self) -> PathBuf {
        self.dir.join("confined")
    }

    /// Where the unconfined one does.
    pub(super) fn unconfined(&self) -> PathBuf {
        self.dir.join("unconfined")
    }

    /// Whether the files for the confined process are as they were, seen from outside; but for their mode, of which a chmod
    /// tells by itself.
    pub(super) fn is_whole(&self) -> io::Result<bool> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.confined())? {
            let entry = entry?;
            if fs::read(entry.path())? != CONTENT.as_bytes() {
                return Ok(false);
            }
            names.push(entry.file_name());
        }
        names.sort();
        Ok(names == ["chmod", "link", "rename", "truncate", "write"])
    }

    /// Removes it.
    pub(super) fn remove(&self) -> Result<()> {
        let what = format_args!("{} cannot be removed", self.dir.display());
        outside::remove(&Disk::default(), &self.dir).doing(what)
    }
}

/// Tries everything on the files in `side`.
pub(super) fn try_outside(side: &Path, sockets: &[PathBuf], process: Option<u32>) -> Vec<Tried> {
    let hidden = side.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let judge = |done: io::Result<()>| match done {
        // What is not there for it cannot be changed by it.
        Err(_) if hidden => Outcome::Refused,
        done => judged(done),
    };
    let at = |name: &str| side.join(name);
    let open = |name, flags| {
        rustix::fs::open(at(name), flags | OFlags::CLOEXEC, Mode::RUSR).map(drop).map_err(io::Error::from)
    };
    let truncate = |name| fs::File::options().write(true).truncate(true).open(at(name)).map(drop);
    let rename = || rename(&at("rename"), &at("renamed"));
    let mut tried = vec![
        (Act::Create, judge(open("created", OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY))),
        (Act::Write, judge(open("write", OFlags::WRONLY))),
        (Act::Truncate, judge(truncate("truncate"))),
        (Act::Link, judge(fs::hard_link(at("link"), at("linked")))),
        (Act::Rename, judge(rename())),
        (Act::Chmod, judge(fs::set_permissions(at("chmod"), fs::Permissions::from_mode(0o640)))),
    ];
    tried.extend(sockets.iter().map(|socket| (Act::Connect, judged(UnixStream::connect(socket).map(drop)))));
    if let Some(process) = process.and_then(|process| Pid::from_raw(i32::try_from(process).ok()?)) {
        tried.push((Act::Signal, judged(test_kill_process(process).map_err(io::Error::from))));
    }
    tried
}

/// Tries to create a file in the task's own directory.
pub(super) fn try_inside(task_dir: &Path, name: &str) -> Tried {
    let path = probe_in(task_dir, name);
    let made =
        rustix::fs::open(&path, OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC, Mode::RUSR);
    let done = made.map_err(io::Error::from).and_then(|_| unlink(&path));
    (Act::Inside, judged(done))
}

#[allow(clippy::disallowed_methods, reason = "what is tried is the call itself, on a file made for it")]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    Ok(rustix::fs::renameat(CWD, from, CWD, to)?)
}

#[allow(clippy::disallowed_methods, reason = "what is tried is the call itself, on a file made for it")]
fn unlink(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(CWD, path, rustix::fs::AtFlags::empty())?)
}

fn judged(done: io::Result<()>) -> Outcome {
    let Err(error) = done else { return Outcome::Done };
    match Errno::from_io_error(&error) {
        // Landlock says XDEV to a link or a rename between what it tells apart; a process without a number here is SRCH.
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::XDEV | Errno::SRCH) => Outcome::Refused,
        // There is no daemon behind it, or no such socket.
        errno => Outcome::Unclear(errno.map_or(0, Errno::raw_os_error)),
    }
}

/// What was found out.
pub(super) struct Findings<'a> {
    pub(super) mode: SandboxMode,
    pub(super) layers: &'a [LayerState],
    /// Without a place to try: why the sandbox proves nothing.
    pub(super) unconfined: std::result::Result<&'a [Tried], &'a str>,
    pub(super) confined: &'a [Tried],
    /// Whether the files outside are as they were.
    pub(super) whole: bool,
}

impl Findings<'_> {
    /// The verdict.
    pub(super) fn report(&self) -> ProbeReport {
        let (probe, mut remarks) = self.verdict();
        let fs_denied =
            self.whole && WRITES.iter().all(|act| self.came_of(*act).all(|it| it == Outcome::Refused));
        let layers = self.layers.iter().map(|state| {
            format!("{}{}: {}", if state.holds { "" } else { "no " }, state.layer.name(), state.detail)
        });
        remarks.extend(layers);
        let open = not_stopped(self.layers);
        if !open.is_empty() {
            remarks.push(format!("not stopped here: {}", open.join("; ")));
        }
        ProbeReport { probe, fs_denied, note: remarks.join(". ") }
    }

    fn came_of(&self, act: Act) -> impl Iterator<Item = Outcome> {
        self.confined.iter().filter(move |tried| tried.0 == act).map(|tried| tried.1)
    }

    fn verdict(&self) -> (Probe, Vec<String>) {
        let done = |act| self.came_of(act).any(|outcome| outcome == Outcome::Done);
        let mut escaped: Vec<_> =
            WRITES.into_iter().chain([Act::Connect, Act::Signal]).filter(|act| done(*act)).collect();
        // Only another view of files, or another user, stops this.
        if done(Act::Chmod) && holds(self.layers, Layer::MountNamespace) {
            escaped.push(Act::Chmod);
        }
        if self.mode == SandboxMode::ReadOnly && done(Act::Inside) {
            escaped.push(Act::Inside);
        }
        if !escaped.is_empty() || !self.whole {
            return (Probe::Allowed, vec![format!("the sandbox let these through: {escaped:?}")]);
        }
        if self.mode == SandboxMode::WorkspaceWrite && !done(Act::Inside) {
            return (Probe::Failed, vec!["the task cannot write in its own directory".to_owned()]);
        }
        let unconfined = match self.unconfined {
            Ok(unconfined) => unconfined,
            Err(why) => return (Probe::Ambiguous, vec![why.to_owned()]),
        };
        let proven = |act: &Act| {
            let could = unconfined.iter().any(|tried| tried.0 == *act && tried.1 == Outcome::Done);
            could && self.came_of(*act).all(|outcome| outcome == Outcome::Refused)
        };
        match WRITES.into_iter().filter(|act| !proven(act)).collect::<Vec<_>>() {
            unproven if unproven.is_empty() => {
                (Probe::Denied, vec!["every write outside was refused".to_owned()])
            }
            unproven => (Probe::Ambiguous, vec![format!("these prove nothing: {unproven:?}")]),
        }
    }
}

fn holds(layers: &[LayerState], layer: Layer) -> bool {
    layers.iter().any(|state| state.layer == layer && state.holds)
}

/// What these layers do not stop, for people.
pub fn not_stopped(layers: &[LayerState]) -> Vec<&'static str> {
    let holds = |layer| holds(layers, layer);
    let other_user = holds(Layer::OtherUser);
    let table = [
        (
            !holds(Layer::MountNamespace) && !other_user,
            "changing mode, owner, times and extended attributes of the user's own files outside",
        ),
        (
            !holds(Layer::MountNamespace) && other_user,
            "changing mode, times and extended attributes of other tasks' files, which have the same owner",
        ),
        (
            !holds(Layer::Scopes) && !holds(Layer::PidNamespace),
            "signals to processes of the user the task runs as",
        ),
        (!holds(Layer::PidNamespace), "reading the command lines of other processes"),
        (!holds(Layer::PidNamespace), "what left its parent, once both supervisor and keeper are killed"),
        (
            ![Layer::PidNamespace, Layer::Cgroup, Layer::Scopes].into_iter().any(holds),
            "processes that start others faster than they can be found, which may go on after a turn",
        ),
        (!other_user, "writing to files that have a second name in the task's directory"),
        (true, "taking locks on files that can be read"),
        (true, "the network"),
    ];
    table.into_iter().filter_map(|(open, what)| open.then_some(what)).collect()
}

impl Layer {
    /// What people call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Landlock => "Landlock",
            Self::Scopes => "Landlock scopes",
            Self::Seccomp => "seccomp",
            Self::MountNamespace => "mount namespace",
            Self::PidNamespace => "process namespace",
            Self::OtherUser => "separate user",
            Self::Cgroup => "cgroup",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODE: SandboxMode = SandboxMode::WorkspaceWrite;

    fn all(outcome: Outcome) -> Vec<Tried> {
        let acts = WRITES.into_iter().chain([Act::Chmod, Act::Connect, Act::Signal]);
        acts.map(|act| (act, outcome)).chain([(Act::Inside, Outcome::Done)]).collect()
    }

    fn with(mut tried: Vec<Tried>, act: Act, outcome: Outcome) -> Vec<Tried> {
        tried.iter_mut().filter(|tried| tried.0 == act).for_each(|tried| tried.1 = outcome);
        tried
    }

    fn layers(mount: bool) -> Vec<LayerState> {
        vec![LayerState { layer: Layer::MountNamespace, holds: mount, detail: String::new() }]
    }

    fn judge(confined: &[Tried], unconfined: &[Tried], mount: bool) -> ProbeReport {
        let layers = layers(mount);
        Findings { mode: MODE, layers: &layers, unconfined: Ok(unconfined), confined, whole: true }.report()
    }

    #[test]
    fn a_refusal_counts_only_where_the_same_could_be_done_unconfined() {
        let (refused, done) = (all(Outcome::Refused), all(Outcome::Done));
        assert_eq!(judge(&refused, &done, true).probe, Probe::Denied);
        for act in WRITES {
            let could_not = with(done.clone(), act, Outcome::Refused);
            assert_eq!(judge(&refused, &could_not, true).probe, Probe::Ambiguous, "{act:?}");
            let unclear = with(refused.clone(), act, Outcome::Unclear(5));
            let report = judge(&unclear, &done, true);
            assert_eq!((report.probe, report.fs_denied), (Probe::Ambiguous, false), "{act:?}");
        }
    }

    #[test]
    fn whatever_gets_through_is_allowed() {
        let (refused, done) = (all(Outcome::Refused), all(Outcome::Done));
        for act in WRITES.into_iter().chain([Act::Connect, Act::Signal]) {
            let through = with(refused.clone(), act, Outcome::Done);
            assert_eq!(judge(&through, &done, true).probe, Probe::Allowed, "{act:?}");
        }
        let layers = layers(true);
        let changed =
            Findings { mode: MODE, layers: &layers, unconfined: Ok(&done), confined: &refused, whole: false };
        assert_eq!(changed.report().probe, Probe::Allowed);
        let read_only = Findings { mode: SandboxMode::ReadOnly, whole: true, ..changed };
        assert_eq!(
            read_only.report().probe,
            Probe::Allowed,
            "a write in the directory of a task that may not"
        );
    }

    #[test]
    fn a_chmod_that_nothing_here_stops_is_named_and_one_that_something_should_stop_is_a_hole() {
        let (confined, done) = (with(all(Outcome::Refused), Act::Chmod, Outcome::Done), all(Outcome::Done));
        let report = judge(&confined, &done, false);
        assert_eq!(report.probe, Probe::Denied);
        assert!(report.note.contains("not stopped here: changing mode"), "{}", report.note);
        assert_eq!(judge(&confined, &done, true).probe, Probe::Allowed);
    }

    #[test]
    fn a_task_that_cannot_write_where_it_should_has_no_working_sandbox() {
        let confined = with(all(Outcome::Refused), Act::Inside, Outcome::Refused);
        assert_eq!(judge(&confined, &all(Outcome::Done), true).probe, Probe::Failed);
    }
}
