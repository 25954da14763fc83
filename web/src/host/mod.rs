//! The host's surface (spec §9): `/isolation-pod/…`, as a scope for any actix-web application.
//!
//! What is asked first decides what is answered: where the request comes from, the path, the HTTP method, the token, the
//! body's length, the body. What the host itself refuses is a success of HTTP, and `ok` is `false`.

pub(crate) mod body;
mod refusal;
pub(crate) mod table;

use actix_web::http::Method;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_ENCODING, X_CONTENT_TYPE_OPTIONS};
use actix_web::web::{self, Bytes, Data, Payload};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, Scope};
use cofferdam_actors::host::{Host, HostFailure, HostRefusal};
use cofferdam_protocol::host::{ApiRequest, failure_body, success_body};
use flate2::Compression;
use serde::Serialize;

pub(crate) use refusal::Refusal;

use crate::access::{Access, Verdict};
use crate::packed::{pack, unpacks};
use table::Args;

/// The path of the status, which is for everybody on this machine.
pub(crate) const STATUS: &str = "/isolation-pod/status";

/// The contract's three paths.
#[derive(Clone, Copy)]
enum Route {
    Status,
    Bootstrap,
    Api,
}

impl Route {
    /// The route of a path, which is compared as it was sent: nothing is decoded, shortened or completed.
    fn of(path: &str) -> Option<Self> {
        match path {
            STATUS => Some(Self::Status),
            "/isolation-pod/bootstrap" => Some(Self::Bootstrap),
            "/isolation-pod/api" => Some(Self::Api),
            _ => None,
        }
    }

    fn method(self) -> Method {
        match self {
            Self::Status | Self::Bootstrap => Method::GET,
            Self::Api => Method::POST,
        }
    }
}

/// `/isolation-pod` with everything in it. It checks by itself that requests were meant for this server.
pub fn scope(host: Host, access: Data<Access>) -> Scope {
    web::scope("/isolation-pod").app_data(Data::new(host)).app_data(access).default_service(web::to(answer))
}

/// How many bytes of an answer are worth packing, for whoever unpacks them. No answer with a secret is that long.
const LONG: usize = 8 << 10;

async fn answer(request: HttpRequest, body: Payload, host: Data<Host>, access: Data<Access>) -> HttpResponse {
    match carry_out(&request, body, &host, &access).await {
        Ok(body) => {
            let mut response = HttpResponse::Ok();
            let long = body.len() >= LONG && unpacks(request.headers());
            match long.then(|| pack(&body, Compression::fast())).flatten() {
                Some(packed) => json(response.insert_header((CONTENT_ENCODING, "gzip")), packed),
                None => json(&mut response, body),
            }
        }
        Err(refusal) => refusal.into_response(),
    }
}

async fn carry_out(
    request: &HttpRequest,
    body: Payload,
    host: &Host,
    access: &Access,
) -> Result<Bytes, Refusal> {
    access.own.check(request.head())?;
    let route = Route::of(request.uri().path()).ok_or(Refusal::NotFound)?;
    if request.method() != route.method() {
        return Err(Refusal::Method(route.method()));
    }
    match route {
        Route::Status => Ok(status(host, access).await),
        Route::Bootstrap => bootstrap(request, access),
        Route::Api => api(request, body, host, access).await,
    }
}

async fn status(host: &Host, access: &Access) -> Bytes {
    match host.status().await {
        Some(mut status) => {
            status.token_prefix = access.token.prefix();
            success_body(&status)
        }
        None => failed(HostRefusal::Unavailable.into()),
    }
}

fn bootstrap(request: &HttpRequest, access: &Access) -> Result<Bytes, Refusal> {
    #[derive(Serialize)]
    struct Delivered {
        token: String,
    }
    let token = access.token.reveal();
    match access.browser.judge(request.head()) {
        Verdict::Authenticated => Ok(success_body(&Delivered { token })),
        Verdict::Unknown => Err(Refusal::Unauthenticated),
    }
}

async fn api(request: &HttpRequest, body: Payload, host: &Host, access: &Access) -> Result<Bytes, Refusal> {
    let signed_out = access.token.over();
    if !access.token.is_shown(request.headers()) {
        return Err(Refusal::Token);
    }
    let body = body::read(request.head(), body, access.body_time).await?;
    if signed_out.is_cancelled() {
        return Err(Refusal::Token);
    }
    let call = ApiRequest::parse(&body).map_err(Refusal::Malformed)?;
    let Some(method) = table::of_contract(&call.method) else {
        return Ok(failed(HostRefusal::UnknownMethod(call.method).into()));
    };
    Ok((method.ask)(host.clone(), Args::Within(&call)).await.unwrap_or_else(failed))
}

fn failed(HostFailure { code, message, data }: HostFailure) -> Bytes {
    failure_body(code, &message, &data)
}

/// An answer of the contract.
fn json(response: &mut HttpResponseBuilder, body: Bytes) -> HttpResponse {
    response
        .content_type("application/json; charset=utf-8")
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(body)
}

#[cfg(test)]
pub(crate) mod tests;
