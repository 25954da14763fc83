//! Giving a directory back a snapshot's tree, and taking that back: what the catalog and the packs have to do with it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};

use super::Store;
use super::held::{Held, open_root};
use super::late::Late;
use crate::ckpt::catalog::{NewRow, Target, WorkspaceRow};
use crate::ckpt::error::{Error, Result};
use crate::ckpt::format::{Manifest, Timestamp};
use crate::ckpt::model::{RecoveryReport, RollbackKind, RolledBack, Undone};
use crate::ckpt::rollback::{self, Job, LateWrites, Outcome, Recovered, Workspaces};
use crate::clock::WallTime;
use crate::fs::Root;
use crate::peer::Peer;

impl Store {
    pub(super) fn roll_back(
        &self,
        peer: &Peer,
        workspace: &WorkspaceId,
        to: &SnapshotId,
    ) -> Result<RolledBack> {
        let _reading = self.readers.begin();
        let held = self.hold(peer, workspace)?;
        let row = self.snapshot_row(held.row.key, to)?;
        let target = self.manifest_of(&row)?;
        let kind = RollbackKind::To(row.snapshot.id.clone());
        self.or_missing(&row, self.give_back_tree(peer, &held, &target, &kind))
    }

    pub(super) fn undo_rollback(&self, peer: &Peer, workspace: &WorkspaceId) -> Result<Undone> {
        let _reading = self.readers.begin();
        let held = self.hold(peer, workspace)?;
        let (row, rollback) = self.catalog.undo_target(held.row.key)?.ok_or(Error::NothingToUndo)?;
        let target = self.manifest(&row.manifest)?;
        let outcome = self.give_back_tree(peer, &held, &target, &RollbackKind::Undo)?;
        Ok(Undone { rollback, outcome })
    }

    /// Takes the safety snapshot and makes the live tree equal to the target.
    fn give_back_tree(
        &self,
        peer: &Peer,
        held: &Held<'_>,
        target: &Manifest,
        kind: &RollbackKind,
    ) -> Result<RolledBack> {
        let op = self.ids.fresh();
        let began = self.clock.wall();
        let captured = self.capture_live(peer, held, |captured| {
            let row = NewRow::safety(held.row.key, &op, kind, began, &captured.id);
            Ok(Some(Target::Snapshot(row)))
        })?;
        let Some(safety) = self.catalog.safety_of(held.row.key, &op)? else {
            return Err(Error::Catalog(format!("the safety snapshot {op} is gone")));
        };
        self.step("rollback.safety-published")?;
        let mut late =
            Late::new(self, peer, &held.row, held.root.clone(), held.ignore.clone(), &op, Some(safety));
        let result = rollback::run(Job {
            disk: &self.disk,
            peer,
            root: &held.root,
            path: &held.row.workspace.path,
            workspace: &held.row.workspace.id,
            source: &*self.reader,
            live: &captured.manifest,
            captured_from: timestamp(began),
            target,
            journal: self.places.journal(),
            op: &op,
            late: &mut late,
        });
        if result.is_err()
            && !late.is_settled()
            && let Err(error) = self.drop_unless_begun(held, &mut late)
        {
            // The next start drops it.
            tracing::warn!(%error, op, "the safety snapshot of a rollback that never began stays for now");
        }
        let done = result?;
        self.step("rollback.published")?;
        Ok(done)
    }

    /// Has nothing to undo after a rollback that failed before it had a journal.
    fn drop_unless_begun(&self, held: &Held<'_>, late: &mut Late<'_>) -> Result<()> {
        match self.has_journal(&held.row)? {
            true => Ok(()),
            false => late.settle(Outcome::TakenBack),
        }
    }

    /// Whether a rollback of this very directory is not finished. One that a directory before it had is none of its
    /// business, and waits for that one to come back.
    fn has_journal(&self, row: &WorkspaceRow) -> Result<bool> {
        let pending = rollback::pending(self.places.journal())?;
        Ok(pending.iter().any(|one| one.workspace == row.workspace.id && one.root == row.identity))
    }

