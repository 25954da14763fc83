//! What the host remembers of a task: its conversation, the directory its agent keeps, a checkpoint from before each turn, and
//! with these the way back.
//!
//! - `messages`: what is asked of it; `turns`: the files beside the directory, as types;
//! - `heard`: what is heard of a turn, as messages; `envelope`: what a conversation becomes by it; `store`: where it is kept;
//! - `begin`: what is kept before a turn; `rewind`: going back; `trees`: checkpoints of directories;
//! - `tidy`: what goes with a task, and what a host that died has left; `past`: a conversation as a transcript.
//!
//! Whatever is done with one task is done one thing after the other: each work holds the task's slot until its end, also if
//! whoever asked for it does not wait any more. Nothing is remembered here that is not on disk, but for what no disk would
//! take.

mod begin;
mod envelope;
mod heard;
mod messages;
mod past;
mod rewind;
mod store;
#[cfg(test)]
mod tests;
mod tidy;
mod trees;
mod turns;

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use actix::fut::ready;
use actix::prelude::{
    Actor, ActorFutureExt, AsyncContext, Context, Handler, ResponseActFuture, ResponseFuture, WrapFuture,
};
use cofferdam_protocol::host::{EntryKind, TurnList};
use cofferdam_protocol::session::Envelope;
use cofferdam_storage::clock::Clock;
use cofferdam_storage::pod::AgentDirs;
use tokio::sync::{Mutex, OwnedMutexGuard};

pub(in crate::host) use heard::Heard;
pub(in crate::host) use messages::*;
pub(in crate::host) use trees::Trees;

use super::failure::HostFailure;
use crate::session::Sessions;

/// How many requests may wait.
const MAILBOX: usize = 4096;

/// What the memory works with.
#[derive(Clone)]
pub(in crate::host) struct Kept {
    /// The stored conversations.
    pub(in crate::host) sessions: Sessions,
    /// The directories; nothing: none are kept, and no turns.
    pub(in crate::host) dirs: Option<AgentDirs>,
    /// The checkpoints; nothing: none are taken.
    pub(in crate::host) trees: Option<Trees>,
    /// What time it is.
    pub(in crate::host) clock: Arc<dyn Clock>,
    /// How many times faster than the machine's the clock's monotonic time runs.
    pub(in crate::host) faster: u32,
}

/// What is known of a task that no disk knows.
#[derive(Debug, Default)]
struct Slot {
    /// The turn that runs: what its agent was given.
    open: Option<Option<Arc<Envelope>>>,
    /// The conversation, if neither the store nor the copy could take it.
    unstored: Option<Arc<Envelope>>,
}

/// The actor.
struct MemoryActor {
    kept: Kept,
    slots: HashMap<String, Arc<Mutex<Slot>>>,
}

/// Starts the memory in the running actix system.
pub(in crate::host) fn start(kept: Kept) -> Memory {
    MemoryActor { kept, slots: HashMap::new() }.start().into()
}

impl Actor for MemoryActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

impl MemoryActor {
    /// What is known of a task, for one work at a time.
    fn slot(&mut self, task: &str) -> Arc<Mutex<Slot>> {
        Arc::clone(self.slots.entry(task.to_owned()).or_default())
    }

    /// Does something with a task, after everything that was asked of it before.
    fn work<T, F>(
        &mut self,
        task: &str,
        work: impl FnOnce(Kept, OwnedMutexGuard<Slot>) -> F + 'static,
    ) -> ResponseFuture<T>
    where
        F: Future<Output = T> + 'static,
    {
        let (kept, slot) = (self.kept.clone(), self.slot(task).lock_owned());
        Box::pin(async move { work(kept, slot.await).await })
    }
}

impl Kept {
    /// Does something to the directories, on a thread that may block; nothing if there are none.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&AgentDirs) -> io::Result<T> + Send + 'static,
    ) -> io::Result<Option<T>> {
        let Some(dirs) = self.dirs.clone() else { return Ok(None) };
        match tokio::task::spawn_blocking(move || work(&dirs)).await {
            Ok(done) => done.map(Some),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// How long a span of monotonic time takes on the machine's clock.
    fn real(&self, span: Duration) -> Duration {
        span / self.faster.max(1)
    }

    /// Milliseconds since the epoch.
    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.wall().0 / 1_000_000).unwrap_or(0)
    }
}

/// Does work that takes as long as a conversation is, beside the arbiter, on which every other task is served, too. A panic of
/// it goes on here.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends, and nobody waits any more.
            Err(_) => pending().await,
        },
    }
}

