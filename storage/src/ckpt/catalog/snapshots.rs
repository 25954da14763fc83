//! Captured trees, by workspace.

use std::collections::{BTreeMap, HashSet};

use cofferdam_protocol::ckpt::SnapshotId;
use diesel::prelude::*;

use super::schema::{snapshots, workspaces};
use super::{Attempt, Catalog, damaged, object_id};
use crate::ckpt::error::{Error, Result};
use crate::ckpt::format::ObjectId;
use crate::ckpt::model::{PastRollback, Removal, RollbackKind, Snapshot};
use crate::clock::WallTime;
use crate::path::escape;

pub(super) const USER: &str = "user";
pub(super) const SAFETY: &str = "safety";
/// What stands in the metadata of the tree before an undo. That of a rollback has the target's name as its message.
const BEFORE_UNDO: &str = "undo";

/// A snapshot that List shows.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotRow {
    /// What names it for ever.
    pub(crate) key: i64,
    /// The key of its workspace.
    pub(crate) workspace: i64,
    /// What callers see of it.
    pub(crate) snapshot: Snapshot,
    /// Its tree.
    pub(crate) manifest: ObjectId,
}

/// The tree before a rollback.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SafetyRow {
    /// What names it for ever.
    pub(crate) key: i64,
    /// Its tree.
    pub(crate) manifest: ObjectId,
}

/// Any snapshot: shown, safety, or in the trash.
#[derive(Clone, Debug)]
pub(crate) struct KnownTree {
    /// What names it for ever.
    pub(crate) key: i64,
    /// What to call it in a report.
    pub(crate) name: String,
    /// Whether List shows it.
    pub(crate) shown: bool,
    /// Whether data it needs is known to be damaged or gone.
    pub(crate) missing: bool,
    /// Its tree.
    pub(crate) manifest: ObjectId,
}

/// A snapshot to insert.
#[derive(Clone, Debug, Insertable)]
#[diesel(table_name = snapshots)]
pub(crate) struct NewRow {
    workspace: i64,
    kind: &'static str,
    name: String,
    message: Option<String>,
    metadata: Option<String>,
    pinned: bool,
    created_at: i64,
    manifest: Vec<u8>,
    warnings: i64,
    missing: bool,
}

impl NewRow {
    /// A snapshot that List shows.
    pub(crate) fn user(workspace: i64, snapshot: &Snapshot, manifest: &ObjectId) -> Self {
        Self {
            workspace,
            kind: USER,
            name: snapshot.id.as_str().to_owned(),
            message: snapshot.message.as_deref().map(str::to_owned),
            metadata: snapshot.metadata.as_deref().map(str::to_owned),
            pinned: snapshot.pinned,
            created_at: snapshot.created_at.0,
            manifest: manifest.0.to_vec(),
            warnings: i64::try_from(snapshot.warnings).unwrap_or(i64::MAX),
            missing: false,
        }
    }

    /// The tree before the rollback named `op`.
    pub(crate) fn safety(
        workspace: i64,
        op: &str,
        kind: &RollbackKind,
        now: WallTime,
        manifest: &ObjectId,
    ) -> Self {
        let (message, metadata) = match kind {
            RollbackKind::To(snapshot) => (Some(snapshot.as_str().to_owned()), None),
            RollbackKind::Undo => (None, Some(BEFORE_UNDO.to_owned())),
            RollbackKind::Unknown => (None, None),
        };
        Self {
            workspace,
            kind: SAFETY,
            name: op.to_owned(),
            message,
            metadata,
            pinned: false,
            created_at: now.0,
            manifest: manifest.0.to_vec(),
            warnings: 0,
            missing: false,
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = snapshots)]
pub(super) struct Raw {
    pub(super) key: i64,
    pub(super) workspace: i64,
    pub(super) name: String,
    pub(super) message: Option<String>,
    pub(super) metadata: Option<String>,
    pub(super) pinned: bool,
    pub(super) created_at: i64,
    manifest: Vec<u8>,
    pub(super) warnings: i64,
    pub(super) missing: bool,
}

impl Raw {
    fn safety(&self) -> Attempt<SafetyRow> {
        Ok(SafetyRow { key: self.key, manifest: object_id(&self.manifest)? })
    }

