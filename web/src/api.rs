//! The scope: every route, the limits, and what is answered where there is none.

use std::borrow::Cow;
use std::sync::Arc;

use actix_web::http::header::ALLOW;
use actix_web::http::{Method, StatusCode};
use actix_web::web::{self, Data, JsonConfig, PathConfig, PayloadConfig, QueryConfig};
use actix_web::{HttpResponse, Responder, Route, Scope, guard};
use cofferdam_actors::ckpt::Ckpt;
use cofferdam_actors::host::Host;
use cofferdam_actors::session::Sessions;

use crate::caller::Caller;
use crate::console::{self, Console};
use crate::error::ApiError;
use crate::events::{self, EventStreams};
use crate::{ckpt, directories, pod, session};

/// The description of this API, an OpenAPI 3.1 document.
pub const OPENAPI: &str = include_str!("../openapi.json");

/// The most bytes a request's body may have.
const MAX_BODY: usize = 64 << 10;
/// The most bytes a method's args may have.
const MAX_ARGS: usize = cofferdam_protocol::host::MAX_BODY;

/// One method of one path below `/api/v1`.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    pub(crate) path: Cow<'static, str>,
    pub(crate) route: fn() -> Route,
}

impl Endpoint {
    pub(crate) fn new(method: Method, path: impl Into<Cow<'static, str>>, route: fn() -> Route) -> Self {
        Self { method, path: path.into(), route }
    }
}

/// Whom the API asks.
#[derive(Clone, Debug)]
pub struct Services {
    /// Workspaces and their snapshots.
    pub ckpt: Ckpt,
    /// Stored conversations.
    pub sessions: Sessions,
    /// Tasks and their agents; nothing where no pods are hosted.
    pub host: Option<Host>,
    /// Who listens to what the host says.
    pub streams: EventStreams,
    /// Who may look at the console; nothing where there is none.
    pub console: Option<Arc<Console>>,
}

/// `/api/v1` with everything in it.
pub fn scope(services: Services) -> Scope {
    let Services { ckpt, sessions, host, streams, console } = services;
    let bad_request =
        |error: &dyn std::fmt::Display| ApiError::new(StatusCode::BAD_REQUEST, "BadRequest", error);
    let json =
        JsonConfig::default().limit(MAX_BODY).error_handler(move |error, _| bad_request(&error).into());
    let path = PathConfig::default().error_handler(move |error, _| bad_request(&error).into());
    let query = QueryConfig::default().error_handler(move |error, _| bad_request(&error).into());
    let mut scope = web::scope("/api/v1")
        .app_data(Data::new(ckpt))
        .app_data(Data::new(sessions))
        .app_data(Data::new(host))
        .app_data(Data::new(streams))
        .app_data(Data::new(console))
        .app_data(PayloadConfig::new(MAX_ARGS))
        .app_data(json)
        .app_data(path)
        .app_data(query);
    for Endpoint { method, path, route } in endpoints() {
        scope = scope.route(&path, route().guard(guard::Method(method)));
    }
    for path in paths() {
        // Reached only by methods that have no route.
        let allow = methods(&path);
        scope = scope.route(&path, web::to(move || wrong_method(allow.clone())));
    }
    scope.default_service(web::to(nothing_here))
}

/// Every route.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let openapi = Endpoint::new(Method::GET, "/openapi.json", || web::to(describe));
    let further = pod::endpoints().chain(events::endpoints()).chain(console::code::endpoints());
    let further = further.chain(directories::endpoints());
    std::iter::once(openapi).chain(ckpt::endpoints()).chain(session::endpoints()).chain(further).collect()
}

fn paths() -> Vec<Cow<'static, str>> {
    let mut paths: Vec<_> = endpoints().into_iter().map(|endpoint| endpoint.path).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// The methods of a path, as a header names them.
fn methods(path: &str) -> String {
    let of_path = endpoints().into_iter().filter(|endpoint| endpoint.path == path);
    of_path.map(|endpoint| endpoint.method.to_string()).collect::<Vec<_>>().join(", ")
}

async fn describe(_: Caller) -> impl Responder {
    HttpResponse::Ok().content_type("application/json").body(OPENAPI)
}

async fn wrong_method(allow: String) -> impl Responder {
    let refused = ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "MethodNotAllowed",
        &"no such method here; see openapi.json",
    );
    refused.customize().insert_header((ALLOW, allow))
}

async fn nothing_here() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "NotFound", &"nothing here; see openapi.json")
}

#[cfg(test)]
pub(crate) mod tests;
