//! What the session actors take. Replies are data or the wire's error object.

use std::path::PathBuf;

use actix::Message;
use cofferdam_protocol::session::{
    ClearRequest, Envelope, InspectRequest, ListRequest, PrepareClearAllRequest, SessionData, SessionError,
    ValidateRequest,
};
use cofferdam_storage::session::{Config, SessionStore};
use std::sync::Arc;

/// What a management request leads to: the data of its action, and warnings about the configuration for people.
pub type Managed = Result<SessionData, SessionError>;

/// A page of summaries. Sent by the management adapter and the control API.
#[derive(Debug, Message)]
#[rtype(result = "Managed")]
pub struct ListSessions(pub ListRequest);

/// One summary. Sent by the management adapter and the control API.
#[derive(Debug, Message)]
#[rtype(result = "Managed")]
pub struct InspectSession(pub InspectRequest);

/// Whether a session can be resumed. Sent by the management adapter and the control API.
#[derive(Debug, Message)]
#[rtype(result = "Managed")]
pub struct ValidateSession(pub ValidateRequest);

/// A page of a clear-all plan. Sent by the management adapter and the control API.
#[derive(Debug, Message)]
#[rtype(result = "Managed")]
pub struct PrepareClearAll(pub PrepareClearAllRequest);

/// Removes sessions, under the management lease. Sent by the management adapter and the control API.
#[derive(Debug, Message)]
#[rtype(result = "Managed")]
pub struct ClearSessions(pub ClearRequest);

/// Opens the store of a workspace and, if `resume` names one, a conversation in it. Sent at the start of the headless
/// program, and by whoever shows or exports a conversation.
#[derive(Debug, Message)]
#[rtype(result = "Result<Loaded, SessionError>")]
pub struct LoadSession {
    /// The workspace's path.
    pub workspace: PathBuf,
    /// The conversation, as the user wrote its id.
    pub session_id: String,
}

/// A conversation, and the settings of its workspace.
#[derive(Clone)]
pub struct Loaded {
    /// The store it is from.
    pub store: Arc<SessionStore>,
    /// The conversation, without secrets.
    pub envelope: Envelope,
    /// The settings in effect.
    pub config: Config,
}

/// Makes a conversation durable. Sent at the end of a turn. The reply is the conversation with its new generation.
#[derive(Message)]
#[rtype(result = "Result<Envelope, SessionError>")]
pub struct PersistSession {
    /// Where it belongs.
    pub store: Arc<SessionStore>,
    /// The conversation.
    pub envelope: Envelope,
}

/// Waits until nobody else manages sessions. Sent by whoever is about to select, clear or activate one. The lease ends
/// when the reply is dropped.
#[derive(Debug, Message)]
#[rtype(result = "ManagementLease")]
pub struct AcquireLease;

/// The right to manage sessions. One at a time; handed on in the order of asking.
#[derive(Debug)]
pub struct ManagementLease(pub(super) tokio::sync::OwnedSemaphorePermit);