    pub(super) fn row(self) -> Attempt<SnapshotRow> {
        Ok(SnapshotRow {
            key: self.key,
            workspace: self.workspace,
            manifest: object_id(&self.manifest)?,
            snapshot: Snapshot {
                id: SnapshotId::new(self.name).map_err(|_| damaged("a snapshot id"))?,
                message: self.message.map(Into::into),
                metadata: self.metadata.map(Into::into),
                pinned: self.pinned,
                created_at: WallTime(self.created_at),
                missing: self.missing,
                warnings: u64::try_from(self.warnings).map_err(|_| damaged("a number of warnings"))?,
            },
        })
    }
}

impl Catalog {
    /// The snapshots that List shows, in the order in which they were taken, by workspace.
    pub(crate) fn snapshots(&self) -> Result<BTreeMap<i64, Vec<SnapshotRow>>> {
        let rows = self.read(|database| {
            let rows: Vec<Raw> = shown().order(snapshots::key).load(database)?;
            rows.into_iter().map(Raw::row).collect::<Attempt<Vec<_>>>()
        })?;
        let mut by_workspace = BTreeMap::<_, Vec<_>>::new();
        for row in rows {
            by_workspace.entry(row.workspace).or_default().push(row);
        }
        Ok(by_workspace)
    }

    /// The same of one workspace.
    pub(crate) fn snapshots_of(&self, workspace: i64) -> Result<Vec<SnapshotRow>> {
        self.read(|database| {
            let rows: Vec<Raw> =
                shown().filter(snapshots::workspace.eq(workspace)).order(snapshots::key).load(database)?;
            rows.into_iter().map(Raw::row).collect()
        })
    }

    /// The one of that name.
    pub(crate) fn snapshot(&self, workspace: i64, name: &SnapshotId) -> Result<Option<SnapshotRow>> {
        self.read(|database| {
            let row: Option<Raw> = shown()
                .filter(snapshots::workspace.eq(workspace).and(snapshots::name.eq(name.as_str())))
                .get_result(database)
                .optional()?;
            let row = row.map(Raw::row).transpose()?;
            match row {
                // A damaged index leads to another one, whose tree must not be taken for that of this one.
                Some(other) if other.snapshot.id != *name || other.workspace != workspace => {
                    Err(damaged("what finds a snapshot by its name"))
                }
                row => Ok(row),
            }
        })
    }

    /// The one that was taken last.
    pub(crate) fn newest(&self, workspace: i64) -> Result<Option<SnapshotRow>> {
        self.read(|database| {
            let row: Option<Raw> = shown()
                .filter(snapshots::workspace.eq(workspace))
                .order(snapshots::key.desc())
                .first(database)
                .optional()?;
            row.map(Raw::row).transpose()
        })
    }

    /// Removes snapshots that List shows: all of them, or none and an error that names the first unknown one.
    pub(crate) fn remove(
        &self,
        workspace: i64,
        names: &[SnapshotId],
        how: Removal,
        now: WallTime,
    ) -> Result<()> {
        self.with_spare(|| {
            self.write_roots(|database| {
                for name in names {
                    let one = snapshots::table.filter(
                        snapshots::workspace
                            .eq(workspace)
                            .and(snapshots::kind.eq(USER))
                            .and(snapshots::name.eq(name.as_str()))
                            .and(snapshots::trashed_at.is_null()),
                    );
                    let removed = match how {
                        Removal::Unlink => diesel::delete(one).execute(database)?,
                        Removal::Trash => {
                            diesel::update(one).set(snapshots::trashed_at.eq(now.0)).execute(database)?
                        }
                    };
                    if removed == 0 {
                        return Err(Error::SnapshotNotFound(name.clone()).into());
                    }
                }
                Ok(())
            })
        })
    }

