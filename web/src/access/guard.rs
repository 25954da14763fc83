//! What stands before every route on TCP.

use actix_web::Error;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Payload, RequestHead, ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use actix_web::http::{ConnectionType, Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::web::{self, Data};
use actix_web::{HttpMessage, ResponseError};
use cofferdam_storage::peer::Peer;
use tokio_util::sync::CancellationToken;

use super::neighbour::{OwnNeighbour, Suspect};
use super::unread::Held;
use super::{Access, Foreign, Verdict, own};
use crate::console;
use crate::error::ApiError;
use crate::host::body::{self, Unreadable};
use crate::host::{self, Refusal};

/// Says of a request that it came over TCP, where a person's other programs can come from, too.
#[derive(Clone)]
pub(crate) struct OverTcp {
    /// Says that whoever sent it was signed out since.
    pub(crate) signed_out: CancellationToken,
}

/// Refuses what was not meant for this server, and has browsers make nothing of an answer but what it is. Belongs around a
/// whole application, whose data hold the [`Access`], and whose connections go through [`introduce`](super::introduce).
pub async fn guard(
    access: Data<Access>,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let body = Held::new(&mut request);
    let stranger = request.conn_data::<OwnNeighbour>().is_none();
    let mut response = match may_ask(&access, &request, stranger).await {
        Ok(()) => next.call(request).await?.map_into_boxed_body(),
        Err(Foreign::Origin) if own::is_link_to_a_page(request.head()) => {
            request.into_response(console::elsewhere())
        }
        Err(foreign) if request.uri().path().starts_with("/api/v1/") => {
            let refusal = ApiError::new(StatusCode::FORBIDDEN, "Forbidden", &foreign);
            request.into_response(refusal.error_response())
        }
        Err(foreign) => request.into_response(Refusal::from(foreign).into_response()),
    };
    restrict(response.headers_mut());
    if stranger {
        // Nobody else's program keeps a connection.
        response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
    Ok(body.until_sent(response))
}

/// Whether a request was meant for this server, and comes from whom it serves.
async fn may_ask(access: &Access, request: &ServiceRequest, stranger: bool) -> Result<(), Foreign> {
    access.own.check(request.head())?;
    let suspect = request.conn_data::<Suspect>().cloned();
    if let Some(suspect) = suspect
        && suspect.is_sandboxed().await
    {
        return Err(Foreign::Sandboxed);
    }
    // The status is for everybody on this machine (spec §9).
    match stranger && request.uri().path() != host::STATUS {
        true => Err(Foreign::User),
        false => Ok(()),
    }
}

/// What every answer says to browsers, unless it says something itself. There is no header for other origins: none may read.
fn restrict(headers: &mut HeaderMap) {
    let restrictions = [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in restrictions {
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
}

/// Lets a request to `/api/v1` in that shows the token or comes from an authenticated page, in the name of this process's own
/// user; its body is read first, so that nobody holds a connection by sending it slowly.
pub(crate) async fn admit(
    access: Data<Access>,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let signed_out = access.token.over();
    if let Err(error) = judge(&access, request.head()) {
        return Ok(request.into_response(error.error_response()));
    }
    let payload = request.extract::<web::Payload>().await?;
    match body::read(request.head(), payload, access.body_time).await {
        Ok(body) => request.set_payload(Payload::from(body)),
        Err(unreadable) => return Ok(request.into_response(ApiError::from(unreadable).error_response())),
    }
    if signed_out.is_cancelled() {
        return Ok(request.into_response(unauthorized().error_response()));
    }
    request.extensions_mut().insert(Peer::own());
    request.extensions_mut().insert(OverTcp { signed_out });
    Ok(next.call(request).await?.map_into_boxed_body())
}

fn judge(access: &Access, request: &RequestHead) -> Result<(), ApiError> {
    if access.token.is_shown(request.headers()) {
        return Ok(());
    }
    if access.browser.judge(request) == Verdict::Unknown {
        return Err(unauthorized());
    }
    // A browser adds the cookie whoever asks, but only pages of ours can say that they are.
    if !matches!(request.method, Method::GET | Method::HEAD) && !own::says_its_origin(request) {
        return Err(ApiError::new(StatusCode::FORBIDDEN, "Forbidden", "the page does not say its origin"));
    }
    Ok(())
}

fn unauthorized() -> ApiError {
    let text = "show the token in x-ipp-token, or sign in with the link that the daemon printed";
    ApiError::new(StatusCode::UNAUTHORIZED, "Unauthorized", text)
}

impl From<Unreadable> for ApiError {
    fn from(unreadable: Unreadable) -> Self {
        Self::new(unreadable.status(), "BadRequest", &unreadable)
    }
}
