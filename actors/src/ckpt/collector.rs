//! Reclaims what deleted snapshots leave behind, a little at a time.

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use cofferdam_storage::ckpt::Backend;
use tokio::task::spawn_blocking;

/// About how many bytes of packs one step rewrites.
const BUDGET: u64 = 64 << 20;
/// Between two steps, for everybody else's use of the disk.
const PAUSE: Duration = Duration::from_millis(200);

/// There may be something to reclaim. Sent by `SnapshotActor` after deletes and on a schedule; nobody waits for it.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Collect;

/// Runs collection, one step at a time, until nothing is left to do.
pub(crate) struct CollectorActor {
    backend: Arc<dyn Backend>,
    /// Whether a step is running or the next one is due.
    busy: bool,
    /// Whether there may be more than the running steps saw.
    again: bool,
}

impl CollectorActor {
    /// A collector with nothing to do yet but what the last daemon left undone.
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend, busy: false, again: false }
    }

    fn step(&mut self, ctx: &mut Context<Self>) {
        self.busy = true;
        let backend = Arc::clone(&self.backend);
        let step = spawn_blocking(move || backend.collect(BUDGET));
        ctx.spawn(step.into_actor(self).map(|step, actor, ctx| {
            let more = match step {
                Ok(Ok(more)) => more,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "collection stopped; it goes on at the next occasion");
                    false
                }
                Err(error) => {
                    tracing::error!(%error, "collection stopped; it goes on at the next occasion");
                    false
                }
            };
            if more || std::mem::take(&mut actor.again) {
                ctx.run_later(PAUSE, Self::step);
            } else {
                actor.busy = false;
            }
        }));
    }
}

impl Actor for CollectorActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        // Whoever cannot hand over one more announcement has just handed over the same.
        ctx.set_mailbox_capacity(1);
        ctx.notify(Collect);
    }
}

impl Handler<Collect> for CollectorActor {
    type Result = ();

    fn handle(&mut self, _: Collect, ctx: &mut Context<Self>) {
        if self.busy {
            self.again = true;
        } else {
            self.step(ctx);
        }
    }
}