    /// Records whether data of snapshots is known to be damaged or gone.
    pub(crate) fn set_missing(&self, keys: &[i64], missing: bool) -> Result<()> {
        self.write(|database| {
            for key in keys {
                diesel::update(snapshots::table.find(key))
                    .set(snapshots::missing.eq(missing))
                    .execute(database)?;
            }
            Ok(())
        })
    }

    /// The tree before the newest rollback of a workspace that was done, and that rollback.
    pub(crate) fn undo_target(&self, workspace: i64) -> Result<Option<(SafetyRow, PastRollback)>> {
        self.read(|database| {
            let row: Option<Raw> = safeties(workspace)
                .filter(snapshots::applied_at.is_not_null())
                .order(snapshots::key.desc())
                .first(database)
                .optional()?;
            row.map(|row| {
                let kind = rollback_kind(row.message.as_deref(), row.metadata.as_deref());
                let (safety, at) = (row.safety()?, WallTime(row.created_at));
                Ok((safety, PastRollback { operation: row.name, at, kind }))
            })
            .transpose()
        })
    }

    /// The tree before the rollback named `op`, whatever became of that rollback.
    pub(crate) fn safety_of(&self, workspace: i64, op: &str) -> Result<Option<SafetyRow>> {
        self.read(|database| {
            let row: Option<Raw> =
                safeties(workspace).filter(snapshots::name.eq(op)).get_result(database).optional()?;
            row.map(|row| row.safety()).transpose()
        })
    }

    /// A rollback is done: undo goes back to this tree from now on, and to no older one.
    pub(crate) fn safety_applied(&self, workspace: i64, key: i64, now: WallTime) -> Result<()> {
        self.with_spare(|| {
            self.write(|database| {
                diesel::update(snapshots::table)
                    .filter(
                        snapshots::workspace
                            .eq(workspace)
                            .and(snapshots::kind.eq(SAFETY))
                            .and(snapshots::key.ne(key))
                            .and(snapshots::trashed_at.is_null()),
                    )
                    .set(snapshots::trashed_at.eq(now.0))
                    .execute(database)?;
                diesel::update(snapshots::table.find(key))
                    .set(snapshots::applied_at.eq(now.0))
                    .execute(database)?;
                Ok(())
            })
        })
    }

    /// A rollback was not done, so there is nothing to undo. What the tree before it holds stays in the trash: it
    /// may have kept late writes.
    pub(crate) fn safety_dropped(&self, key: i64, now: WallTime) -> Result<()> {
        self.with_spare(|| {
            self.write(|database| {
                diesel::update(snapshots::table.find(key))
                    .set(snapshots::trashed_at.eq(now.0))
                    .execute(database)?;
                Ok(())
            })
        })
    }

    /// The same for every rollback that was not done, but for those named in `pending`.
    pub(crate) fn drop_unapplied(&self, pending: &HashSet<String>, now: WallTime) -> Result<()> {
        let unapplied: Vec<(i64, String)> = self.read(|database| {
            Ok(snapshots::table
                .filter(snapshots::kind.eq(SAFETY))
                .filter(snapshots::applied_at.is_null())
                .filter(snapshots::trashed_at.is_null())
                .select((snapshots::key, snapshots::name))
                .load(database)?)
        })?;
        for (key, op) in unapplied {
            if !pending.contains(&op) {
                self.safety_dropped(key, now)?;
            }
        }
        Ok(())
    }

    /// Removes what has been in the trash since before `then`, and forgotten workspaces of which nothing is left.
    /// True if there was anything.
    pub(crate) fn purge_trash(&self, then: WallTime) -> Result<bool> {
        let old = || snapshots::table.filter(snapshots::trashed_at.lt(then.0));
        let orphaned = || {
            workspaces::table.filter(workspaces::forgotten_at.is_not_null()).filter(diesel::dsl::not(
                diesel::dsl::exists(snapshots::table.filter(snapshots::workspace.eq(workspaces::key))),
            ))
        };
        let anything = self.read(|database| {
            Ok(diesel::select(diesel::dsl::exists(old())).get_result::<bool>(database)?
                || diesel::select(diesel::dsl::exists(orphaned())).get_result::<bool>(database)?)
        })?;
        if anything {
            self.with_spare(|| {
                self.write_roots(|database| {
                    diesel::delete(old()).execute(database)?;
                    let empty: Vec<i64> = orphaned().select(workspaces::key).load(database)?;
                    diesel::delete(workspaces::table.filter(workspaces::key.eq_any(empty)))
                        .execute(database)?;
                    Ok(())
                })
            })?;
        }
        Ok(anything)
    }

