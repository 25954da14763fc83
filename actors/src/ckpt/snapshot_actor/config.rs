//! Answers Config and ReloadConfig.

use std::sync::Arc;

use actix::prelude::*;
use cofferdam_protocol::ckpt::ConfigReport;

use super::super::shown::shown_path;
use super::messages::{GetConfig, ReloadConfig};
use super::{RoutingError, SnapshotActor, Step, blocking};

impl Handler<GetConfig> for SnapshotActor {
    type Result = MessageResult<GetConfig>;

    fn handle(&mut self, _: GetConfig, _: &mut Context<Self>) -> Self::Result {
        let installation = &self.parts.installation;
        MessageResult(Ok(ConfigReport {
            mount_path: shown_path(&installation.state_dir),
            socket_path: shown_path(&installation.socket),
            log_level: installation.log_level.clone(),
            auto_cleanup: self.settings.auto_cleanup,
            auto_cleanup_keep: self.settings.auto_cleanup_keep.clone(),
            auto_cleanup_interval_secs: self.settings.auto_cleanup_interval_secs,
            health_check_interval_secs: self.settings.health_check_interval_secs,
            // There is no image.
            img_size: 0,
            img_max_percent: 0.0,
        }))
    }
}

impl Handler<ReloadConfig> for SnapshotActor {
    type Result = Step<()>;

    fn handle(&mut self, _: ReloadConfig, _: &mut Context<Self>) -> Self::Result {
        self.serve(|actor| {
            let (source, reloading) = (Arc::clone(&actor.parts.config), Arc::clone(&actor.reloading));
            let load = async move {
                let turn = reloading.lock_owned().await;
                let load = move || source.load().map_err(|error| RoutingError::Reload(error.to_string()));
                (blocking(load).await, turn)
            };
            Box::pin(load.into_actor(actor).map(|(loaded, turn), actor, ctx| {
                actor.settings = loaded?;
                drop(turn);
                actor.arm_timers(ctx);
                tracing::info!("configuration reloaded");
                Ok(())
            }))
        })
    }
}
