//! What happens by itself: clean-up, collection, looking after the filesystem's space.

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use cofferdam_storage::peer::Peer;

use super::super::collector::Collect;
use super::super::operations::Clean;
use super::status::MANY_SNAPSHOTS;
use super::write::Turn;
use super::{SnapshotActor, blocking};

/// How often the space of the store's filesystem is asked for, besides after every write.
const USAGE_INTERVAL: Duration = Duration::from_secs(30);
/// How often collection looks for work nobody announced, such as trash whose time is up.
const COLLECT_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The share of the filesystem in use, in percent, above which the log says so.
const NEARLY_FULL: u128 = 90;

/// The timers that are set.
#[derive(Default)]
pub(super) struct Timers(Vec<SpawnHandle>);

impl SnapshotActor {
    /// Sets every timer anew, as the settings say. The first run is one interval away.
    pub(super) fn arm_timers(&mut self, ctx: &mut Context<Self>) {
        for timer in self.timers.0.drain(..) {
            ctx.cancel_future(timer);
        }
        let settings = &self.settings;
        let clean = if settings.auto_cleanup { settings.auto_cleanup_interval_secs } else { 0 };
        let health = settings.health_check_interval_secs;
        let mut every = |interval: Duration, run: fn(&mut Self, &mut Context<Self>)| {
            if !interval.is_zero() {
                self.timers.0.push(ctx.run_interval(interval, run));
            }
        };
        every(Duration::from_secs(clean), Self::clean_all);
        every(Duration::from_secs(health), |actor, _| actor.log_health());
        every(USAGE_INTERVAL, Self::read_usage);
        every(COLLECT_INTERVAL, |actor, _| actor.collect_soon());
    }

    /// Has the collector look for work. It may be dropped: the next one finds the same work.
    pub(super) fn collect_soon(&self) {
        let _ = self.collector.try_send(Collect);
    }

    /// Removes from every workspace what the settings leave no room for.
    fn clean_all(&mut self, ctx: &mut Context<Self>) {
        for id in self.registry.ids() {
            let clean = Clean(self.settings.auto_cleanup_keep.clone());
            let cleaned = self.write_in(Turn::Background, id.clone(), id.to_string(), Peer::own(), clean);
            ctx.spawn(cleaned.map(move |result, actor, _| match result {
                Ok(removed) if removed.is_empty() => {}
                Ok(removed) => {
                    tracing::info!(workspace = %id, removed = removed.len(), "snapshots were cleaned up");
                    actor.collect_soon();
                }
                Err(failure) => tracing::warn!(workspace = %id, %failure, "clean-up failed"),
            }));
        }
    }

    /// Asks for the space of the store's filesystem, on another thread; requests are answered from what was last
    /// heard.
    pub(super) fn read_usage(&mut self, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.usage_is_being_read, true) {
            return;
        }
        let backend = Arc::clone(&self.parts.backend);
        ctx.spawn(blocking(move || backend.usage()).into_actor(self).map(|usage, actor, _| {
            actor.usage_is_being_read = false;
            match usage {
                Ok(usage) => actor.usage = usage,
                Err(failure) => tracing::warn!(%failure, "the space of the store's filesystem is not known"),
            }
        }));
    }

    fn log_health(&self) {
        let (used, total) = (u128::from(self.usage.used), u128::from(self.usage.total));
        if used * 100 > total * NEARLY_FULL {
            tracing::warn!(used, total, "the filesystem that holds the store is nearly full");
        }
        for registered in self.registry.visible_to(&Peer::own()).filter(|one| one.has_many_snapshots()) {
            let (workspace, snapshots) = (&registered.view.workspace.id, registered.view.snapshots.len());
            tracing::warn!(%workspace, snapshots, "more than {MANY_SNAPSHOTS} snapshots; clean up");
        }
    }
}
