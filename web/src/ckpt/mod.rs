//! Checkpoints: what the ws-ckpt wire cannot carry.

mod changes;
mod reports;
mod snapshots;

use actix_web::http::Method;
use actix_web::web::{self, Data, Json, Path};
use cofferdam_actors::Carries;
use cofferdam_actors::ckpt::{
    CheckStore, Ckpt, Failure, GetLastRollback, InitWorkspace, ListTrash, NewestRollback, Repeatable,
    RestoreTrashed, RoutingError, SnapshotWarnings, StoreSize, Undelivered, UndoRollback,
};
use cofferdam_protocol::ckpt::WsCkptErrorCode;
use cofferdam_storage::peer::Peer;
use tokio::sync::oneshot;

pub use changes::{
    ChangeReport, ContentReport, ContentRequest, DiffReport, DiffRequest, HunkReport, LineReport, SideReport,
};
pub use reports::{
    CheckRequest, CheckSummary, InitReport, InitRequest, LastRollbackReport, RestoreRequest, RestoredReport,
    RollbackReport, SizeReport, TrashReport, TrashedReport, UndoReport, UndoRequest, WarningReport,
    WarningsReport,
};
pub use snapshots::{
    CheckpointReport, CheckpointRequest, DeleteRequest, DeletedReport, RollbackRequest, SnapshotReport,
    SnapshotsReport, WorkspaceReport, WorkspacesReport,
};

use crate::api::Endpoint;
use crate::caller::{Caller, Utf8Path};
use crate::error::ApiError;

/// The routes of this module.
pub(crate) fn endpoints() -> impl Iterator<Item = Endpoint> {
    let others = [
        Endpoint::new(Method::GET, "/ckpt/workspaces/{workspace}/snapshots/{snapshot}/warnings", || {
            web::to(warnings)
        }),
        Endpoint::new(Method::GET, "/ckpt/workspaces/{workspace}/last-rollback", || web::to(last_rollback)),
        Endpoint::new(Method::POST, "/ckpt/init", || web::to(init)),
        Endpoint::new(Method::POST, "/ckpt/undo", || web::to(undo)),
        Endpoint::new(Method::GET, "/ckpt/trash", || web::to(trash)),
        Endpoint::new(Method::POST, "/ckpt/trash/restore", || web::to(restore)),
        Endpoint::new(Method::POST, "/ckpt/check", || web::to(check)),
        Endpoint::new(Method::GET, "/ckpt/store", || web::to(store)),
    ];
    snapshots::endpoints().into_iter().chain(changes::endpoints()).chain(others)
}

type Answer<T> = Result<Json<T>, ApiError>;

async fn warnings(
    Caller(peer): Caller,
    _: Utf8Path,
    of: Path<(String, String)>,
    ckpt: Data<Ckpt>,
) -> Answer<WarningsReport> {
    let (workspace, snapshot) = of.into_inner();
    let warnings = ckpt.ask(SnapshotWarnings { peer, workspace, snapshot }).await?;
    Ok(Json(warnings.into()))
}

async fn last_rollback(
    Caller(peer): Caller,
    _: Utf8Path,
    workspace: Path<String>,
    ckpt: Data<Ckpt>,
) -> Answer<Option<LastRollbackReport>> {
    Ok(Json(newest_rollback(&ckpt, peer, workspace.into_inner()).await?))
}

/// The newest rollback or undo of a workspace, if there is one: first which one it is, then what it did. One that comes between
/// the two is shown, and not the one that is taken back.
async fn newest_rollback(
    ckpt: &Ckpt,
    peer: Peer,
    workspace: String,
) -> Result<Option<LastRollbackReport>, Failure> {
    let newest = ckpt.ask(NewestRollback { peer: peer.clone(), workspace: workspace.clone() }).await?;
    let Some(newest) = newest else { return Ok(None) };
    match ckpt.ask(GetLastRollback { peer, workspace }).await {
        Ok(last) => {
            let report = LastRollbackReport::from(last.as_ref());
            Ok(Some(LastRollbackReport { rollback: Some((&newest).into()), ..report }))
        }
        Err(Failure { code: WsCkptErrorCode::SnapshotNotFound, .. }) => Ok(Some((&newest).into())),
        Err(failure) => Err(failure),
    }
}

async fn init(Caller(peer): Caller, ckpt: Data<Ckpt>, body: Json<InitRequest>) -> Answer<InitReport> {
    let InitRequest { path } = body.into_inner();
    let workspace = carried_out(ckpt, InitWorkspace { peer, workspace: path }).await?;
    Ok(Json(InitReport { workspace: workspace.to_string() }))
}

async fn undo(Caller(peer): Caller, ckpt: Data<Ckpt>, body: Json<UndoRequest>) -> Answer<UndoReport> {
    let UndoRequest { workspace, operation: expected } = body.into_inner();
    let done = delivered(ckpt, UndoRollback { peer, workspace, expected }).await?;
    Ok(Json(done.into()))
}

/// Whoever serves the connection drops what waits here if the client goes away; the actors are then told that the
/// answer reached nobody.
async fn delivered<M>(ckpt: Data<Ckpt>, request: M) -> Result<M::Answer, Failure>
where
    M: Repeatable + actix::Message<Result = Result<<M as Repeatable>::Answer, Failure>>,
    Ckpt: Carries<M> + Carries<Undelivered<M>>,
{
    let (deliver, delivered) = oneshot::channel();
    actix_web::rt::spawn(async move {
        if let Err(Ok(answer)) = deliver.send(ckpt.ask(request.clone()).await) {
            // Too busy to remember it: the next one then does what it asks for, and says so.
            let _ = ckpt.offer(Undelivered { request, answer });
        }
    });
    delivered.await.unwrap_or_else(|_| Err(RoutingError::Stopping.into()))
}

/// The same of a request that may be made again: nobody is told.
async fn carried_out<M, T>(ckpt: Data<Ckpt>, request: M) -> Result<T, Failure>
where
    M: actix::Message<Result = Result<T, Failure>> + Send + 'static,
    T: Send + 'static,
    Ckpt: Carries<M>,
{
    let asked = actix_web::rt::spawn(async move { ckpt.ask(request).await });
    asked.await.unwrap_or_else(|_| Err(RoutingError::Stopping.into()))
}

async fn trash(Caller(peer): Caller, ckpt: Data<Ckpt>) -> Answer<TrashReport> {
    let trash = ckpt.ask(ListTrash { peer }).await?;
    Ok(Json(trash.into()))
}

async fn restore(
    Caller(peer): Caller,
    ckpt: Data<Ckpt>,
    body: Json<RestoreRequest>,
) -> Answer<RestoredReport> {
    let RestoreRequest { workspace, item, id, pin } = body.into_inner();
    let snapshot = ckpt.ask(RestoreTrashed { peer, workspace, item, id, pin }).await?;
    Ok(Json(RestoredReport { snapshot: snapshot.to_string() }))
}

async fn check(Caller(peer): Caller, ckpt: Data<Ckpt>, body: Json<CheckRequest>) -> Answer<CheckSummary> {
    let CheckRequest { read_data } = body.into_inner();
    let report = ckpt.ask(CheckStore { peer, read_data }).await?;
    Ok(Json(report.into()))
}

async fn store(Caller(peer): Caller, ckpt: Data<Ckpt>) -> Answer<SizeReport> {
    let size = ckpt.ask(StoreSize { peer }).await?;
    Ok(Json(size.into()))
}
