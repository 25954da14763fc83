//! The host's methods, each a route: its args are the body, and the answer is that of the contract's API.

use actix_web::http::header::ContentType;
use actix_web::http::{Method, StatusCode};
use actix_web::web::{self, Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use cofferdam_actors::host::{Host, HostRefusal};

use crate::api::Endpoint;
use crate::caller::Owner;
use crate::error::ApiError;
use crate::host::table::{self, Args};

/// Below this, a route for each method.
const PREFIX: &str = "/pod/";

/// The routes of this module.
pub(crate) fn endpoints() -> impl Iterator<Item = Endpoint> {
    table::all().map(|entry| Endpoint::new(Method::POST, format!("{PREFIX}{}", entry.name), || web::to(call)))
}

async fn call(
    _: Owner,
    request: HttpRequest,
    host: Data<Option<Host>>,
    body: Bytes,
) -> Result<HttpResponse, ApiError> {
    let name = request.path().rsplit('/').next().unwrap_or_default();
    let Some(method) = table::all().find(|entry| entry.name == name) else {
        return Err(ApiError::new(StatusCode::NOT_FOUND, "NotFound", "no such method"));
    };
    let host = host.as_ref().as_ref().ok_or(HostRefusal::Unavailable)?;
    let body = (method.ask)(host.clone(), Args::Body(&body)).await?;
    Ok(HttpResponse::Ok().content_type(ContentType::json()).body(body))
}