    /// Finishes or takes back every rollback of a workspace that was cut short; an error if one cannot be now.
    pub(super) fn finish_rollbacks(&self, row: &WorkspaceRow) -> Result<()> {
        if !self.has_journal(row)? {
            return Ok(());
        }
        // To say what is wrong if it is not there.
        drop(open_root(row)?);
        let (mut unfinished, mut no_space) = (String::new(), false);
        for recovered in self.run_recovery(Some(&row.workspace.id))? {
            tracing::info!("{}", line(&recovered));
            no_space |= recovered.no_space;
            unfinished.extend(recovered.outcome.err());
        }
        let what = || "a rollback that was cut short has to be finished first".to_owned();
        match self.has_journal(row)? {
            true if no_space => Err(Error::NoSpace { what: what() }),
            true => Err(Error::io(what(), std::io::Error::other(unfinished))),
            false => Ok(()),
        }
    }

    /// The same for all workspaces, as the store is opened. What cannot be finished now stays pending.
    pub(super) fn recover_rollbacks(&self, report: &mut RecoveryReport) -> Result<()> {
        let recovered = match self.run_recovery(None) {
            Ok(recovered) => recovered,
            Err(error) => {
                report.lines.push(format!("rollbacks that were cut short stay as they are: {error}"));
                return Ok(());
            }
        };
        report.lines.extend(recovered.iter().map(line));
        let pending = recovered.iter().filter(|r| r.outcome.is_err()).map(|r| r.op.clone()).collect();
        // These were cut short between their safety snapshot and their journal: nothing was begun.
        if let Err(error) = self.catalog.drop_unapplied(&pending, self.clock.wall()) {
            report
                .lines
                .push(format!("safety snapshots of rollbacks that never began stay for now: {error}"));
        }
        Ok(())
    }

    fn run_recovery(&self, only: Option<&WorkspaceId>) -> Result<Vec<Recovered>> {
        let _reading = self.readers.begin();
        let mut recovery = Recovery { store: self };
        rollback::recover(&self.disk, self.places.journal(), &*self.reader, only, &mut recovery)
    }
}

fn line(recovered: &Recovered) -> String {
    let Recovered { workspace, op, outcome, warnings, .. } = recovered;
    let workspace = workspace.as_ref().map_or("unknown workspace", |workspace| workspace.as_str());
    let mut line = match outcome {
        Ok(Outcome::Finished) => format!("{workspace}: finished rollback {op}"),
        Ok(Outcome::TakenBack) => format!("{workspace}: took back rollback {op}"),
        Err(why) => format!("{workspace}: rollback {op} is still pending: {why}"),
    };
    for warning in warnings {
        line.push_str(&format!("; {} was newer and is kept", warning.path));
    }
    line
}

fn timestamp(time: WallTime) -> Timestamp {
    const SECOND: i64 = 1_000_000_000;
    Timestamp { secs: time.0.div_euclid(SECOND), nanos: time.0.rem_euclid(SECOND) as u32 }
}

/// What recovery asks of the store.
struct Recovery<'a> {
    store: &'a Store,
}

impl Recovery<'_> {
    fn row(&self, workspace: &WorkspaceId) -> Result<WorkspaceRow> {
        self.store.registered(workspace)
    }
}

impl Workspaces for Recovery<'_> {
    fn open(&mut self, workspace: &WorkspaceId, path: &Path) -> Result<Option<Root>> {
        let row = match self.row(workspace) {
            Ok(row) if row.workspace.path == path => row,
            Ok(_) | Err(Error::WorkspaceNotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let root = match open_root(&row) {
            Ok(root) => root,
            Err(Error::WorkspaceGone(_) | Error::WorkspaceReplaced(_) | Error::Io { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        match self.store.locks.flock(&root, Duration::ZERO) {
            Ok(()) => Ok(Some(root)),
            Err(Error::Busy) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn late_writes(&mut self, workspace: &WorkspaceId, op: &str) -> Result<Box<dyn LateWrites + '_>> {
        let row = self.row(workspace)?;
        let root = Arc::new(open_root(&row)?);
        let ignore = self.store.staging_below(&row)?;
        let safety = self.store.catalog.safety_of(row.key, op)?;
        Ok(Box::new(Late::new(self.store, &Peer::own(), &row, root, ignore, op, safety)))
    }
}