    /// Every snapshot there is.
    pub(crate) fn every_tree(&self) -> Result<Vec<KnownTree>> {
        type Row = (i64, String, String, Option<i64>, bool, Vec<u8>, Vec<u8>, bool);
        self.read(|database| {
            let rows: Vec<Row> = snapshots::table
                .inner_join(workspaces::table)
                .order(snapshots::key)
                .select((
                    snapshots::key,
                    snapshots::kind,
                    snapshots::name,
                    snapshots::trashed_at,
                    snapshots::missing,
                    snapshots::manifest,
                    workspaces::path,
                    workspaces::kept,
                ))
                .load(database)?;
            let tree = |(key, kind, name, trashed_at, missing, manifest, path, kept): Row| {
                let what = match (kind == USER, kept) {
                    (true, false) => "snapshot",
                    (true, true) => "the program's own snapshot",
                    (false, _) => "safety snapshot",
                };
                let trashed = trashed_at.map_or("", |_| " (in the trash)");
                Ok(KnownTree {
                    key,
                    name: format!("{what} '{name}' of {}{trashed}", escape(&path)),
                    shown: kind == USER && trashed_at.is_none() && !kept,
                    missing,
                    manifest: object_id(&manifest)?,
                })
            };
            rows.into_iter().map(tree).collect()
        })
    }

    /// The manifests of everything that must stay readable, the trash included, and the generation in which they
    /// are all there is.
    pub(crate) fn roots(&self) -> Result<(Vec<ObjectId>, u64)> {
        let mut open = self.open_connection();
        let generation = open.generation;
        let database = self.database(&mut open)?;
        let mut load = || -> Attempt<Vec<ObjectId>> {
            let mut roots: Vec<Vec<u8>> =
                snapshots::table.select(snapshots::manifest).distinct().load(database)?;
            let captures: Vec<Option<Vec<u8>>> = workspaces::table
                .filter(workspaces::last_capture.is_not_null())
                .select(workspaces::last_capture)
                .load(database)?;
            roots.extend(captures.into_iter().flatten());
            roots.iter().map(|id| object_id(id)).collect()
        };
        Ok((load().map_err(|failure| failure.explain(&self.dir))?, generation))
    }
}

#[diesel::dsl::auto_type]
fn shown() -> _ {
    let row: diesel::dsl::AsSelect<Raw, diesel::sqlite::Sqlite> = Raw::as_select();
    let kind: &'static str = USER;
    snapshots::table.filter(snapshots::kind.eq(kind)).filter(snapshots::trashed_at.is_null()).select(row)
}

#[diesel::dsl::auto_type]
fn safeties(workspace: i64) -> _ {
    let row: diesel::dsl::AsSelect<Raw, diesel::sqlite::Sqlite> = Raw::as_select();
    let kind: &'static str = SAFETY;
    snapshots::table
        .filter(snapshots::workspace.eq(workspace))
        .filter(snapshots::kind.eq(kind))
        .filter(snapshots::trashed_at.is_null())
        .select(row)
}

/// Where the rollback went before which a tree was captured.
pub(super) fn rollback_kind(message: Option<&str>, metadata: Option<&str>) -> RollbackKind {
    match message.map(SnapshotId::new) {
        Some(Ok(snapshot)) => RollbackKind::To(snapshot),
        _ if metadata == Some(BEFORE_UNDO) => RollbackKind::Undo,
        _ => RollbackKind::Unknown,
    }
}
