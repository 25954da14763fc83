//! Captured trees in the trash.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};
use diesel::prelude::*;

use super::schema::{snapshots, workspaces};
use super::snapshots::{Raw, SAFETY, USER, rollback_kind};
use super::{Attempt, Catalog, SnapshotRow, WorkspaceRow, damaged, object_id};
use crate::ckpt::error::{Error, Result};
use crate::ckpt::format::ObjectId;
use crate::ckpt::model::{Trashed, TrashedTree, Workspace};
use crate::clock::WallTime;

type Row = (Raw, String, Option<i64>, String, Vec<u8>, i64);

impl Catalog {
    /// Everything in the trash but what was of kept directories, in the order in which it was captured; `kept` nanoseconds after it got there it may be
    /// purged.
    pub(crate) fn trash(&self, kept: i64) -> Result<Vec<Trashed>> {
        self.read(|database| {
            let rows: Vec<Row> = snapshots::table
                .inner_join(workspaces::table)
                .filter(snapshots::trashed_at.is_not_null().and(workspaces::kept.eq(false)))
                .order(snapshots::key)
                .select((
                    Raw::as_select(),
                    snapshots::kind,
                    snapshots::trashed_at,
                    workspaces::id,
                    workspaces::path,
                    workspaces::owner,
                ))
                .load(database)?;
            rows.into_iter().map(|row| trashed(row, kept)).collect()
        })
    }

    /// Removes the tree before a rollback that never began: the live tree is what it was.
    pub(crate) fn forget_safety(&self, key: i64) -> Result<()> {
        self.write_roots(|database| {
            diesel::delete(snapshots::table.find(key)).execute(database)?;
            Ok(())
        })
    }

    /// The tree of something in the trash that is of this owner.
    pub(crate) fn trashed_tree(&self, item: u64, owner: u32) -> Result<ObjectId> {
        self.read(|database| {
            let row: Option<(Vec<u8>, i64)> = snapshots::table
                .inner_join(workspaces::table)
                .filter(snapshots::key.eq(key(item)?))
                .filter(snapshots::trashed_at.is_not_null().and(workspaces::kept.eq(false)))
                .select((snapshots::manifest, workspaces::owner))
                .get_result(database)
                .optional()?;
            match row {
                Some((manifest, of)) if i64::from(owner) == of => object_id(&manifest),
                _ => Err(Error::NotInTrash(item).into()),
            }
        })
    }

    /// Has List show something from the trash again, as a snapshot of that workspace, with this many warnings. It must
    /// be of the workspace's owner, and the name free.
    pub(crate) fn untrash(
        &self,
        workspace: &WorkspaceRow,
        item: u64,
        name: Option<&SnapshotId>,
        pin: bool,
        warnings: u64,
    ) -> Result<SnapshotRow> {
        self.write(|database| {
            let found: Option<(Raw, String, i64)> = snapshots::table
                .inner_join(workspaces::table)
                .filter(snapshots::key.eq(key(item)?))
                .filter(snapshots::trashed_at.is_not_null().and(workspaces::kept.eq(false)))
                .select((Raw::as_select(), snapshots::kind, workspaces::owner))
                .get_result(database)
                .optional()?;
            let Some((mut row, kind, _)) =
                found.filter(|(_, _, owner)| *owner == i64::from(workspace.workspace.owner))
            else {
                return Err(Error::NotInTrash(item).into());
            };
            if kind == SAFETY {
                row.message = Some(before(&row));
                row.metadata = None;
                row.name = format!("safety-{item}");
            }
            if let Some(name) = name {
                row.name = name.as_str().to_owned();
            }
            row.workspace = workspace.key;
            row.pinned |= pin;
            row.warnings = i64::try_from(warnings).unwrap_or(i64::MAX);
            let taken = snapshots::table
                .filter(snapshots::workspace.eq(workspace.key))
                .filter(snapshots::kind.eq(USER))
                .filter(snapshots::name.eq(&row.name))
                .filter(snapshots::trashed_at.is_null());
            if diesel::select(diesel::dsl::exists(taken)).get_result::<bool>(database)? {
                let name = SnapshotId::new(row.name).map_err(|_| damaged("a snapshot id"))?;
                return Err(Error::SnapshotExists(name).into());
            }
            diesel::update(snapshots::table.find(row.key))
                .set((
                    snapshots::workspace.eq(row.workspace),
                    snapshots::kind.eq(USER),
                    snapshots::name.eq(&row.name),
                    snapshots::message.eq(&row.message),
                    snapshots::metadata.eq(&row.metadata),
                    snapshots::pinned.eq(row.pinned),
                    snapshots::warnings.eq(row.warnings),
                    snapshots::applied_at.eq(None::<i64>),
                    snapshots::trashed_at.eq(None::<i64>),
                ))
                .execute(database)?;
            row.row()
        })
    }
}

fn key(item: u64) -> Attempt<i64> {
    i64::try_from(item).map_err(|_| Error::NotInTrash(item).into())
}

fn trashed((row, kind, trashed_at, id, path, owner): Row, kept: i64) -> Attempt<Trashed> {
    let tree = match kind == USER {
        true => TrashedTree::Snapshot {
            id: SnapshotId::new(row.name).map_err(|_| damaged("a snapshot id"))?,
            message: row.message,
        },
        false => TrashedTree::Before(rollback_kind(row.message.as_deref(), row.metadata.as_deref())),
    };
    Ok(Trashed {
        item: u64::try_from(row.key).map_err(|_| damaged("the key of a snapshot"))?,
        workspace: Workspace {
            id: WorkspaceId::new(id).map_err(|_| damaged("a workspace id"))?,
            path: OsString::from_vec(path).into(),
            owner: u32::try_from(owner).map_err(|_| damaged("an owner"))?,
        },
        tree,
        created_at: WallTime(row.created_at),
        until: WallTime(trashed_at.unwrap_or_default().saturating_add(kept)),
        missing: row.missing,
    })
}

/// What a person should know about the tree before a rollback once it is a snapshot like others.
fn before(row: &Raw) -> String {
    rollback_kind(row.message.as_deref(), row.metadata.as_deref()).before()
}
