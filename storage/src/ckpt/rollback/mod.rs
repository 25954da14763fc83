//! Giving a directory back a snapshot's tree: plan, pre-flight, journal, stage, switch, recovery.
//!
//! A rollback compares two snapshots, the safety snapshot (which *is* the live tree) and the target, and touches
//! nothing in which they agree. What is new is built in a staging directory inside the workspace and made durable;
//! then single renames move victims out and new things in. A journal, written before the first change and before
//! the first rename, lets [`recover`] finish or take back whatever was cut short, by renames alone.

mod hardlinks;
mod journal;
mod late;
mod metadata;
mod operation;
mod places;
mod plan;
mod preflight;
mod records;
mod recover;
mod rights;
mod stage;
mod switch;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::path::Path;

use cofferdam_protocol::ckpt::WorkspaceId;

use self::journal::{Begin, Journal, Switch, Verdict};
use self::operation::Operation;
use self::places::Places;
use self::plan::{Plan, Trees};
use self::preflight::Ready;
pub use self::recover::{Pending, Recovered, pending, recover};
use self::rights::Rights;
use self::stage::Stage;
use self::switch::Rule;
use super::error::{Context, Error, Result};
use super::format::{Manifest, ObjectSource, Timestamp};
use super::model::{RolledBack, Warning};
use crate::disk::Disk;
use crate::fs::Root;
use crate::path::{Name, RelPath};
use crate::peer::Peer;

/// Everything one rollback works with. The caller holds the workspace's locks and has published the safety snapshot.
pub struct Job<'a> {
    /// The way to the disk.
    pub disk: &'a Disk,
    /// Whose rights the work in the tree has.
    pub peer: &'a Peer,
    /// The workspace, its identity verified.
    pub root: &'a Root,
    /// Where the workspace is, for the journal.
    pub path: &'a Path,
    /// Which workspace it is, for the journal.
    pub workspace: &'a WorkspaceId,
    /// Objects of both snapshots.
    pub source: &'a dyn ObjectSource,
    /// The safety snapshot: the live tree as it was captured a moment ago.
    pub live: &'a Manifest,
    /// The wall clock when that capture began: whatever changed since then may not be in it.
    pub captured_from: Timestamp,
    /// The tree to give back.
    pub target: &'a Manifest,
    /// The journal directory.
    pub journal: BorrowedFd<'a>,
    /// The operation's fresh name, as [`IdGen`](crate::clock::IdGen) makes them. Journal and staging are named after it.
    pub op: &'a str,
    /// Where content goes that is newer than the safety snapshot.
    pub late: &'a mut dyn LateWrites,
}

/// The safety snapshot of one rollback, as far as the rollback has to do with it. Called with the peer's rights, but
/// for [`LateWrites::publish`] and [`LateWrites::settle`].
pub trait LateWrites {
    /// Puts what stands at `name` in `dir` now (everything beneath it included) into the safety snapshot at `path`,
    /// in place of what that has there. True if this made a difference; false if the snapshot had exactly that. Fails
    /// with `ErrorKind::PermissionDenied` if not all of it can be read; the snapshot then has what it had.
    fn keep(&mut self, path: &RelPath, dir: BorrowedFd<'_>, name: &Name) -> Result<bool>;

    /// Makes durable all that was kept, if anything was. Called before anything of it is removed; again after a crash.
    fn publish(&mut self) -> Result<()>;

    /// How the rollback ended, durably. Called before its journal goes; again after a crash, with the same outcome.
    fn settle(&mut self, outcome: Outcome) -> Result<()>;
}

/// How a rollback ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The tree is exactly the target.
    Finished,
    /// The tree is exactly what it was before.
    TakenBack,
}

/// Gives the directory exactly the target's tree.
///
/// On any error the tree is what it was before, unless taking back failed too: then the journal stays, the error says
/// so, and [`recover`] has to run before anything else is done with the workspace.
pub fn run(job: Job<'_>) -> Result<RolledBack> {
    let rights = Rights::of(job.peer);
    let entered = job.peer.enter().context(|| "take the user's rights".to_owned())?;
    let trees = Trees { source: job.source, live: job.live, target: job.target };
    let piecemeal = job.root.is_overlay().context(|| "look at the workspace".to_owned())?;
    let mut plan = Plan::new(&trees, &rights, piecemeal)?;
    let mut done =
        RolledBack { changed: plan.len() as u64, warnings: in_order(std::mem::take(&mut plan.warnings)) };
    if plan.obstacles.is_empty() && plan.is_empty() {
        drop(entered);
        // Asked for twice it must not take away what undoes the first: trees can differ in what cannot be given back.
        job.late.settle(Outcome::TakenBack)?;
        return Ok(done);
    }
    let staging = Name::new(format!(".cofferdam-{}", job.op).into_bytes())
        .map_err(|_| Error::Corrupt(format!("operation name {}", job.op)))?;
    let begin;
    let ready = {
        let places =
            Places::new(job.disk, job.root, HashMap::new()).context(|| "look at the workspace".to_owned())?;
        let mut ready = preflight::check(&plan, &places, job.source, &rights, &staging)?;
        ready.dirs.sort_by(|one, other| one.path.cmp(&other.path));
        begin = Begin {
            workspace: job.workspace.clone(),
            path: job.path.to_owned(),
            root: job.root.identity().context(|| "look at the workspace".to_owned())?,
            peer: job.peer.clone(),
            live: job.live.root,
            target: job.target.root,
            captured_from: job.captured_from,
            staging: ready.staging.clone(),
            dirs: std::mem::take(&mut ready.dirs),
        };
        ready
    };
    done.changed += ready.inside;
    drop(entered);

    let made_again = plan.emptied.keys().cloned();
    let operation = Operation::new(job.disk, job.root, job.source, &begin, made_again, Rule::Displace)?;
    let mut journal = Journal::create(job.disk, job.journal, job.op, &begin)
        .context(|| "begin the journal of the rollback".to_owned())?;
    let mut switch = None;
    let mut attempt = Attempt { job, operation, journal: &mut journal, switch: &mut switch };
    match attempt.forward(&plan, &ready, &rights) {
        Ok(warnings) => {
            done.warnings.extend(warnings);
            done.warnings = in_order(done.warnings);
            if let Err(error) = attempt.finish(Outcome::Finished) {
                // The tree is what was asked for. What is left of the work goes when the journal is found again.
                tracing::warn!(%error, "a finished rollback could not be cleaned up after yet");
            }
            Ok(done)
        }
        Err(error) => Err(attempt.take_back(error)),
    }
}

