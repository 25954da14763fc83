//! Reading a request's body: no more of it than is allowed, and no longer.

use std::time::Duration;

use actix_web::dev::RequestHead;
use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::web::{Bytes, Payload};
use cofferdam_protocol::host::MAX_BODY;

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("the body is longer than {MAX_BODY} bytes")]
    TooLong,
    #[error("the body did not come in time")]
    TooSlow,
    #[error("the body is not what its headers say")]
    Broken,
}

impl Unreadable {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads a body of at most [`MAX_BODY`] bytes. One that says it is longer is not begun.
pub(crate) async fn read(head: &RequestHead, payload: Payload, time: Duration) -> Result<Bytes, Unreadable> {
    let says =
        head.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if says.is_some_and(|length| length > MAX_BODY as u64) {
        return Err(Unreadable::TooLong);
    }
    match tokio::time::timeout(time, payload.to_bytes_limited(MAX_BODY)).await {
        Ok(Ok(Ok(body))) => Ok(body),
        Ok(Ok(Err(_))) => Err(Unreadable::Broken),
        Ok(Err(_)) => Err(Unreadable::TooLong),
        Err(_) => Err(Unreadable::TooSlow),
    }
}