impl Handler<MakeReady> for MemoryActor {
    type Result = ResponseFuture<Remembered>;

    fn handle(&mut self, MakeReady(whose): MakeReady, _: &mut Context<Self>) -> Self::Result {
        self.work(
            whose.task.clone().as_str(),
            |kept, slot| async move { kept.make_ready(&whose, slot).await },
        )
    }
}

impl Handler<BeginTurn> for MemoryActor {
    type Result = ResponseFuture<Result<Begun, HostFailure>>;

    fn handle(&mut self, begin: BeginTurn, _: &mut Context<Self>) -> Self::Result {
        self.work(
            begin.whose.task.clone().as_str(),
            |kept, slot| async move { kept.begin(begin, slot).await },
        )
    }
}

impl Handler<EndTurn> for MemoryActor {
    type Result = ResponseFuture<Vec<String>>;

    fn handle(&mut self, EndTurn { whose, heard }: EndTurn, _: &mut Context<Self>) -> Self::Result {
        self.work(
            whose.task.clone().as_str(),
            |kept, slot| async move { kept.end(&whose, heard, slot).await },
        )
    }
}

impl Handler<ReadPast> for MemoryActor {
    type Result = ResponseFuture<Vec<(EntryKind, String)>>;

    fn handle(&mut self, ReadPast(whose): ReadPast, _: &mut Context<Self>) -> Self::Result {
        self.work(whose.task.clone().as_str(), |kept, slot| async move { kept.past(&whose, slot).await })
    }
}

impl Handler<ListKeptTurns> for MemoryActor {
    type Result = ResponseFuture<Result<TurnList, HostFailure>>;

    fn handle(&mut self, ListKeptTurns(whose): ListKeptTurns, _: &mut Context<Self>) -> Self::Result {
        self.work(
            whose.task.clone().as_str(),
            |kept, slot| async move { kept.list_turns(&whose, slot).await },
        )
    }
}

impl Handler<RewindTo> for MemoryActor {
    type Result = ResponseFuture<Result<WentBack, HostFailure>>;

    fn handle(&mut self, to: RewindTo, _: &mut Context<Self>) -> Self::Result {
        self.work(to.whose.task.clone().as_str(), |kept, slot| async move { kept.rewind_to(to, slot).await })
    }
}

impl Handler<UndoLastRewind> for MemoryActor {
    type Result = ResponseFuture<Result<WentBack, HostFailure>>;

    fn handle(&mut self, undo: UndoLastRewind, _: &mut Context<Self>) -> Self::Result {
        self.work(
            undo.whose.task.clone().as_str(),
            |kept, slot| async move { kept.undo_last(undo, slot).await },
        )
    }
}

impl Handler<ForgetTask> for MemoryActor {
    type Result = ResponseActFuture<Self, Vec<String>>;

    fn handle(&mut self, forget: ForgetTask, _: &mut Context<Self>) -> Self::Result {
        if forget.unless_used && self.slots.contains_key(&forget.task) {
            return Box::pin(ready(Vec::new()));
        }
        let (task, record) = (forget.task.clone(), forget.record);
        let work = self.work(task.as_str(), |kept, slot| async move { kept.forget(forget, slot).await });
        Box::pin(work.into_actor(self).map(move |notes, actor, _| {
            // Unless somebody waits for it, or works on it: that needs the same one.
            if record && actor.slots.get(&task).is_some_and(|slot| Arc::strong_count(slot) == 1) {
                actor.slots.remove(&task);
            }
            notes
        }))
    }
}

impl Handler<Tidy> for MemoryActor {
    type Result = ResponseFuture<Vec<String>>;

    fn handle(&mut self, Tidy { tasks, all }: Tidy, ctx: &mut Context<Self>) -> Self::Result {
        let slots = tasks.into_iter().map(|whose| (self.slot(whose.task.as_str()), whose)).collect();
        let (kept, forget) = (self.kept.clone(), ctx.address().recipient());
        Box::pin(async move { kept.tidy(slots, all, forget).await })
    }
}

impl Handler<Finish> for MemoryActor {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: Finish, _: &mut Context<Self>) -> Self::Result {
        let slots: Vec<_> = self.slots.values().map(|slot| Arc::clone(slot).lock_owned()).collect();
        Box::pin(async move {
            for slot in slots {
                drop(slot.await);
            }
        })
    }
}
