//! A task that this host holds: one actor from the lease to the last turn of its agent.
//!
//! ```text
//!   Waiting --Begin--> Preparing --ready--> Idle --Tell--> InTurn --turn ended--> Idle
//!      |                   |                  |               |
//!      +-------------------+---- Release -----+---------------+--> gone (agent disposed, heartbeats end)
//! ```

mod messages;

pub(super) use messages::*;

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::{Actor, Context, Recipient};
use cofferdam_protocol::pod::LeaseId;
use cofferdam_storage::clock::{Clock, IdGen};

use super::agent::Preset;
use super::core::PodCore;
use crate::session::Sessions;

/// How often the holder of a task says that it lives (spec §5).
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long after a turn's time the host ends it itself (spec §5).
pub(super) const WATCHDOG: Duration = Duration::from_secs(30);

/// What a live task works with.
#[derive(Clone)]
pub(super) struct LiveParts {
    /// The task's id.
    pub(super) task_id: String,
    /// Who holds the task: this actor and nobody else.
    pub(super) lease: LeaseId,
    /// How its agent is run.
    pub(super) preset: Preset,
    /// The pod's state.
    pub(super) core: PodCore,
    /// The stored conversations.
    pub(super) sessions: Sessions,
    /// What time it is.
    pub(super) clock: Arc<dyn Clock>,
    /// How many times faster than the machine's the clock's monotonic time runs.
    pub(super) faster: u32,
    /// Fresh names.
    pub(super) ids: Arc<dyn IdGen>,
    /// Who hears what becomes of it.
    pub(super) notices: Recipient<LiveNotice>,
}

/// The actor.
pub(super) struct LiveTask {
    parts: LiveParts,
}

impl LiveTask {
    pub(super) fn new(parts: LiveParts) -> Self {
        Self { parts }
    }
}

impl Actor for LiveTask {
    type Context = Context<Self>;
}
