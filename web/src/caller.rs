//! Who asks, as whoever accepted the connection says.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use cofferdam_storage::peer::Peer;
use cofferdam_storage::sandbox::NOT_SERVED;
use percent_encoding::percent_decode_str;

use crate::access::Sandboxed;
use crate::error::ApiError;

/// The peer in whose name a request is carried out.
pub(crate) struct Caller(pub(crate) Peer);

impl FromRequest for Caller {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let of_request = request.extensions().get::<Peer>().cloned();
        let peer = of_request.or_else(|| request.conn_data::<Peer>().cloned());
        ready(match peer {
            Some(peer) => Ok(Self(peer)),
            None if request.conn_data::<Sandboxed>().is_some() => {
                Err(ApiError::new(StatusCode::FORBIDDEN, "Forbidden", NOT_SERVED))
            }
            None => Err(ApiError::new(StatusCode::FORBIDDEN, "Forbidden", &"it is not known who asks")),
        })
    }
}

/// A caller who may do whatever this process may: its own user, or root.
pub(crate) struct Owner;

impl FromRequest for Owner {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        ready(match Caller::from_request(request, payload).into_inner() {
            Ok(Caller(peer)) if peer.is_privileged() => Ok(Self),
            Ok(_) => {
                Err(ApiError::new(StatusCode::FORBIDDEN, "Forbidden", &"only for this daemon's own user"))
            }
            Err(error) => Err(error),
        })
    }
}

/// Stands before path parameters, which are text: the router puts U+FFFD for bytes that are not, and that would be
/// another name.
pub(crate) struct Utf8Path;

impl FromRequest for Utf8Path {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(match percent_decode_str(request.uri().path()).decode_utf8() {
            Ok(_) => Ok(Self),
            Err(_) => Err(ApiError::new(StatusCode::BAD_REQUEST, "BadRequest", &"the path is not UTF-8")),
        })
    }
}
