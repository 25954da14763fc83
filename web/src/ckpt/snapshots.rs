//! Workspaces and their snapshots: what there is, taking one, going back to one, removing one.

use actix_web::http::Method;
use actix_web::web::{self, Data, Json, Path};
use cofferdam_actors::ckpt::{
    CheckpointOutcome, Ckpt, CreateCheckpoint, DeleteSnapshot, Failure, HealthAdvisory, LastDone,
    LastRollback, ListSnapshots, ListedWorkspace, Rollback, RoutingError, SnapshotList, shown_path,
};
use cofferdam_protocol::ckpt::Timestamp;
use cofferdam_storage::ckpt::Snapshot;
use serde::{Deserialize, Serialize};

use super::{Answer, LastRollbackReport, carried_out, delivered, newest_rollback};
use crate::api::Endpoint;
use crate::caller::{Caller, Utf8Path};

/// The routes of this module.
pub(super) fn endpoints() -> [Endpoint; 5] {
    [
        Endpoint::new(Method::GET, "/ckpt/workspaces", || web::to(workspaces)),
        Endpoint::new(Method::GET, "/ckpt/workspaces/{workspace}/snapshots", || web::to(snapshots)),
        Endpoint::new(Method::POST, "/ckpt/checkpoint", || web::to(checkpoint)),
        Endpoint::new(Method::POST, "/ckpt/rollback", || web::to(rollback)),
        Endpoint::new(Method::POST, "/ckpt/delete", || web::to(delete)),
    ]
}

/// The workspaces of the caller, and the space there is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspacesReport {
    /// By id.
    pub workspaces: Vec<WorkspaceReport>,
    /// How many of them have more than 1000 snapshots.
    pub over_limit: u32,
    /// Bytes of the filesystem that holds the store.
    pub fs_total_bytes: u64,
    /// Of them, in use.
    pub fs_used_bytes: u64,
}

/// One workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceReport {
    /// Its id.
    pub id: String,
    /// Its path as it was registered.
    pub path: String,
    /// How many snapshots it has.
    pub snapshots: usize,
    /// When the newest was taken; null if there is none.
    pub newest: Option<Timestamp>,
    /// Of how many data is known to be damaged or gone.
    pub missing: usize,
}

/// The snapshots of one workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotsReport {
    /// The workspace's id.
    pub id: String,
    /// Its path.
    pub path: String,
    /// In the order in which they were taken.
    pub snapshots: Vec<SnapshotReport>,
    /// The newest rollback or undo; null if there is none.
    #[serde(default)]
    pub last: Option<LastRollbackReport>,
}

/// One snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotReport {
    /// Its name.
    pub id: String,
    /// What was said about it.
    pub message: Option<String>,
    /// JSON text.
    pub metadata: Option<String>,
    /// Whether only a forced delete removes it.
    pub pinned: bool,
    /// When it was taken.
    pub created_at: Timestamp,
    /// Whether data it needs is known to be damaged or gone.
    pub missing: bool,
    /// How many things it does not hold faithfully.
    pub warnings: u64,
}

/// Asks for a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointRequest {
    /// A workspace's id, or the absolute path of a directory, which becomes one.
    pub workspace: String,
    /// The new snapshot's name.
    pub id: String,
    /// What is to be said about it.
    #[serde(default)]
    pub message: Option<String>,
    /// Whether only a forced delete removes it.
    #[serde(default)]
    pub pin: bool,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointReport {
    /// The snapshot's name; null if none was needed.
    pub snapshot: Option<String>,
    /// Why none was needed; null if one was taken.
    pub skipped: Option<String>,
}

/// Asks for a directory to be given exactly a snapshot's tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// A workspace's id or absolute path.
    pub workspace: String,
    /// The snapshot's full name.
    pub to: String,
}

/// Asks for a snapshot to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteRequest {
    /// A workspace's id or absolute path.
    pub workspace: String,
    /// The snapshot's full name.
    pub snapshot: String,
    /// Also if it is pinned; it then goes to the trash.
    #[serde(default)]
    pub force: bool,
}

/// A snapshot that was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedReport {
    /// Its full name.
    pub snapshot: String,
}

