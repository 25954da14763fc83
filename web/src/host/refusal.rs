//! What HTTP itself refuses: the one table from why to a status, a code and a text.

use actix_web::http::header::ALLOW;
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpResponse, HttpResponseBuilder};
use cofferdam_protocol::host::{BadBody, HostCode, HostErrorCode, failure_body};
use cofferdam_protocol::pod::PodErrorCode;
use serde_json::Value;

use super::body::Unreadable;
use crate::access::Foreign;

/// Why a request was not carried out, and not even looked at by the host.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Foreign(#[from] Foreign),
    #[error("nothing here")]
    NotFound,
    #[error("use {0}")]
    Method(Method),
    #[error("the token in x-ipp-token is missing or wrong; ask for it again")]
    Token,
    #[error("this page is not authenticated; sign in first")]
    Unauthenticated,
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error(transparent)]
    Malformed(BadBody),
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::Foreign(_) | Self::Token => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Unreadable(unreadable) => unreadable.status(),
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
        }
    }

    fn code(&self) -> HostErrorCode {
        match self {
            Self::Foreign(_) | Self::Token => HostCode::Forbidden.into(),
            Self::NotFound => HostCode::NotFound.into(),
            Self::Method(_) => HostCode::MethodNotAllowed.into(),
            Self::Unauthenticated => HostCode::Unauthorized.into(),
            Self::Unreadable(_) | Self::Malformed(_) => PodErrorCode::BadRequest.into(),
        }
    }

    /// The answer.
    pub(crate) fn into_response(self) -> HttpResponse {
        let mut response = HttpResponseBuilder::new(self.status());
        if let Self::Method(allowed) = &self {
            response.insert_header((ALLOW, allowed.as_str()));
        }
        super::json(&mut response, failure_body(self.code(), &self.to_string(), &Value::Null))
    }
}
