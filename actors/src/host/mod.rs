//! The host of isolation pods: who starts agents for tasks, shows the state of everything to people, and hands what an
//! agent found to the conversation it was started from (spec §9).
//!
//! - [`Host`]: the way to the host, a mailbox for each method;
//! - [`core`]: the pod's state as the host reaches it: actors in this process, or a sidecar of its own;
//! - [`agent`]: the agents: what a backend is asked and what it says;
//! - `host_actor`: the one owner of what is shown, of main sessions and of who listens; `live_task`: the one owner of a task
//!   that this host holds, from its lease to its agent's turns; `memory`: what is kept of tasks, and the way back.

pub mod agent;
mod context;
pub mod core;
mod failure;
mod host_actor;
mod live_task;
mod mailboxes;
mod memory;
mod messages;
mod preview;
mod prompt;
mod verdict;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::Actor;
use cofferdam_protocol::host::Compat;
use cofferdam_storage::clock::{Clock, IdGen};
use cofferdam_storage::pod::AgentDirs;

pub use failure::{HostFailure, HostRefusal};
pub use mailboxes::Host;
pub use messages::*;

use crate::ckpt::Ckpt;
use crate::session::Sessions;

/// What the host works with.
#[derive(Clone)]
pub struct Parts {
    /// Where the pod's state is kept, and by whom.
    pub core: core::CoreParts,
    /// The presets to choose from, each with who runs it.
    pub presets: Vec<agent::Preset>,
    /// Wall time for what is shown, monotonic time for everything else.
    pub clock: Arc<dyn Clock>,
    /// How many times faster than the machine's the clock's monotonic time runs: 1 but in tests.
    pub faster: u32,
    /// Ids of tasks, sessions, leases and messages.
    pub ids: Arc<dyn IdGen>,
    /// What the adapters around this host offer.
    pub compat: Compat,
    /// Directories for temporary files, which some agents' own sandboxes leave writable.
    pub temp_dirs: Vec<PathBuf>,
    /// Where what is kept of each task is, with its agent's directory; nothing: neither is kept, and no checkpoint taken.
    pub agents: Option<AgentDirs>,
}

impl Parts {
    /// How long a span of monotonic time takes on the machine's clock.
    fn real(&self, span: Duration) -> Duration {
        span / self.faster.max(1)
    }
}

/// Starts the host and its core in the running actix system. The host takes requests at once, and says of the core that it is
/// starting. Agents get context from the stored conversations, and before each turn there is a checkpoint, if there is a place
/// for what is kept of tasks.
pub fn start(parts: Parts, sessions: Sessions, ckpt: &Ckpt) -> Host {
    let subordinates = host_actor::Subordinates {
        core: Box::new(core::start),
        live_task: Box::new(|parts| live_task::LiveTask::new(parts).start().into()),
    };
    let trees = parts.agents.is_some().then(|| ckpt.into());
    host_actor::HostActor::new(parts, sessions, trees, subordinates).start().into()
}