async fn workspaces(Caller(peer): Caller, ckpt: Data<Ckpt>) -> Answer<WorkspacesReport> {
    let SnapshotList { mut workspaces } =
        ckpt.ask(ListSnapshots { peer: peer.clone(), workspace: None }).await?;
    workspaces.sort_by(|one, other| one.workspace.id.cmp(&other.workspace.id));
    let advisory = ckpt.ask(HealthAdvisory { peer }).await?;
    Ok(Json(WorkspacesReport {
        workspaces: workspaces.iter().map(WorkspaceReport::from).collect(),
        over_limit: advisory.over_limit_workspaces,
        fs_total_bytes: advisory.usage.total,
        fs_used_bytes: advisory.usage.used,
    }))
}

async fn snapshots(
    Caller(peer): Caller,
    _: Utf8Path,
    of: Path<String>,
    ckpt: Data<Ckpt>,
) -> Answer<SnapshotsReport> {
    let workspace = of.into_inner();
    let list = ckpt.ask(ListSnapshots { peer: peer.clone(), workspace: Some(workspace.clone()) }).await?;
    let listed = list.workspaces.first().ok_or_else(|| RoutingError::WorkspaceNotFound(workspace.clone()));
    let listed = listed.map_err(Failure::from)?;
    let last = newest_rollback(&ckpt, peer, workspace).await?;
    Ok(Json(SnapshotsReport {
        id: listed.workspace.id.to_string(),
        path: shown_path(&listed.workspace.path),
        snapshots: listed.snapshots.iter().map(SnapshotReport::from).collect(),
        last,
    }))
}

async fn checkpoint(
    Caller(peer): Caller,
    ckpt: Data<Ckpt>,
    body: Json<CheckpointRequest>,
) -> Answer<CheckpointReport> {
    let CheckpointRequest { workspace, id, message, pin } = body.into_inner();
    let request = CreateCheckpoint { peer, workspace, id, message, metadata: None, pin };
    Ok(Json(match delivered(ckpt, request).await? {
        CheckpointOutcome::Created(snapshot) => {
            CheckpointReport { snapshot: Some(snapshot.to_string()), skipped: None }
        }
        CheckpointOutcome::Skipped { reason } => CheckpointReport { snapshot: None, skipped: Some(reason) },
    }))
}

async fn rollback(
    Caller(peer): Caller,
    ckpt: Data<Ckpt>,
    body: Json<RollbackRequest>,
) -> Answer<LastRollbackReport> {
    let RollbackRequest { workspace, to } = body.into_inner();
    let done = carried_out(ckpt, Rollback { peer, workspace, to, exact: true }).await?;
    Ok(Json((&LastRollback::of(LastDone::To(done.to), &done.outcome)).into()))
}

async fn delete(Caller(peer): Caller, ckpt: Data<Ckpt>, body: Json<DeleteRequest>) -> Answer<DeletedReport> {
    let DeleteRequest { workspace, snapshot, force } = body.into_inner();
    let request = DeleteSnapshot { peer, workspace: Some(workspace), snapshot, exact: true, force };
    Ok(Json(DeletedReport { snapshot: delivered(ckpt, request).await?.to_string() }))
}

impl From<&ListedWorkspace> for WorkspaceReport {
    fn from(ListedWorkspace { workspace, snapshots }: &ListedWorkspace) -> Self {
        let newest = snapshots.iter().map(|snapshot| snapshot.created_at.0).max();
        Self {
            id: workspace.id.to_string(),
            path: shown_path(&workspace.path),
            snapshots: snapshots.len(),
            newest: newest.map(Timestamp::from_unix_nanos),
            missing: snapshots.iter().filter(|snapshot| snapshot.missing).count(),
        }
    }
}

impl From<&Snapshot> for SnapshotReport {
    fn from(snapshot: &Snapshot) -> Self {
        Self {
            id: snapshot.id.to_string(),
            message: snapshot.message.as_deref().map(str::to_owned),
            metadata: snapshot.metadata.as_deref().map(str::to_owned),
            pinned: snapshot.pinned,
            created_at: Timestamp::from_unix_nanos(snapshot.created_at.0),
            missing: snapshot.missing,
            warnings: snapshot.warnings,
        }
    }
}
