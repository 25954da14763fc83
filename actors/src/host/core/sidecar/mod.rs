//! A client of `isolation-pod-core`: a process of its own, one line for each request, and as many for answers and events.

use std::path::PathBuf;
use std::time::Duration;

use actix::prelude::Recipient;

use super::{CoreEvent, CoreParts, PodCore};

/// How a sidecar is found and spoken to.
#[derive(Clone, Debug)]
pub struct SidecarParts {
    /// Its program.
    pub program: PathBuf,
    /// How long an answer may take; exports may take as long as they do.
    pub patience: Duration,
    /// How many times faster than the machine's the clock's monotonic time runs: 1 but in tests.
    pub faster: u32,
}

/// Starts it, and starts it again whenever it ends.
pub(super) fn start(_parts: CoreParts, _sidecar: SidecarParts, _events: Recipient<CoreEvent>) -> PodCore {
    unimplemented!()
}
