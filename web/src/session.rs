//! Sessions: the requests of the management protocol, carried out by this process instead of one of their own.
//!
//! Bodies are the protocol's requests, with or without their `action`; answers are its data. Two routes say what it does not.

pub(crate) mod shown;

use std::path::Path;

use actix_web::http::{Method, StatusCode};
use actix_web::web::{self, Data, Json};
use cofferdam_actors::host::Host;
use cofferdam_actors::session::{
    ClearSessions, InspectSession, ListSessions, PrepareClearAll, Sessions, ValidateSession,
};
use cofferdam_protocol::host::LiveSession;
use cofferdam_protocol::pod::session_uuid;
use cofferdam_protocol::session::{
    ClearRequest, InspectRequest, ListRequest, PrepareClearAllRequest, SessionData, SessionErrorCode,
    SessionId, ValidateRequest,
};

use crate::api::Endpoint;
use crate::caller::Owner;
use crate::error::ApiError;

/// The routes of this module.
pub(crate) fn endpoints() -> [Endpoint; 7] {
    [
        Endpoint::new(Method::POST, "/session/list", || web::to(list)),
        Endpoint::new(Method::POST, "/session/inspect", || web::to(inspect)),
        Endpoint::new(Method::POST, "/session/validate", || web::to(validate)),
        Endpoint::new(Method::POST, "/session/prepare-clear-all", || web::to(prepare_clear_all)),
        Endpoint::new(Method::POST, "/session/clear", || web::to(clear)),
        Endpoint::new(Method::POST, "/session/scopes", || web::to(shown::scopes)),
        Endpoint::new(Method::POST, "/session/preview", || web::to(shown::preview)),
    ]
}

type Answer = Result<Json<SessionData>, ApiError>;

async fn list(_: Owner, sessions: Data<Sessions>, body: Json<ListRequest>) -> Answer {
    let request = body.into_inner();
    check_absolute(&request.workspace_scope)?;
    Ok(Json(sessions.ask(ListSessions(request)).await?))
}

async fn inspect(_: Owner, sessions: Data<Sessions>, body: Json<InspectRequest>) -> Answer {
    let request = body.into_inner();
    check_absolute(&request.workspace_scope)?;
    Ok(Json(sessions.ask(InspectSession(request)).await?))
}

async fn validate(_: Owner, sessions: Data<Sessions>, body: Json<ValidateRequest>) -> Answer {
    let request = body.into_inner();
    check_absolute(&request.workspace_scope)?;
    Ok(Json(sessions.ask(ValidateSession(request)).await?))
}

async fn prepare_clear_all(
    _: Owner,
    sessions: Data<Sessions>,
    host: Data<Option<Host>>,
    body: Json<PrepareClearAllRequest>,
) -> Answer {
    let request = body.into_inner();
    check_absolute(&request.workspace_scope)?;
    Ok(Json(sessions.ask(PrepareClearAll(request, in_use(&host).await)).await?))
}

async fn clear(
    _: Owner,
    sessions: Data<Sessions>,
    host: Data<Option<Host>>,
    body: Json<ClearRequest>,
) -> Answer {
    let request = body.into_inner();
    check_absolute(&request.workspace_scope)?;
    Ok(Json(sessions.ask(ClearSessions(request, in_use(&host).await)).await?))
}

/// The sessions of tasks that have an agent here.
async fn in_use(host: &Option<Host>) -> Vec<String> {
    let Some(host) = host else { return Vec::new() };
    let live = host.status().await.map(|status| status.sandbox.live_sessions).unwrap_or_default();
    let id = |session: LiveSession| SessionId::new(session_uuid(&session.id)?).ok().map(|id| id.to_string());
    live.into_iter().filter_map(id).collect()
}

/// This process's current directory is not the caller's.
fn check_absolute(workspace: &str) -> Result<(), ApiError> {
    if Path::new(workspace).is_absolute() {
        return Ok(());
    }
    let code = SessionErrorCode::InvalidRequest.as_str();
    Err(ApiError::new(StatusCode::BAD_REQUEST, code, &"workspace_scope must be an absolute path"))
}
