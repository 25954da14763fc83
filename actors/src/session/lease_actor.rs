//! Who may manage sessions: selecting one, removing some, and a turn that makes one active come one after the other.

use std::sync::Arc;

use actix::prelude::*;
use tokio::sync::Mutex;

use super::messages::{AcquireLease, ManagementLease};
use crate::mailbox::mailboxes;

mailboxes! {
    /// The way to the lease.
    pub(super) struct Lease {
        acquire: AcquireLease,
    }
}

/// Owns the management lease.
#[derive(Default)]
pub(super) struct LeaseActor {
    /// Fair: whoever asked first is next.
    lease: Arc<Mutex<()>>,
}

impl Actor for LeaseActor {
    type Context = Context<Self>;
}

impl Handler<AcquireLease> for LeaseActor {
    type Result = ResponseFuture<ManagementLease>;

    fn handle(&mut self, AcquireLease: AcquireLease, _: &mut Context<Self>) -> Self::Result {
        // Whoever does not wait any more drops the reply, and the lease with it.
        let lease = Arc::clone(&self.lease).lock_owned();
        Box::pin(async { ManagementLease(lease.await) })
    }
}

#[cfg(test)]
mod tests;