/// A rollback whose journal has begun.
struct Attempt<'a, 'j> {
    job: Job<'a>,
    operation: Operation<'j>,
    journal: &'j mut Journal,
    /// Everything that is to change the tree, once that is on record.
    switch: &'j mut Option<Switch>,
}

impl Attempt<'_, '_> {
    /// Stages, switches and decides that it is done.
    fn forward(&mut self, plan: &Plan, ready: &Ready, rights: &Rights) -> Result<Vec<Warning>> {
        let disk = self.job.disk;
        let step = |name: &str| disk.step(name).context(|| "roll back".to_owned());
        step("rollback.journaled")?;
        let (switch, mut warnings) = {
            self.operation.widen()?;
            let _rights = self.job.peer.enter().context(|| "take the user's rights".to_owned())?;
            let places = &self.operation.places;
            let begin = self.operation.begin;
            Stage::new(plan, ready, places, self.job.source, rights, begin).build()?
        };
        step("rollback.staged")?;
        let (written, on_record) = self.journal.switch(&switch);
        let switch = if on_record { &*self.switch.insert(switch) } else { &switch };
        written.context(|| "write the journal of the rollback".to_owned())?;
        step("rollback.switch-journaled")?;
        warnings.extend(self.operation.go_forward(switch, self.job.late)?);
        self.journal.decide(Verdict::Done).context(|| "end the journal of the rollback".to_owned())?;
        Ok(warnings)
    }

    /// What is left to do once it is decided: twice, if one error keeps the first from ending. Until it is done the
    /// staging directories are in the user's tree.
    fn finish(&mut self, outcome: Outcome) -> Result<()> {
        self.try_to_finish(outcome).or_else(|error| {
            tracing::warn!(%error, "cleaning up after a rollback failed; trying again");
            self.try_to_finish(outcome)
        })
    }

    fn try_to_finish(&mut self, outcome: Outcome) -> Result<()> {
        let job = &mut self.job;
        let step = |name: &str| job.disk.step(name).context(|| "roll back".to_owned());
        let reached = match outcome {
            Outcome::Finished => step("rollback.done-journaled"),
            Outcome::TakenBack => Ok(()),
        };
        reached?;
        // First: what was staged may be what has filled the disk on which the outcome is written down.
        self.operation.clean_up(self.switch.as_ref(), outcome)?;
        if outcome == Outcome::Finished {
            step("rollback.cleaned")?;
        }
        job.late.settle(outcome)?;
        journal::remove(job.disk, job.journal, job.op).context(|| "remove the journal".to_owned())
    }

    /// Restores what was there, and returns the error that the caller gets.
    fn take_back(&mut self, error: Error) -> Error {
        let back = match &*self.switch {
            Some(switch) => self
                .journal
                .decide(Verdict::Back)
                .context(|| "end the journal of the rollback".to_owned())
                .and_then(|()| self.operation.go_back(switch, self.job.late)),
            None => Ok(Vec::new()),
        };
        match back {
            Ok(newer) => {
                for Warning { path, .. } in newer {
                    tracing::warn!(%path, "written to while a failed rollback was being taken back; kept");
                }
                if let Err(error) = self.finish(Outcome::TakenBack) {
                    tracing::warn!(%error, "a rollback that was taken back could not be cleaned up after yet");
                }
                error
            }
            Err(second) => {
                let what = format!(
                    "{error}; taking the rollback back failed as well and is tried again \
                     when the workspace is next used or the daemon next starts"
                );
                match second {
                    Error::NoSpace { .. } => Error::NoSpace { what },
                    second => Error::Io { what, source: std::io::Error::other(second) },
                }
            }
        }
    }
}

fn in_order(mut warnings: Vec<Warning>) -> Vec<Warning> {
    warnings.sort_by(|one, other| one.path.cmp(&other.path));
    warnings.dedup();
    warnings
}

/// What recovery asks of the store. Called with the daemon's own rights.
pub trait Workspaces {
    /// Opens the workspace's directory, locked as for a rollback. `None` if nothing is there, or it cannot be had now:
    /// the operation then stays pending.
    fn open(&mut self, workspace: &WorkspaceId, path: &Path) -> Result<Option<Root>>;

    /// The safety snapshot of operation `op`, or a fresh one if that has been deleted since.
    fn late_writes(&mut self, workspace: &WorkspaceId, op: &str) -> Result<Box<dyn LateWrites + '_>>;
}
