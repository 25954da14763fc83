//! Registered directories: workspaces that people have, and directories that the program keeps for itself.
//!
//! The two know nothing of each other: one path may be registered as both, with an id each.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use cofferdam_protocol::ckpt::WorkspaceId;
use diesel::prelude::*;
use sha2::{Digest, Sha256};

use super::schema::{snapshots, workspaces};
use super::{Attempt, Catalog, damaged, last_key, object_id};
use crate::ckpt::error::Result;
use crate::ckpt::format::ObjectId;
use crate::ckpt::model::Workspace;
use crate::clock::WallTime;
use crate::fs::FileIdentity;

/// A registered directory.
#[derive(Clone, Debug)]
pub(crate) struct WorkspaceRow {
    /// What other tables call it.
    pub(crate) key: i64,
    /// What callers see of it.
    pub(crate) workspace: Workspace,
    /// What tells its root from any other directory.
    pub(crate) identity: FileIdentity,
    /// The manifest for which the stat cache was last committed.
    pub(crate) last_capture: Option<ObjectId>,
    /// Whether it is the program's own business; nobody has it as a workspace.
    pub(crate) kept: bool,
}

/// What became of a registration.
#[derive(Clone, Debug)]
pub(crate) enum Registered {
    /// It is new, or another owner's directory stands where one was registered.
    New(WorkspaceRow),
    /// The same directory was registered already.
    Known(WorkspaceRow),
    /// Another directory of the same owner stood at that path, or another one that was kept, whoever owned it; its snapshots
    /// are this one's now.
    Adopted(WorkspaceRow),
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = workspaces)]
struct Raw {
    key: i64,
    id: String,
    path: Vec<u8>,
    owner: i64,
    identity: Vec<u8>,
    last_capture: Option<Vec<u8>>,
    kept: bool,
}

impl Raw {
    fn row(self) -> Attempt<WorkspaceRow> {
        Ok(WorkspaceRow {
            key: self.key,
            workspace: Workspace {
                id: WorkspaceId::new(self.id).map_err(|_| damaged("a workspace id"))?,
                path: PathBuf::from(std::ffi::OsString::from_vec(self.path)),
                owner: u32::try_from(self.owner).map_err(|_| damaged("an owner"))?,
            },
            identity: FileIdentity::from_bytes(&self.identity),
            last_capture: self.last_capture.as_deref().map(object_id).transpose()?,
            kept: self.kept,
        })
    }
}

impl Catalog {
    /// Every registered directory, kept ones too, by id.
    pub(crate) fn workspaces(&self) -> Result<Vec<WorkspaceRow>> {
        self.read(|database| {
            let rows = registered().order(workspaces::id).load(database)?;
            rows.into_iter().map(Raw::row).collect()
        })
    }

    /// The registered directory of that id.
    pub(crate) fn workspace(&self, id: &WorkspaceId) -> Result<Option<WorkspaceRow>> {
        self.read(|database| {
            let row = registered().filter(workspaces::id.eq(id.as_str())).get_result(database).optional()?;
            row.map(Raw::row).transpose()
        })
    }

