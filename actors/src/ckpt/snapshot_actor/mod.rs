//! The registry of workspaces: routes every request, and answers from memory what memory knows.
//!
//! One file per concern: [`find`] which workspace a client means, [`mod@write`] how a write gets its turn, [`repeats`]
//! what happens to a request that comes twice, [`schedule`] what happens by itself; the others answer messages.

mod checkpoint;
mod config;
mod delete;
mod find;
mod init;
mod list;
mod reads;
mod recover;
mod registry;
mod repeats;
mod rollback;
mod schedule;
mod status;
mod trash;
mod write;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use actix::fut;
use actix::prelude::*;
use cofferdam_storage::ckpt::config::Config;
use cofferdam_storage::ckpt::{Error, FsUsage, WorkspaceState};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::spawn_blocking;

use super::collector::{Collect, CollectorActor};
use super::failure::{Failure, RoutingError};
use super::keeper_actor::{KeeperActor, LookAgain};
use super::mailboxes::Ckpt;
use super::path_locks::PathLocks;
use super::workspace_actor::{View, WorkspaceActor, Writer};
use super::{Parts, blocking, messages};
use registry::Registry;
use repeats::Repeats;

/// Requests under way that do not end at once; further ones are refused.
const MAX_REQUESTS: usize = 512;
/// Comparisons and the like that read packs or trees at the same time; further ones wait.
const MAX_READS: usize = 4;
/// Messages that wait to be looked at.
const MAILBOX: usize = 256;

/// What an answer takes: a future that the actor polls and that sees the actor whenever it goes on.
type Step<T> = ResponseActFuture<SnapshotActor, Result<T, Failure>>;

/// Makes the actor of one workspace. Tests put a probe in its place.
type MakeWriter = Box<dyn Fn(View) -> Writer>;

/// Owns the registry, the settings and the schedules.
pub(super) struct SnapshotActor {
    parts: Parts,
    make_writer: MakeWriter,
    registry: Registry,
    /// So that two requests for a new path give one registration.
    init_locks: PathLocks,
    settings: Config,
    /// Two reloads at once must not end with the older one's settings.
    reloading: Arc<Mutex<()>>,
    repeats: Repeats,
    /// Monotonic time of the start, for the uptime.
    started: Duration,
    usage: FsUsage,
    usage_is_being_read: bool,
    collector: Recipient<Collect>,
    keeper: Recipient<LookAgain>,
    timers: schedule::Timers,
    room: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    checks: Arc<Semaphore>,
    /// New trees are read one at a time: it is work ahead of time, and must not be in anybody's way.
    primes: Arc<Semaphore>,
}

/// Reads what is on disk and starts the actors.
pub(super) async fn start(parts: Parts) -> Result<Ckpt, Error> {
    let (backend, source) = (Arc::clone(&parts.backend), Arc::clone(&parts.config));
    let load = move || -> Result<_, Error> {
        let settings = source.load().unwrap_or_else(|error| {
            tracing::warn!(%error, "the configuration cannot be used; the defaults are in effect");
            Config::default()
        });
        let usage = backend.usage().unwrap_or_else(|error| {
            tracing::warn!(%error, "the space of the store's filesystem is not known");
            FsUsage::default()
        });
        Ok((backend.workspaces()?, backend.kept()?, settings, usage))
    };
    let (states, kept, settings, usage) =
        spawn_blocking(load).await.map_err(|error| Error::Catalog(format!("cannot be read: {error}")))??;
    let collector = CollectorActor::new(Arc::clone(&parts.backend)).start().recipient();
    let (backend, clock) = (Arc::clone(&parts.backend), Arc::clone(&parts.clock));
    let make_writer = Box::new(move |view| {
        Writer::from(WorkspaceActor::new(Arc::clone(&backend), Arc::clone(&clock), view).start())
    });
    let keeper = KeeperActor::new(Arc::clone(&parts.backend), collector.clone(), kept).start();
    let look_again = keeper.clone().recipient();
    let actor = SnapshotActor::new(parts, make_writer, collector, look_again, settings, usage, states);
    Ok(Ckpt::from((actor.start(), keeper)))
}

impl SnapshotActor {
    fn new(
        parts: Parts,
        make_writer: MakeWriter,
        collector: Recipient<Collect>,
        keeper: Recipient<LookAgain>,
        settings: Config,
        usage: FsUsage,
        states: Vec<WorkspaceState>,
    ) -> Self {
        let mut registry = Registry::default();
        for state in states {
            registry.register(state, &make_writer);
        }
        Self {
            started: parts.clock.monotonic(),
            parts,
            make_writer,
            registry,
            init_locks: PathLocks::default(),
            settings,
            reloading: Arc::default(),
            repeats: Repeats::default(),
            usage,
            usage_is_being_read: false,
            collector,
            keeper,
            timers: schedule::Timers::default(),
            room: Arc::new(Semaphore::new(MAX_REQUESTS)),
            reads: Arc::new(Semaphore::new(MAX_READS)),
            checks: Arc::new(Semaphore::new(1)),
            primes: Arc::new(Semaphore::new(1)),
        }
    }

    /// Answers a request that does not end at once, if there is room for it.
    fn serve<T: 'static>(&mut self, answer: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        match Arc::clone(&self.room).try_acquire_owned() {
            Ok(place) => Box::pin(answer(self).map(move |result, _, _| {
                drop(place);
                result
            })),
            Err(_) => refuse(RoutingError::Overloaded),
        }
    }
}

impl Actor for SnapshotActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
        self.arm_timers(ctx);
    }
}

/// An answer that is known already.
fn done<T: 'static>(answer: T) -> Step<T> {
    Box::pin(fut::ready(Ok(answer)))
}

/// A refusal.
fn refuse<T: 'static>(failure: impl Into<Failure>) -> Step<T> {
    Box::pin(fut::ready(Err(failure.into())))
}
