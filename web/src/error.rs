//! How a failure looks in JSON: the code and the text of the error table, and an HTTP status beside them.

use std::fmt;

use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, Responder, ResponseError};
use cofferdam_actors::ckpt::Failure;
use cofferdam_protocol::ckpt::WsCkptErrorCode as Code;
use cofferdam_protocol::session::{SessionError, SessionErrorCode as SessionCode};
use serde::{Deserialize, Serialize};

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReport {
    /// An error code of the ws-ckpt or the session management protocol, or one of `BadRequest`, `Forbidden`, `NotFound` and `MethodNotAllowed`.
    pub code: String,
    /// For people.
    pub message: String,
}

/// A failure on its way out.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    report: ErrorReport,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &str, message: &(impl fmt::Display + ?Sized)) -> Self {
        Self { status, report: ErrorReport { code: code.to_owned(), message: message.to_string() } }
    }
}

impl From<Failure> for ApiError {
    fn from(Failure { code, message }: Failure) -> Self {
        let status = match code {
            Code::WorkspaceNotFound | Code::SnapshotNotFound => StatusCode::NOT_FOUND,
            Code::InvalidPath => StatusCode::BAD_REQUEST,
            Code::AlreadyInitialized
            | Code::ConfirmationRequired
            | Code::SnapshotAlreadyExists
            | Code::WriteLockConflict => StatusCode::CONFLICT,
            Code::BtrfsError | Code::IoError | Code::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
            Code::DiskSpaceInsufficient => StatusCode::INSUFFICIENT_STORAGE,
        };
        Self { status, report: ErrorReport { code: code.to_string(), message } }
    }
}

impl From<SessionError> for ApiError {
    fn from(SessionError { code, message, .. }: SessionError) -> Self {
        let status = match code {
            SessionCode::InvalidId | SessionCode::InvalidCursor | SessionCode::InvalidRequest => {
                StatusCode::BAD_REQUEST
            }
            SessionCode::NotFound => StatusCode::NOT_FOUND,
            SessionCode::Corrupt
            | SessionCode::IncompatibleVersion
            | SessionCode::ScopeMismatch
            | SessionCode::Conflict
            | SessionCode::ActiveSession => StatusCode::CONFLICT,
            SessionCode::Io => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, report: ErrorReport { code: code.as_str().to_owned(), message } }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.report.message)
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::build(self.status).json(&self.report)
    }
}

impl Responder for ApiError {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        self.error_response()
    }
}
