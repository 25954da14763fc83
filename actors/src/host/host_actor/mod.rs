//! The host: what is shown of everything, who is live, who listens.
//!
//! The core's events are authoritative for tasks; what a request answers is only shown to whoever asked. Everything that takes
//! time happens in futures that hold no state, and what came of it is applied when they end.

mod cache;
mod cleanup;
mod core_events;
mod exports;
mod file_work;
mod files;
mod listeners;
mod live;
mod main_sessions;
mod resume;
mod rewind;
mod show;
mod stop;
mod tasks;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use actix::prelude::{Actor, ActorFutureExt, AsyncContext, Context, Recipient, ResponseActFuture};
use cofferdam_protocol::host::CoreStatus;
use cofferdam_protocol::pod::{LeaseId, LogLevel, PodErrorCode};
use tokio::sync::watch;

use super::Parts;
use super::core::{CoreEvent, CoreParts, Keeper, PodCore};
use super::failure::{HostFailure, HostRefusal};
use super::live_task::{LiveParts, LiveTaskAddr};
use super::memory::{self, Kept, Memory, Trees};
use crate::session::Sessions;

use cache::Cache;
use file_work::FileWorks;
use listeners::Listeners;
use live::LiveTasks;
use main_sessions::MainSessions;
use show::Shown;

/// How many requests and events may wait.
const MAILBOX: usize = 4096;

/// An answer that takes time.
type Answering<T> = ResponseActFuture<HostActor, Result<T, HostFailure>>;

/// Starts a core that reports to that mailbox.
type StartCore = Box<dyn Fn(CoreParts, Recipient<CoreEvent>) -> PodCore>;
/// Starts the actor that holds a task.
type StartLiveTask = Box<dyn Fn(LiveParts) -> LiveTaskAddr>;

/// The actors that the host starts.
pub(super) struct Subordinates {
    pub(super) core: StartCore,
    pub(super) live_task: StartLiveTask,
}

/// The actor.
pub(super) struct HostActor {
    parts: Parts,
    subordinates: Subordinates,
    sessions: Sessions,
    /// What is kept of tasks.
    memory: Memory,
    /// What is being done with tasks' files.
    file_works: FileWorks,
    /// Set when the actor starts, since the core talks back to it.
    core: Option<PodCore>,
    /// What is known of tasks, exports, configuration and core.
    cache: Cache,
    /// The tasks this host holds.
    live: LiveTasks,
    /// Listened to by every actor that holds a task, or did and is not done with it.
    held: Arc<watch::Sender<()>>,
    /// Tasks whose requests the core did not answer, with their leases: should it have made them, nobody wants them.
    given_up: HashMap<String, LeaseId>,
    /// Who listens to events.
    listeners: Listeners,
    /// What clients said of conversations outside of this host.
    mains: MainSessions,
    /// Documents that were made, and what the disk looked like then.
    shown: Shown,
}

impl HostActor {
    pub(super) fn new(
        parts: Parts,
        sessions: Sessions,
        trees: Option<Trees>,
        subordinates: Subordinates,
    ) -> Self {
        let cache = Cache::new(matches!(parts.core.keeper, Keeper::Embedded(_)), &parts.core.database);
        let memory = memory::start(Kept {
            sessions: sessions.clone(),
            dirs: parts.agents.clone(),
            trees,
            clock: Arc::clone(&parts.clock),
            faster: parts.faster,
        });
        Self {
            parts,
            subordinates,
            sessions,
            memory,
            file_works: FileWorks::default(),
            core: None,
            cache,
            live: LiveTasks::default(),
            held: Arc::new(watch::Sender::new(())),
            given_up: HashMap::new(),
            listeners: Listeners::default(),
            mains: MainSessions::default(),
            shown: Shown::default(),
        }
    }

    /// The way to the core.
    fn core(&self) -> Result<PodCore, HostFailure> {
        self.core.clone().ok_or_else(|| HostRefusal::Unavailable.into())
    }

    /// Whether tasks can be started: the core is there and of this release.
    fn admits_tasks(&self) -> Result<PodCore, HostFailure> {
        let state = &self.cache.core;
        match state.status {
            CoreStatus::Ready => self.core(),
            CoreStatus::Starting | CoreStatus::Mismatch | CoreStatus::Down => Err(HostRefusal::Core {
                code: state.code.unwrap_or(PodErrorCode::CoreUnavailable),
                message: match state.message.as_str() {
                    "" => "the core is being started; try again in a moment".to_owned(),
                    message => message.to_owned(),
                },
            }
            .into()),
        }
    }

    /// Milliseconds since the epoch.
    fn now(&self) -> i64 {
        self.parts.clock.wall().0 / 1_000_000
    }

    /// Something a person should know.
    fn diagnose(&mut self, level: LogLevel, message: impl Into<String>) {
        let now = self.now();
        self.cache.diagnose(now, level, message.into());
    }
}

impl Actor for HostActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
        let start = &self.subordinates.core;
        self.core = Some(start(self.parts.core.clone(), ctx.address().recipient()));
    }
}

/// An answer that is known already.
fn at_once<T: 'static>(answer: Result<T, HostFailure>) -> Answering<T> {
    Box::pin(actix::fut::ready(answer))
}

/// Does something that needs no state, and applies what came of it.
fn after<F, T, U>(
    work: F,
    apply: impl FnOnce(&mut HostActor, Result<T, HostFailure>, &mut Context<HostActor>) -> Result<U, HostFailure>
    + 'static,
) -> Answering<U>
where
    F: Future<Output = Result<T, HostFailure>> + 'static,
    T: 'static,
    U: 'static,
{
    Box::pin(
        actix::fut::wrap_future::<_, HostActor>(work).map(move |done, actor, ctx| apply(actor, done, ctx)),
    )
}
