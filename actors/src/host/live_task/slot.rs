//! A task that was resumed has a slot, and needs none as long as nobody tells its agent anything.

use actix::prelude::{Context, Handler, ResponseFuture};
use cofferdam_protocol::pod::TaskSummary;
use tokio::sync::oneshot;

use super::LiveTask;
use super::core_line::Order;
use super::messages::GiveBackSlot;
use super::state::State;

impl Handler<GiveBackSlot> for LiveTask {
    type Result = ResponseFuture<Option<TaskSummary>>;

    fn handle(&mut self, _: GiveBackSlot, ctx: &mut Context<Self>) -> Self::Result {
        let (reply, task) = oneshot::channel();
        if matches!(self.state, State::Idle) {
            self.give_slot_back(Some(reply), ctx);
        }
        Box::pin(async move { task.await.ok().map(|task| *task) })
    }
}

impl LiveTask {
    /// Gives the slot of a task back that was resumed, if no turn has begun since. What the agent is told from now on comes
    /// behind that, and takes one again.
    pub(super) fn give_slot_back(
        &mut self,
        reply: Option<oneshot::Sender<Box<TaskSummary>>>,
        ctx: &mut Context<Self>,
    ) {
        if self.resumed {
            self.tell_core(Order::GiveBack(reply), ctx);
        }
    }
}
