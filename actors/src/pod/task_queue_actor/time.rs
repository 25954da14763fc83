//! What comes with time: deadlines, and the pace at which texts are told.

use actix::prelude::*;
use cofferdam_protocol::pod::{PodEvent, TaskId};

use super::TaskQueueActor;
use crate::pod::messages::{DeadlineExpired, GraceOver};

impl TaskQueueActor {
    /// Tells the host.
    pub(super) fn emit(&mut self, event: PodEvent) {
        self.parts.events.event(event);
    }

    /// The last text of a task has changed: the host hears of it at most every 250 ms, and of the last one for sure.
    pub(super) fn text_changed(&mut self, task: TaskId, ctx: &mut Context<Self>) {
        let _ = (task, ctx);
        todo!()
    }
}

impl Handler<DeadlineExpired> for TaskQueueActor {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, expired: DeadlineExpired, ctx: &mut Context<Self>) -> Self::Result {
        let _ = (expired, ctx);
        todo!()
    }
}

impl Handler<GraceOver> for TaskQueueActor {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, over: GraceOver, ctx: &mut Context<Self>) -> Self::Result {
        let _ = (over, ctx);
        todo!()
    }
}
