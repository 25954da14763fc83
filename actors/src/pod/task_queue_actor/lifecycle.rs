//! `initialize`, `shutdown`, `health`, `diagnostics.get`: the methods that work without a database.

use actix::prelude::*;
use cofferdam_protocol::pod::{DiagnosticsGet, Health, Initialize, Shutdown};

use super::TaskQueueActor;
use crate::pod::call::Call;

impl TaskQueueActor {
    /// Closes the database and answers `shutdown`, if that was asked for. Called when everything is durable.
    pub(super) fn close_if_asked(&mut self, ctx: &mut Context<Self>) {
        let _ = ctx;
        todo!()
    }
}

impl Handler<Call<Initialize>> for TaskQueueActor {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, call: Call<Initialize>, ctx: &mut Context<Self>) -> Self::Result {
        let _ = (call, ctx);
        todo!()
    }
}

impl Handler<Call<Shutdown>> for TaskQueueActor {
    type Result = ();

    fn handle(&mut self, call: Call<Shutdown>, ctx: &mut Context<Self>) {
        let _ = (call, ctx);
        todo!()
    }
}

impl Handler<Call<Health>> for TaskQueueActor {
    type Result = ();

    fn handle(&mut self, call: Call<Health>, _: &mut Context<Self>) {
        let _ = call;
        todo!()
    }
}

impl Handler<Call<DiagnosticsGet>> for TaskQueueActor {
    type Result = ();

    fn handle(&mut self, call: Call<DiagnosticsGet>, ctx: &mut Context<Self>) {
        let _ = (call, ctx);
        todo!()
    }
}
