//! How every failure reaches the host's envelope: the one table from what went wrong to a stable code and a text.

use cofferdam_protocol::host::{HostCode, HostErrorCode};
use cofferdam_protocol::pod::PodErrorCode as Code;
use serde_json::Value;

use crate::pod::Failure;

/// Why a request was not carried out, as a client is told.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct HostFailure {
    /// Which kind.
    pub code: HostErrorCode,
    /// For people; what happened and what to do next.
    pub message: String,
    /// What belongs to it; `null` if nothing does.
    pub data: Value,
}

/// What the host refuses itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostRefusal {
    /// The host is stopping, or has too much to do.
    #[error("the host is stopping or busy; try again")]
    Unavailable,
    /// No such method.
    #[error("no such method: {0}")]
    UnknownMethod(String),
    /// The request makes no sense, whatever the state.
    #[error("{0}")]
    BadRequest(String),
    /// The core is of another release, or not there: why, as `CoreState` says it.
    #[error("{message}")]
    Core {
        /// Its code.
        code: Code,
        /// For people.
        message: String,
    },
    /// No such task.
    #[error("no such task: {0}")]
    TaskNotFound(String),
    /// The task's agent cannot be had again.
    #[error("{0}")]
    NotResumable(String),
    /// The task is in a turn.
    #[error("{0}")]
    TaskBusy(String),
    /// The task's agent did not end in time.
    #[error("{0}")]
    TaskRunning(String),
    /// The configuration does not let a task start.
    #[error("{0}")]
    Config(String),
    /// Nobody would read a message to the main session.
    #[error("the main session {0} has no client; attach it first: cofferdam main attach {0}")]
    MainSessionNotLive(String),
    /// Something of ours went wrong.
    #[error("internal error: {0}; the log says more")]
    Internal(String),
}

impl From<HostRefusal> for HostFailure {
    fn from(refusal: HostRefusal) -> Self {
        let message = refusal.to_string();
        let code = match refusal {
            HostRefusal::Unavailable => Code::CoreUnavailable.into(),
            HostRefusal::UnknownMethod(_) => Code::UnknownMethod.into(),
            HostRefusal::BadRequest(_) => Code::BadRequest.into(),
            HostRefusal::Core { code, .. } => code.into(),
            HostRefusal::TaskNotFound(_) => Code::TaskNotFound.into(),
            HostRefusal::NotResumable(_) => Code::TaskNotResumable.into(),
            HostRefusal::TaskBusy(_) => Code::TaskBusy.into(),
            HostRefusal::TaskRunning(_) => Code::TaskRunning.into(),
            HostRefusal::Config(_) => Code::ConfigInvalid.into(),
            HostRefusal::MainSessionNotLive(_) => HostCode::MainSessionNotLive.into(),
            HostRefusal::Internal(_) => Code::Internal.into(),
        };
        Self { code, message, data: Value::Null }
    }
}

impl From<Failure> for HostFailure {
    fn from(Failure { code, message, data }: Failure) -> Self {
        Self { code: code.into(), message, data }
    }
}
