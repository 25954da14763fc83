//! The host stops: agents are ended, and what was heard of them is kept.

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::{Context, Handler, ResponseFuture};
use tokio::time::timeout;

use super::HostActor;
use crate::host::live_task::{LetGo, Release};
use crate::host::memory::Finish;
use crate::host::messages::EndAgents;
use crate::mailbox::Carries;

/// How long that may take.
const STOPPING: Duration = Duration::from_secs(10);

impl Handler<EndAgents> for HostActor {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: EndAgents, _: &mut Context<Self>) -> Self::Result {
        // Without a core no task is held any more, also one that gets a slot now.
        let core = self.core.take();
        for (_, entry) in self.live.take_all() {
            entry.addr.recipient().do_send(Release(LetGo::Stopping));
        }
        let (held, memory) = (Arc::clone(&self.held), self.memory.clone());
        let over = timeout(self.parts.real(STOPPING), async move {
            // Also by those whom a core has forgotten.
            held.closed().await;
            let _ = memory.recipient().send(Finish).await;
        });
        Box::pin(async move {
            if over.await.is_err() {
                tracing::warn!("tasks did not come to an end within 10 s; something of them may not be kept");
            }
            drop(core);
        })
    }
}
