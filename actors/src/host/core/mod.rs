//! The pod's state as the host reaches it: one set of mailboxes, whoever is behind them.
//!
//! - `embedded`: the pod's actors in this process;
//! - [`sidecar`]: `isolation-pod-core` in a process of its own, started again when it ends.
//!
//! Both open the database, answer every method of the contract at once with `CORE_UNAVAILABLE` while they cannot, and say
//! with [`CoreEvent`] when that changes.

mod backoff;
mod embedded;
mod failure;
mod handshake;
pub mod sidecar;
mod standing;
#[cfg(test)]
mod testing;

use std::path::PathBuf;

use actix::prelude::{Message, Recipient};
use cofferdam_protocol::host::CoreState;
use cofferdam_protocol::pod::{Initialized, PodEvent};

use crate::mailbox::mailboxes;
use crate::pod::{Failure, Pod};

/// Where the pod's state is kept, and by whom.
#[derive(Clone)]
pub struct CoreParts {
    /// The database, an absolute path.
    pub database: PathBuf,
    /// The predecessor's file, if it may have to be migrated.
    pub legacy: Option<PathBuf>,
    /// Who keeps it.
    pub keeper: Keeper,
}

/// Who keeps the pod's state.
#[derive(Clone)]
pub enum Keeper {
    /// Actors in this process. The sink of events among these parts is replaced.
    Embedded(crate::pod::Parts),
    /// A program of its own.
    Sidecar(sidecar::SidecarParts),
}

/// The way to the pod's state.
#[derive(Clone, Debug)]
pub struct PodCore {
    /// The contract's methods.
    pub pod: Pod,
    /// What only a host asks.
    pub control: CoreControl,
}

mailboxes! {
    /// What a host asks of whoever keeps the pod's state, beside the contract's methods.
    pub struct CoreControl {
        restart: Restart,
        describe: Describe,
    }
}

/// Ends the core and starts it again. The reply comes when it answers again, or says why it does not; it goes on being tried
/// then.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Result<(), Failure>")]
pub struct Restart;

/// Asks how the core is.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "CoreDescription")]
pub struct Describe;

/// How the core is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreDescription {
    /// As everybody may know it.
    pub state: CoreState,
    /// Its program; empty if it runs in this process.
    pub path: String,
    /// The last lines it wrote on stderr, oldest first.
    pub stderr_tail: Vec<String>,
}

/// What becomes of the core. Sent to `HostActor`, in order: `Up` first, then events; after `Down` nothing until the next `Up`
/// but another `Down`, if it was tried again in vain and there is another reason now.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub enum CoreEvent {
    /// It answers. Whatever was known of it before is void.
    Up {
        /// How it is; `Mismatch` if it is of another release and can still be asked.
        state: CoreState,
        /// What `initialize` said; nothing if it refused, as with a mismatch.
        initialized: Option<Box<Initialized>>,
    },
    /// It is gone, and every lease with it.
    Down {
        /// How it is: why, and what comes next.
        state: CoreState,
    },
    /// What it says unasked.
    Pod(PodEvent),
}

/// Starts whoever keeps the pod's state, in the running actix system. It ends when its mailboxes are dropped.
pub fn start(parts: CoreParts, events: Recipient<CoreEvent>) -> PodCore {
    match parts.keeper.clone() {
        Keeper::Embedded(pod) => embedded::start(parts, pod, events),
        Keeper::Sidecar(sidecar) => sidecar::start(parts, sidecar, events),
    }
}
