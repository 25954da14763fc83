//! What comes with time: deadlines, and the pace at which texts are told.

use std::time::Duration;

use actix::fut;
use actix::prelude::*;
use cofferdam_protocol::pod::{LogLevel, PodEvent, TaskId};

use super::batch::Entry;
use super::{State, TaskQueueActor};
use crate::mailbox::Carries;
use crate::pod::messages::{CheckLease, Deadline, DeadlineExpired, GraceOver};
use crate::pod::queue::Effects;

/// For how long after one text of a task the next waits.
const TEXT_PACE: Duration = Duration::from_millis(250);
/// How soon what could not be saved is tried again.
const RETRY: Duration = Duration::from_secs(1);

impl TaskQueueActor {
    /// Tells the host.
    pub(super) fn emit(&mut self, event: PodEvent) {
        match &event {
            PodEvent::TaskChanged { task_id, .. } => {
                // It shows the newest text too.
                if let Some(waits) = self.texts.get_mut(task_id.as_str()) {
                    *waits = false;
                }
            }
            PodEvent::CoreWarning { message, .. } => self.diagnose(LogLevel::Warn, message.clone()),
            PodEvent::QueueDispatch { .. }
            | PodEvent::DeadlineExpired { .. }
            | PodEvent::ExportProgress { .. } => {}
        }
        self.parts.events.event(event);
    }

    /// The last text of a task has changed: the host hears of it at most every 250 ms, and of the last one for sure.
    pub(super) fn text_changed(&mut self, task: TaskId) {
        if self.texts.insert(task.clone(), true).is_none() {
            self.tell_text(task);
        }
    }

    /// Tells a text behind everything that was carried out before: memory, which says what is told, is ahead of what is
    /// durable.
    fn tell_text(&mut self, task: TaskId) {
        let State::Open(open) = &mut self.state else { return };
        let Ok(record) = open.queue.task(task.as_str()) else {
            self.texts.remove(&task);
            return;
        };
        let event = PodEvent::changed(&open.queue.shown(record));
        open.pending.push_back(Entry::unasked(Effects::default(), move |saved, actor, ctx| {
            if saved.is_ok() && actor.texts.get(&task) == Some(&true) {
                actor.emit(event);
            }
            ctx.run_later(TEXT_PACE, |actor, ctx| actor.text_may_be_told(task, ctx));
        }));
    }

    fn text_may_be_told(&mut self, task: TaskId, ctx: &mut Context<Self>) {
        match self.texts.get(&task) {
            Some(true) => {
                self.tell_text(task);
                self.flush(ctx);
            }
            _ => drop(self.texts.remove(&task)),
        }
    }

    /// Time is up. If what follows cannot be made durable, it is up again soon: a deadline is never lost. It is not
    /// armed again, since by now the ticker may hold a newer one in its place.
    fn time_is_up(&mut self, expired: DeadlineExpired, unheard: Option<Duration>, ctx: &mut Context<Self>) {
        let DeadlineExpired { task, deadline } = &expired;
        let done = self.work("a deadline", |queue, at| queue.expired(task, *deadline, unheard, at));
        let effects = match done {
            Ok(((), effects)) => effects,
            Err(refusal) => {
                tracing::debug!(%task, ?deadline, %refusal, "time was up for nothing");
                Effects::default()
            }
        };
        let entry = Entry::unasked(effects, move |saved, _, ctx| {
            if saved.is_err() {
                ctx.notify_later(expired, RETRY);
            }
        });
        self.enqueue(entry, ctx);
    }
}

impl Handler<DeadlineExpired> for TaskQueueActor {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, expired: DeadlineExpired, ctx: &mut Context<Self>) -> Self::Result {
        if expired.deadline != Deadline::Heartbeat {
            self.time_is_up(expired, None, ctx);
            return AtomicResponse::new(Box::pin(fut::ready(())));
        }
        let unheard = self.leases.recipient().send(CheckLease { task: expired.task.clone() });
        AtomicResponse::new(Box::pin(unheard.into_actor(self).map(|unheard, actor, ctx| {
            // Leases that are gone are held by nobody.
            actor.time_is_up(expired, unheard.unwrap_or(None), ctx);
        })))
    }
}

impl Handler<GraceOver> for TaskQueueActor {
    type Result = ();

    fn handle(&mut self, GraceOver { task, turn }: GraceOver, ctx: &mut Context<Self>) {
        self.time_is_up(DeadlineExpired { task, deadline: Deadline::Grace(turn) }, None, ctx);
    }
}
