//! What the recovery actor takes. All are sent by the client's front end.
//!
//! Workspaces are canonical paths: they are compared as they are.

use actix::Message;
use cofferdam_protocol::session::Summary;

use super::core::{ClearPlan, ClearReport};
use super::error::ClientError;
use super::observer::{RunObserver, TurnEnd};
use super::state::{Attempt, Snapshot};
use super::verdict::Verdict;

/// Chooses the session that the next turn in its workspace resumes, once the core has found it in order. Holds the
/// management lease. Turns that run lose what they own, however this ends.
#[derive(Debug, Message)]
#[rtype(result = "Result<Summary, ClientError>")]
pub struct Select {
    /// The workspace.
    pub workspace: String,
    /// The session.
    pub session_id: String,
}

/// Asks what a removal of everything would remove; the sessions in use are protected. Holds the management lease.
#[derive(Debug, Message)]
#[rtype(result = "Result<ClearPlan, ClientError>")]
pub struct PrepareClearAll {
    /// The workspace.
    pub workspace: String,
}

/// Removes sessions, but for those in use. Holds the management lease from before these are looked up until the last
/// request of it is answered.
#[derive(Debug, Message)]
#[rtype(result = "Result<Cleared, ClientError>")]
pub struct Clear {
    /// The workspace.
    pub workspace: String,
    /// Which, in which order.
    pub session_ids: Vec<String>,
}

/// What became of the sessions that were to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// In use, and therefore never asked for; in the order given.
    pub protected: Vec<String>,
    /// What the core did with the others.
    pub report: ClearReport,
}

/// Forgets both the chosen and the active session, and takes from every running turn what it owns. The reply is the
/// session that was given up, if there was one. Holds the management lease.
#[derive(Debug, Message)]
#[rtype(result = "Result<Option<String>, ClientError>")]
pub struct StartFresh;

/// A turn begins, and from here on is the only one that may change anything.
#[derive(Debug, Message)]
#[rtype(result = "Result<Attempt, ClientError>")]
pub struct BeginTurn {
    /// Its workspace.
    pub workspace: String,
    /// Whether it may resume a session. If not, the chosen one stays chosen.
    pub resume: bool,
}

/// A turn has ended, and everything it said was parsed. The reply says whether the user may see its last event, so
/// wait for it before you deliver that, and before the next turn begins. A turn that makes a session active waits for the
/// management lease.
#[derive(Debug, Message)]
#[rtype(result = "Result<Verdict, ClientError>")]
pub struct FinishTurn {
    /// What [`BeginTurn`] gave.
    pub attempt: Attempt,
    /// What it said.
    pub run: RunObserver,
    /// How it ended. One whose provider could not be started ended, too, and said nothing.
    pub end: TurnEnd,
}

/// Asks what is so now. Waits for nobody.
#[derive(Debug, Message)]
#[rtype(result = "Result<Snapshot, ClientError>")]
pub struct GetSnapshot;
