//! A client of `isolation-pod-core`: a process of its own, one line for each request, and as many for answers and events.
//!
//! ```text
//!   Waiting --time is up--> Starting --initialize answered--> Up --Restart--> Ending
//!      ^                       |                               |                |
//!      +------- it failed -----+------- it has ended ----------+     ended: Starting again
//! ```
//!
//! - `client`: the actor, which owns these phases and the calls that wait;
//! - `attend`: a task for each process: starts it, writes, listens, sees to its end; `child` is the process;
//! - `calls`: requests on their way; `frame`: what a line says; `tail`: the end of what it writes on stderr.

mod attend;
mod calls;
mod child;
mod client;
mod frame;
mod tail;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use actix::prelude::{Actor, Recipient};

use super::{CoreControl, CoreEvent, CoreParts, PodCore};
use client::SidecarClient;

/// How a sidecar is found and spoken to.
#[derive(Clone, Debug)]
pub struct SidecarParts {
    /// Its program.
    pub program: PathBuf,
    /// Where its host keeps files of its own, to which nothing is exported.
    pub state_dir: Option<PathBuf>,
    /// How long an answer may take, in the machine's time; those about exports and about removing files may take as long
    /// as they do.
    pub patience: Duration,
    /// How many times faster than the machine's the clock's monotonic time runs: 1 but in tests. Waits between attempts
    /// are so much shorter; a process takes as long as it does.
    pub faster: u32,
}

impl SidecarParts {
    /// How long an answer may take unless said otherwise.
    pub const PATIENCE: Duration = Duration::from_secs(30);

    /// What this program is spoken to with.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), state_dir: None, patience: Self::PATIENCE, faster: 1 }
    }
}

/// Starts it, and starts it again whenever it ends.
pub(super) fn start(parts: CoreParts, sidecar: SidecarParts, events: Recipient<CoreEvent>) -> PodCore {
    let client = SidecarClient::new(parts, sidecar, events).start();
    PodCore { pod: (client.clone(), client.clone()).into(), control: CoreControl::from(client) }
}
