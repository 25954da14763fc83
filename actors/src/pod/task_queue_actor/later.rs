//! Work on files beside the queue: requests go on meanwhile, and may be answered before it.

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use tokio::task::spawn_blocking;

use super::batch::Entry;
use super::{State, TaskQueueActor};
use crate::pod::call::Reply;
use crate::pod::failure::Refusal;
use crate::pod::queue::verbs::{Later, Outcome, Then};
use crate::pod::queue::{Effects, Queue};

/// How much of it goes on at a time; more waits.
pub(super) const AT_A_TIME: usize = 8;
/// How long `shutdown` waits for it.
pub(super) const LAST_WAIT: Duration = Duration::from_millis(500);

impl TaskQueueActor {
    /// Begins the work, and answers when it has ended.
    pub(super) fn begin<T: Send + 'static>(
        &mut self,
        Later { holds, work }: Later<T>,
        reply: Reply<T>,
        ctx: &mut Context<Self>,
    ) {
        if let State::Open(open) = &mut self.state {
            open.later += 1;
        }
        let turn = Arc::clone(&self.later_turns).acquire_owned();
        let work = async move {
            let _turn = turn.await;
            // Only a panic or a runtime that shuts down keeps a blocking task from ending.
            spawn_blocking(work).await.unwrap_or(Then::Answer(Err(Refusal::Panicked)))
        };
        ctx.spawn(work.into_actor(self).map(move |then, actor, ctx| {
            if let State::Open(open) = &mut actor.state {
                open.later -= 1;
                holds.iter().for_each(|task| open.queue.let_go(task));
            }
            let entry = match then {
                Then::Answer(answer) => Entry::certain(answer, reply),
                Then::Change(change) => match actor.conclude(change) {
                    Ok((answer, effects)) => Entry::of(Outcome::Done(answer), effects, reply),
                    // What it did to the disk stays, whatever becomes of memory.
                    Err(refusal) => Entry::certain(Err(refusal), reply),
                },
            };
            match &mut actor.state {
                // Before `shutdown`, if that waits.
                State::Open(open) => open.pending.push_back(entry),
                State::Closed | State::Stopped => actor.settle(entry, ctx),
            }
            actor.flush(ctx);
        }));
    }

    /// Changes memory after work on the disk, even if `shutdown` waits for that.
    fn conclude<T>(
        &mut self,
        change: impl FnOnce(&mut Queue, i64) -> Result<T, Refusal>,
    ) -> Result<(T, Effects), Refusal> {
        let at = self.now();
        match &mut self.state {
            State::Open(open) => match open.stale.clone() {
                Some(why) => Err(Refusal::NotSaved(why)),
                None => open.work("work on files", at, change),
            },
            State::Closed | State::Stopped => Err(Refusal::Stopping),
        }
    }
}
