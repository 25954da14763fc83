//! Carries requests about stored conversations out, on threads that may wait for a disk.

use std::panic::{AssertUnwindSafe, catch_unwind};

use actix::prelude::*;
use cofferdam_protocol::session::SessionError;
use tokio::task::spawn_blocking;

use super::Parts;
use super::failure::{error_of, internal_error};
use super::lease_actor::Lease;
use super::messages::AcquireLease;
use super::operations::Operation;
use crate::mailbox::Carries;

/// Owns the way to the session stores. Requests do not wait for each other: what must not happen to one conversation at
/// the same time, the store itself keeps apart, since other programs work on it, too.
pub(super) struct SessionStoreActor {
    parts: Parts,
    lease: Lease,
}

impl SessionStoreActor {
    pub(super) fn new(parts: Parts, lease: Lease) -> Self {
        Self { parts, lease }
    }
}

impl Actor for SessionStoreActor {
    type Context = Context<Self>;
}

impl<O: Operation> Handler<O> for SessionStoreActor {
    type Result = ResponseFuture<Result<<O as Operation>::Done, SessionError>>;

    fn handle(&mut self, operation: O, _: &mut Context<Self>) -> Self::Result {
        let parts = self.parts.clone();
        let lease = O::UNDER_LEASE.then(|| self.lease.recipient().send(AcquireLease));
        Box::pin(async move {
            let held = match lease {
                Some(lease) => Some(lease.await.map_err(|_| stopping())?),
                None => None,
            };
            let work = spawn_blocking(move || {
                // It lasts as long as the work, even if nobody waits for that any more.
                let _held = held;
                perform(operation, &parts)
            });
            // Only a runtime that shuts down keeps a blocking task from ending.
            work.await.unwrap_or_else(|_| Err(stopping()))
        })
    }
}

/// Carries a request out on this thread. A panic becomes an error; what the request owned is gone then, and there is
/// nothing else that it could have left half done in memory.
fn perform<O: Operation>(operation: O, parts: &Parts) -> Result<<O as Operation>::Done, SessionError> {
    match catch_unwind(AssertUnwindSafe(|| operation.run(parts))) {
        Ok(done) => done.map_err(|error| error_of(&error)),
        Err(_) => {
            tracing::error!(operation = std::any::type_name::<O>(), "a request about sessions panicked");
            Err(internal_error("the request panicked"))
        }
    }
}

fn stopping() -> SessionError {
    internal_error("the session store is stopping")
}

#[cfg(test)]
mod tests;
