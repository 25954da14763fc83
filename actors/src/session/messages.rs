//! What the session actors take. Replies are data or the wire's error object.

use std::path::PathBuf;
use std::sync::Arc;

use actix::Message;
use cofferdam_protocol::session::{
    ClearRequest, Envelope, InspectRequest, ListRequest, PrepareClearAllRequest, SessionData, SessionError,
    ValidateRequest,
};
use cofferdam_storage::session::{Config, SessionStore};
use tokio::sync::OwnedMutexGuard;

/// What a management request leads to: the data of its action. Warnings about the settings go to the log.
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

/// A page of a clear-all plan. Sent by the management adapter and the control API. Besides what the request protects, the
/// sessions that are in use in this process are protected: those of the second list, however many.
#[derive(Debug, Message)]
#[rtype(result = "Managed")]
pub struct PrepareClearAll(pub PrepareClearAllRequest, pub Vec<String>);

/// Removes sessions, under the management lease. Sent by the management adapter and the control API. Those in use in this
/// process are protected, as for [`PrepareClearAll`].
#[derive(Debug, Message)]
#[rtype(result = "Managed")]
pub struct ClearSessions(pub ClearRequest, pub Vec<String>);

/// Reads the settings of a workspace and opens its store. Sent at the start of the headless program, and by whoever shows
/// or exports a conversation.
#[derive(Debug, Message)]
#[rtype(result = "Result<Opened, SessionError>")]
pub struct OpenStore {
    /// The workspace's path.
    pub workspace: PathBuf,
    /// Whether the workspace's own settings count.
    pub project_settings: bool,
}

/// A workspace as its settings say.
pub struct Opened {
    /// The settings in effect.
    pub config: Config,
    /// Its store, or why it cannot be used: a conversation that is new does without.
    pub store: Result<Arc<SessionStore>, SessionError>,
}

/// Reads a conversation whole, without secrets. Sent by whoever resumes, shows or exports one.
#[derive(Message)]
#[rtype(result = "Result<Envelope, SessionError>")]
pub struct LoadSession {
    /// Where it is.
    pub store: Arc<SessionStore>,
    /// The conversation, as the user wrote its id.
    pub session_id: String,
}

/// Makes a conversation durable. Sent at the end of a turn. The error is that of an actor that is gone or a store that
/// panicked; whether the conversation was stored, [`Persisted`] says.
#[derive(Message)]
#[rtype(result = "Result<Persisted, SessionError>")]
pub struct PersistSession {
    /// Where it belongs.
    pub store: Arc<SessionStore>,
    /// The conversation.
    pub envelope: Envelope,
}

/// What became of a conversation that was to be made durable.
#[derive(Debug)]
pub struct Persisted {
    /// The conversation, whose generation is that of the file: also after some failures, when only what was to be done
    /// afterwards went wrong.
    pub envelope: Envelope,
    /// Whether everything was done.
    pub result: Result<(), SessionError>,
}

/// Waits until nobody else manages sessions. Sent by whoever is about to select, clear or activate one.
#[derive(Debug, Message)]
#[rtype(result = "ManagementLease")]
pub struct AcquireLease;

/// The right to manage sessions: one at a time, handed on in the order of asking. It ends when this is dropped.
#[derive(Debug)]
pub struct ManagementLease(
    #[expect(dead_code, reason = "what is held is let go when it is dropped")] pub(super) OwnedMutexGuard<()>,
);
