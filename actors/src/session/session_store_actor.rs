//! Carries requests about stored conversations out, on threads that may wait for a disk.

use actix::prelude::*;

use super::Parts;
use super::lease_actor::Lease;
use super::messages::*;

/// Owns the session stores.
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

macro_rules! unfinished {
    ($($message:ty),+) => {$(
        impl Handler<$message> for SessionStoreActor {
            type Result = ResponseFuture<<$message as Message>::Result>;
            fn handle(&mut self, _: $message, _: &mut Context<Self>) -> Self::Result {
                let _ = (&self.parts, &self.lease);
                todo!()
            }
        }
    )+};
}
unfinished!(
    ListSessions,
    InspectSession,
    ValidateSession,
    PrepareClearAll,
    ClearSessions,
    LoadSession,
    PersistSession
);
