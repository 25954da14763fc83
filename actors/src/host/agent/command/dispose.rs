//! `DisposeAgent`: whatever runs for an agent is ended, and the agent forgotten.

use std::sync::Arc;

use actix::prelude::{Context, Handler, ResponseFuture};

use super::CommandBackend;
use super::run::Wanted;
use crate::host::agent::DisposeAgent;

impl Handler<DisposeAgent> for CommandBackend {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, DisposeAgent { task_id }: DisposeAgent, _: &mut Context<Self>) -> Self::Result {
        let Some(agent) = self.agents.get_mut(&task_id) else { return Box::pin(async {}) };
        let Some(work) = agent.work.clone() else {
            self.agents.remove(&task_id);
            return Box::pin(async {});
        };
        agent.disposed = true;
        work.send_replace(Wanted::Dispose);
        // Whoever ran it lets go of the other end when it is over.
        Box::pin(async move { Arc::clone(&work).closed().await })
    }
}
