//! What the host takes, and what it says.

use std::sync::Arc;

use actix::Message;
use cofferdam_protocol::host::{HostEvent, HostMethod, Status};
use tokio::sync::mpsc;

use super::failure::HostFailure;

/// A method of the host, sent by an adapter.
#[derive(Clone, Debug)]
pub struct Ask<M>(pub M);

impl<M: HostMethod> Message for Ask<M> {
    type Result = Result<M::Answer, HostFailure>;
}

/// Asks for what anybody on this machine may know. Sent by the HTTP surface, which adds its token's prefix.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Status")]
pub struct GetStatus;

/// Ends all agents, and keeps what was heard of their turns, which were interrupted. Sent by `Cofferdam` when it stops; the
/// reply comes when everything is kept, or after 10 s. No task is held any more after that.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct EndAgents;

/// Listens to events, from now on and until the receiver is dropped. Sent by the event stream. If it names a main session,
/// that session is live meanwhile, and its messages go to this listener.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Subscribe {
    /// The main session this listener shows, if it shows one.
    pub main: Option<MainSession>,
    /// Where events go. A full one loses events, and is told so with the next that fits.
    pub events: mpsc::Sender<Arc<HostEvent>>,
}

/// A conversation outside of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MainSession {
    /// Its id.
    pub id: String,
    /// Where it works, an absolute path; empty if its client does not say.
    pub cwd: String,
    /// Whether it is an agent's own helper and no conversation of a person: then it says nothing about the workspace.
    pub subagent: bool,
}
