//! The lease is kept from the actor's first moment to its last, whatever the agent does (spec §5).

use actix::prelude::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use cofferdam_protocol::pod::TaskHeartbeat;

use super::LiveTask;
use super::core_line::is_lost;

impl LiveTask {
    /// Says that the holder lives. One at a time: a core that takes long is not asked more often for it.
    pub(super) fn beat(&mut self, ctx: &mut Context<Self>) {
        if self.beating || self.line.is_closed() {
            return;
        }
        self.beating = true;
        let pod = self.parts.core.pod.clone();
        let (task_id, lease_id) = (self.parts.task_id.clone(), self.parts.lease.clone());
        let beat = async move { pod.ask(TaskHeartbeat { task_id, lease_id }).await };
        ctx.spawn(beat.into_actor(self).map(|answer, actor, ctx| {
            actor.beating = false;
            // Any other failure passes, or the host hears from the core itself what is the matter.
            if answer.is_err_and(|failure| is_lost(&failure)) {
                actor.lose(ctx);
            }
        }));
    }
}
