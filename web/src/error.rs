//! How a failure looks in JSON: the code and the text of the error table, and an HTTP status beside them.

use std::fmt;

use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, Responder, ResponseError};
use cofferdam_actors::ckpt::Failure;
use cofferdam_actors::host::{HostFailure, HostRefusal};
use cofferdam_protocol::ckpt::WsCkptErrorCode as Code;
use cofferdam_protocol::host::{HostCode, HostErrorCode};
use cofferdam_protocol::pod::PodErrorCode as PodCode;
use cofferdam_protocol::session::{SessionError, SessionErrorCode as SessionCode};
use serde::{Deserialize, Serialize};

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReport {
    /// An error code of the ws-ckpt, the session management or the isolation pod protocol, or one of `BadRequest`,
    /// `Unauthorized`, `Forbidden`, `NotFound`, `MethodNotAllowed`, `PermissionDenied` and
    /// `Busy`.
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

impl From<HostFailure> for ApiError {
    fn from(HostFailure { code, message, .. }: HostFailure) -> Self {
        let status = match code {
            HostErrorCode::Core(code) => status_of_core(code),
            HostErrorCode::Host(HostCode::MainSessionNotLive) => StatusCode::CONFLICT,
            HostErrorCode::Host(HostCode::Forbidden) => StatusCode::FORBIDDEN,
            HostErrorCode::Host(HostCode::Unauthorized) => StatusCode::UNAUTHORIZED,
            HostErrorCode::Host(HostCode::NotFound) => StatusCode::NOT_FOUND,
            HostErrorCode::Host(HostCode::MethodNotAllowed) => StatusCode::METHOD_NOT_ALLOWED,
        };
        Self { status, report: ErrorReport { code: code.word(), message } }
    }
}

impl From<HostRefusal> for ApiError {
    fn from(refusal: HostRefusal) -> Self {
        HostFailure::from(refusal).into()
    }
}

fn status_of_core(code: PodCode) -> StatusCode {
    match code {
        PodCode::BadRequest | PodCode::BadSubdir | PodCode::PathOutside | PodCode::TargetInsideSandbox => {
            StatusCode::BAD_REQUEST
        }
        PodCode::UnknownMethod | PodCode::TaskNotFound | PodCode::ExportNotFound | PodCode::FileNotFound => {
            StatusCode::NOT_FOUND
        }
        PodCode::StaleLease
        | PodCode::NoSandboxRoot
        | PodCode::BadRoot
        | PodCode::RootProtected
        | PodCode::TaskBusy
        | PodCode::TaskRunning
        | PodCode::TaskNotResumable
        | PodCode::ExportDisabled
        | PodCode::UndoConflict
        | PodCode::LegacyReadonly
        | PodCode::ConfigInvalid => StatusCode::CONFLICT,
        PodCode::ExportLimit | PodCode::FileTooLarge | PodCode::BinaryFile => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        PodCode::DbError | PodCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        PodCode::CoreUnavailable | PodCode::ProtocolMismatch | PodCode::SchemaMismatch => {
            StatusCode::SERVICE_UNAVAILABLE
        }
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
