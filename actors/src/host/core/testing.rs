//! What the tests of both keepers share: a host that hears events.

use std::path::PathBuf;
use std::time::Duration;

use actix::prelude::*;
use cofferdam_protocol::host::{CoreState, CoreStatus};
use cofferdam_protocol::pod::*;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{CoreDescription, CoreEvent, CoreParts, Describe, Keeper, PodCore, Restart};
use crate::mailbox::Carries;
use crate::pod::{Call, Failure};

/// Stands in for the host.
struct Host(mpsc::UnboundedSender<CoreEvent>);

impl Actor for Host {
    type Context = Context<Self>;
}

impl Handler<CoreEvent> for Host {
    type Result = ();

    fn handle(&mut self, event: CoreEvent, _: &mut Context<Self>) {
        // The test may have ended.
        let _ = self.0.send(event);
    }
}

/// A core, and what the host heard of it.
pub(super) struct Fixture {
    pub(super) core: PodCore,
    events: mpsc::UnboundedReceiver<CoreEvent>,
}

impl Fixture {
    pub(super) fn start(database: PathBuf, keeper: Keeper) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let core =
            super::start(CoreParts { database, legacy: None, keeper }, Host(sender).start().recipient());
        Self { core, events }
    }

    /// What the host hears next.
    pub(super) async fn next(&mut self) -> CoreEvent {
        self.events.recv().await.unwrap()
    }

    /// What the host has heard and was not looked at yet.
    pub(super) fn heard(&mut self) -> Option<CoreEvent> {
        self.events.try_recv().ok()
    }

    /// That it is up, which must be what the host hears next.
    pub(super) async fn up(&mut self) -> (CoreState, Option<Box<Initialized>>) {
        match self.next().await {
            CoreEvent::Up { state, initialized } => (state, initialized),
            other => panic!("{other:?}"),
        }
    }

    /// The same, if all is well.
    pub(super) async fn ready(&mut self) -> CoreState {
        let (state, initialized) = self.up().await;
        assert_eq!((state.status, &*state.message, state.code), (CoreStatus::Ready, "", None));
        assert!(initialized.is_some());
        state
    }

    /// That it is down, which must be what the host hears next.
    pub(super) async fn down(&mut self) -> CoreState {
        match self.next().await {
            CoreEvent::Down { state } => state,
            other => panic!("{other:?}"),
        }
    }

    /// What it says next.
    pub(super) async fn said(&mut self) -> PodEvent {
        match self.next().await {
            CoreEvent::Pod(event) => event,
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn ask<M: Method>(&self, args: Value) -> Result<M::Result, Failure>
    where
        crate::pod::Pod: Carries<Call<M>>,
    {
        self.core.pod.ask(params::<M>(args)).await
    }

    pub(super) async fn restart(&self) -> Result<(), Failure> {
        self.core.control.recipient().send(Restart).await.unwrap()
    }

    pub(super) async fn describe(&self) -> CoreDescription {
        self.core.control.recipient().send(Describe).await.unwrap()
    }

    pub(super) async fn starts(&self) -> u64 {
        self.describe().await.state.starts
    }
}

pub(super) fn params<M: Method>(args: Value) -> M {
    serde_json::from_value(args).unwrap()
}

/// Code and reason of a refusal.
#[track_caller]
pub(super) fn refused<T: std::fmt::Debug>(answer: Result<T, Failure>) -> (PodErrorCode, String) {
    let Failure { code, data, .. } = answer.unwrap_err();
    (code, data["reason"].as_str().unwrap_or_default().to_owned())
}

pub(super) fn unavailable(reason: &str) -> (PodErrorCode, String) {
    (PodErrorCode::CoreUnavailable, reason.to_owned())
}

pub(super) const SECOND: Duration = Duration::from_secs(1);
