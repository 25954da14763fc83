//! Who holds which task.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use cofferdam_protocol::pod::{LeaseId, TaskId};
use cofferdam_storage::clock::Clock;

use super::messages::{AcquireLease, Acquired, CheckLease, CountLeases, Heartbeat, ReleaseLease};
use crate::mailbox::mailboxes;

/// A holder that was not heard of for so long can lose its task to another one (spec §5).
pub(super) const LEASE_LIFE: Duration = Duration::from_secs(30);

mailboxes! {
    /// The way to the leases.
    pub(super) struct Leases {
        acquire: AcquireLease,
        heartbeat: Heartbeat,
        check: CheckLease,
        release: ReleaseLease,
        count: CountLeases,
    }
}

/// Owns the leases. They are not durable: a new process knows none.
pub(super) struct LeaseActor {
    clock: Arc<dyn Clock>,
    leases: HashMap<TaskId, Lease>,
}

struct Lease {
    holder: LeaseId,
    /// Monotonic.
    heard: Duration,
}

impl LeaseActor {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, leases: HashMap::new() }
    }
}

impl Actor for LeaseActor {
    type Context = Context<Self>;
}

impl Handler<AcquireLease> for LeaseActor {
    type Result = Result<Acquired, Duration>;

    fn handle(&mut self, AcquireLease { task, lease }: AcquireLease, _: &mut Context<Self>) -> Self::Result {
        let now = self.clock.monotonic();
        let acquired = match self.leases.get(&task) {
            None => Acquired::Free,
            Some(held) if held.holder == lease => Acquired::Same,
            Some(held) => match LEASE_LIFE.checked_sub(now.saturating_sub(held.heard)) {
                None | Some(Duration::ZERO) => Acquired::TakenOver,
                Some(left) => return Err(left),
            },
        };
        self.leases.insert(task, Lease { holder: lease, heard: now });
        Ok(acquired)
    }
}

impl Handler<Heartbeat> for LeaseActor {
    type Result = bool;

    fn handle(&mut self, Heartbeat { task, lease }: Heartbeat, _: &mut Context<Self>) -> bool {
        let now = self.clock.monotonic();
        match self.leases.get_mut(&task).filter(|held| held.holder == lease) {
            Some(held) => {
                held.heard = now;
                true
            }
            None => false,
        }
    }
}

impl Handler<CheckLease> for LeaseActor {
    type Result = Option<Duration>;

    fn handle(&mut self, CheckLease { task }: CheckLease, _: &mut Context<Self>) -> Self::Result {
        let now = self.clock.monotonic();
        self.leases.get(&task).map(|held| now.saturating_sub(held.heard))
    }
}

impl Handler<ReleaseLease> for LeaseActor {
    type Result = ();

    fn handle(&mut self, ReleaseLease { task }: ReleaseLease, _: &mut Context<Self>) {
        self.leases.remove(&task);
    }
}

impl Handler<CountLeases> for LeaseActor {
    type Result = usize;

    fn handle(&mut self, CountLeases: CountLeases, _: &mut Context<Self>) -> usize {
        self.leases.len()
    }
}

#[cfg(test)]
mod tests;
