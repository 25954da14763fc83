//! How the core is, who hears of it, and who waits for it: what both keepers have in common.

use std::time::Duration;

use actix::prelude::Recipient;
use cofferdam_protocol::host::{CoreState, CoreStatus};
use cofferdam_protocol::pod::{Initialized, PodErrorCode, PodEvent};
use tokio::sync::oneshot;

use super::CoreEvent;
use super::backoff::Backoff;
use super::failure::{Refusal, Trouble};
use crate::pod::Failure;

/// How long it must have worked until its next failure counts as the first.
pub(super) const STEADY: Duration = Duration::from_secs(60);

/// Changes only in its keeper's hands.
pub(super) struct Standing {
    state: CoreState,
    events: Recipient<CoreEvent>,
    backoff: Backoff,
    /// Why it is down, as it was told.
    told: Option<Trouble>,
    /// Those who wait for its next start to succeed or to fail.
    waiting: Vec<oneshot::Sender<Result<(), Failure>>>,
}

/// What a core says of itself when it is taken up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// The protocol it speaks; 0: unknown.
    pub(super) protocol: i64,
    /// Its database's schema; 0: unknown.
    pub(super) schema_version: i64,
    /// Its version; empty: unknown.
    pub(super) version: String,
}

impl Standing {
    pub(super) fn new(events: Recipient<CoreEvent>, embedded: bool, faster: u32) -> Self {
        let state = CoreState::starting(embedded);
        Self { state, events, backoff: Backoff::new(faster), told: None, waiting: Vec::new() }
    }

    /// How it is.
    pub(super) fn state(&self) -> &CoreState {
        &self.state
    }

    /// Which start it is, from 1.
    pub(super) fn start(&self) -> u64 {
        self.state.starts
    }

    /// It is started, once more.
    pub(super) fn begin(&mut self) {
        self.state.starts += 1;
        self.lost(CoreStatus::Starting, &Trouble::unavailable("it is being started"));
    }

    /// It is ended, so that it can be started again.
    pub(super) fn end(&mut self) {
        (self.state.status, self.state.message) = (CoreStatus::Starting, RESTARTING.to_owned());
        self.state.code = Some(PodErrorCode::CoreUnavailable);
    }

    /// Its process.
    pub(super) fn runs_as(&mut self, pid: u32) {
        self.state.pid = pid;
    }

    /// It answers. `mismatch` says what keeps tasks from being started, if it is of another release.
    pub(super) fn up(
        &mut self,
        facts: Facts,
        mismatch: Option<Trouble>,
        initialized: Option<Box<Initialized>>,
    ) {
        let Facts { protocol, schema_version, version } = facts;
        (self.state.protocol, self.state.schema_version) = (protocol, schema_version);
        self.state.version = version;
        self.state.status = if mismatch.is_some() { CoreStatus::Mismatch } else { CoreStatus::Ready };
        let (code, message) = mismatch.map(|Trouble { code, message }| (code, message)).unzip();
        (self.state.code, self.state.message) = (code, message.unwrap_or_default());
        tracing::info!(status = ?self.state.status, message = self.state.message, "the core answers");
        self.told = None;
        // Nothing of this may be lost, and the host takes whatever comes.
        self.events.do_send(CoreEvent::Up { state: self.state.clone(), initialized });
        self.answer(&Ok(()));
    }

    /// It says something unasked. Called between `up` and `down` only.
    pub(super) fn says(&self, event: PodEvent) {
        self.events.do_send(CoreEvent::Pod(event));
    }

    /// It is ended as somebody wanted, and will be back at once.
    pub(super) fn down_for_restart(&mut self) {
        self.lost(CoreStatus::Starting, &Trouble::unavailable(RESTARTING));
        self.tell(Trouble::unavailable(RESTARTING));
    }

    /// It is gone, or has not come. Whoever waits for it is told so, unless it is to be started anew at once.
    pub(super) fn down(&mut self, trouble: Trouble) {
        tracing::warn!(code = ?trouble.code, message = trouble.message, "the core is down");
        self.lost(CoreStatus::Down, &trouble);
        self.tell(trouble.clone());
        self.answer(&Err(trouble.into()));
    }

    /// How long to wait until it is tried again.
    pub(super) fn wait(&mut self) -> Duration {
        self.backoff.next()
    }

    /// It has worked for long enough, or somebody wants it now: its next failure counts as the first.
    pub(super) fn steady(&mut self) {
        self.backoff.reset();
    }

    /// Somebody wants to know how its next start ends.
    pub(super) fn expect(&mut self) -> oneshot::Receiver<Result<(), Failure>> {
        let (sender, receiver) = oneshot::channel();
        self.waiting.push(sender);
        receiver
    }

    /// Whether somebody waits for its next start.
    pub(super) fn is_expected(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// What requests are answered while it cannot be asked.
    pub(super) fn refusal(&self) -> Refusal {
        match self.state.status {
            CoreStatus::Down => Refusal::Down(self.state.message.clone()),
            CoreStatus::Starting | CoreStatus::Ready | CoreStatus::Mismatch => Refusal::Starting,
        }
    }

    /// Nothing is known of it any more.
    fn lost(&mut self, status: CoreStatus, trouble: &Trouble) {
        let Trouble { code, message } = trouble.clone();
        (self.state.status, self.state.code, self.state.message) = (status, Some(code), message);
        (self.state.protocol, self.state.schema_version, self.state.pid) = (0, 0, 0);
        self.state.version.clear();
    }

    /// Says that it is down, but not twice the same.
    fn tell(&mut self, trouble: Trouble) {
        if self.told.as_ref() != Some(&trouble) {
            self.events.do_send(CoreEvent::Down { state: self.state.clone() });
            self.told = Some(trouble);
        }
    }

    fn answer(&mut self, how: &Result<(), Failure>) {
        for waiting in self.waiting.drain(..) {
            // Whoever asked may not care any more.
            let _ = waiting.send(how.clone());
        }
    }
}

const RESTARTING: &str = "it is being restarted";