    /// Registers the directory at a canonical path, or finds it registered. One of another owner ends the old
    /// registration as [`Catalog::forget`] does: its snapshots are none of the new owner's business. `kept`: as one of
    /// the program's own, whoever owns it; as what else the path is registered does not matter.
    pub(crate) fn register(
        &self,
        path: &Path,
        owner: u32,
        identity: &FileIdentity,
        kept: bool,
        now: WallTime,
    ) -> Result<Registered> {
        self.write_roots(|database| {
            let bytes = path.as_os_str().as_bytes();
            let known = registered()
                .filter(workspaces::path.eq(bytes).and(workspaces::kept.eq(kept)))
                .get_result(database)
                .optional()?;
            let known = known.map(Raw::row).transpose()?;
            match known {
                Some(row) if row.workspace.owner == owner && row.identity == *identity => {
                    return Ok(Registered::Known(row));
                }
                Some(row) if row.workspace.owner == owner || kept => {
                    // The stat cache is of another directory.
                    diesel::update(workspaces::table.find(row.key))
                        .set((
                            workspaces::identity.eq(identity.as_bytes()),
                            workspaces::owner.eq(i64::from(owner)),
                            workspaces::last_capture.eq(None::<Vec<u8>>),
                        ))
                        .execute(database)?;
                    return Ok(Registered::Adopted(WorkspaceRow {
                        identity: identity.clone(),
                        workspace: Workspace { owner, ..row.workspace },
                        last_capture: None,
                        ..row
                    }));
                }
                Some(row) => forget(database, row.key, now)?,
                None => {}
            }
            let id = free_id(database, path, kept)?;
            diesel::insert_into(workspaces::table)
                .values((
                    workspaces::id.eq(id.as_str()),
                    workspaces::path.eq(bytes),
                    workspaces::owner.eq(i64::from(owner)),
                    workspaces::identity.eq(identity.as_bytes()),
                    workspaces::registered_at.eq(now.0),
                    workspaces::kept.eq(kept),
                ))
                .execute(database)?;
            let key = last_key(database)?;
            let workspace = Workspace { id, path: path.to_owned(), owner };
            Ok(Registered::New(WorkspaceRow {
                key,
                workspace,
                identity: identity.clone(),
                last_capture: None,
                kept,
            }))
        })
    }

    /// Ends a registration; its snapshots go to the trash.
    pub(crate) fn forget(&self, workspace: i64, now: WallTime) -> Result<()> {
        self.with_spare(|| self.write_roots(|database| forget(database, workspace, now)))
    }

    /// Ends a registration, and all there is of it goes with it.
    pub(crate) fn erase(&self, workspace: i64) -> Result<()> {
        self.with_spare(|| {
            self.write_roots(|database| {
                diesel::delete(snapshots::table.filter(snapshots::workspace.eq(workspace)))
                    .execute(database)?;
                diesel::delete(workspaces::table.find(workspace)).execute(database)?;
                Ok(())
            })
        })
    }
}

#[diesel::dsl::auto_type]
fn registered() -> _ {
    let row: diesel::dsl::AsSelect<Raw, diesel::sqlite::Sqlite> = Raw::as_select();
    workspaces::table.filter(workspaces::forgotten_at.is_null()).select(row)
}

fn forget(database: &mut SqliteConnection, workspace: i64, now: WallTime) -> Attempt<()> {
    diesel::update(snapshots::table)
        .filter(snapshots::workspace.eq(workspace).and(snapshots::trashed_at.is_null()))
        .set(snapshots::trashed_at.eq(now.0))
        .execute(database)?;
    diesel::update(workspaces::table.find(workspace))
        .set((workspaces::forgotten_at.eq(now.0), workspaces::last_capture.eq(None::<Vec<u8>>)))
        .execute(database)?;
    Ok(())
}

/// The number at which ids of kept directories begin, so that nobody can tell from a workspace's id that one is there.
const KEPT_FROM: u32 = 1 << 31;

/// `ws-` and the first three bytes of the path's SHA-256, with `-2`, `-3`, … where another path has them.
fn free_id(database: &mut SqliteConnection, path: &Path, kept: bool) -> Attempt<WorkspaceId> {
    let taken: Vec<String> =
        workspaces::table.filter(workspaces::forgotten_at.is_null()).select(workspaces::id).load(database)?;
    let digest = digest(path.as_os_str());
    let numbers = if kept { KEPT_FROM..u32::MAX } else { 1..KEPT_FROM };
    let free = numbers
        .map(|nth| WorkspaceId::from_digest(digest, nth))
        .find(|id| !taken.iter().any(|taken| taken == id.as_str()));
    free.ok_or_else(|| damaged("the list of workspaces"))
}

fn digest(path: &OsStr) -> [u8; 3] {
    let [a, b, c, ..]: [u8; 32] = Sha256::digest(path.as_bytes()).into();
    [a, b, c]
}
