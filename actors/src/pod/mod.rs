//! Tasks of the isolation pod: one actor that owns queue and database, one that knows who holds what, one that knows
//! what time is up, one that exports files.

mod call;
mod deadline_ticker;
mod export_actor;
mod failure;
mod lease_actor;
mod mailboxes;
mod messages;
mod queue;
mod task_queue_actor;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::{Actor, Addr, AsyncContext};
use cofferdam_protocol::pod::{LogLevel, PodEvent};
use cofferdam_storage::clock::{Clock, IdGen};
use cofferdam_storage::disk::Disk;
use cofferdam_storage::pod::Surroundings;

pub use call::{Call, Reply};
pub use failure::{Failure, Refusal};
pub use mailboxes::Pod;
pub use messages::*;

use deadline_ticker::DeadlineTicker;
use export_actor::ExportActor;
use lease_actor::LeaseActor;
use task_queue_actor::TaskQueueActor;

/// Takes events. Called on the actors' thread, between the answers of requests, in the order in which things happened;
/// must not block.
pub trait EventSink: Send + Sync + 'static {
    /// Takes one event.
    fn event(&self, event: PodEvent);
}

/// What the pod's actors decide about the program's log.
pub trait LogControl: Send + Sync + 'static {
    /// Says how much is logged from now on.
    fn set_level(&self, level: LogLevel);
    /// Says where the database is, beside which the log belongs; returns where it is, or nothing if it cannot be there.
    fn open_beside(&self, database: &Path) -> Option<PathBuf>;
}

/// What the pod's actors work with.
#[derive(Clone)]
pub struct Parts {
    /// The way to the disk.
    pub disk: Disk,
    /// Wall time for what is shown, monotonic time for leases and deadlines.
    pub clock: Arc<dyn Clock>,
    /// Where the ids of exports come from.
    pub ids: Arc<dyn IdGen>,
    /// How often deadlines are looked at; at most 1 s.
    pub tick: Duration,
    /// Who hears of events.
    pub events: Arc<dyn EventSink>,
    /// What no sandbox root may contain.
    pub surroundings: Surroundings,
    /// The program's log.
    pub logs: Arc<dyn LogControl>,
}

/// Starts the pod's actors in the running actix system. They take `initialize` first, and end after `shutdown`.
pub fn start(parts: Parts) -> Pod {
    assemble(parts).1
}

fn assemble(parts: Parts) -> (Addr<TaskQueueActor>, Pod) {
    let leases = LeaseActor::new(Arc::clone(&parts.clock)).start();
    let queue = TaskQueueActor::create(|ctx| {
        let ticker = DeadlineTicker::new(Arc::clone(&parts.clock), parts.tick, ctx.address().into()).start();
        TaskQueueActor::new(parts.clone(), leases.into(), ticker.into())
    });
    let exports = ExportActor::new(parts, queue.clone().into()).start();
    (queue.clone(), (queue, exports).into())
}
