//! What the core says: authoritative for tasks, and the sign that everything else is void.

use actix::prelude::{ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};
use cofferdam_protocol::host::{CoreStatus, HostEvent};
use cofferdam_protocol::pod::{self, LogLevel, PodEvent, TaskStatus};

use super::HostActor;
use crate::host::agent::CancelCause;
use crate::host::core::CoreEvent;
use crate::host::live_task::{Cancel, Expired};
use crate::host::memory::{Tidy, Whose};
use crate::mailbox::Carries;

impl Handler<CoreEvent> for HostActor {
    type Result = ();

    fn handle(&mut self, event: CoreEvent, ctx: &mut Context<Self>) {
        match event {
            CoreEvent::Up { state, initialized } => {
                let mismatch = state.status == CoreStatus::Mismatch;
                if mismatch {
                    self.diagnose(LogLevel::Error, state.message.clone());
                }
                self.given_up.clear();
                let all = initialized.as_ref().map(|said| !said.truncated);
                self.cache.core_up(state, initialized.map(|said| *said));
                self.shown.forget();
                if let Some(all) = all {
                    self.tidy(all, ctx);
                }
                self.tell_core();
                self.listeners.tell(HostEvent::StateChanged);
                // `initialize` does not say what targets are remembered.
                if !mismatch {
                    self.refresh_exports(ctx);
                }
            }
            CoreEvent::Down { state } => {
                self.diagnose(LogLevel::Warn, format!("the core is gone: {}", state.message));
                self.cache.core_down(state);
                self.end_all_agents(ctx);
                self.tell_core();
            }
            CoreEvent::Pod(event) => self.pod_event(event, ctx),
        }
    }
}

impl HostActor {
    /// Nothing of this host's agents is worth keeping without a core that knows their tasks.
    fn end_all_agents(&mut self, ctx: &mut Context<Self>) {
        let released = self.release_all();
        ctx.spawn(released.into_actor(self).map(|stubborn, actor, _| {
            for agent in stubborn {
                actor.diagnose(LogLevel::Error, agent);
            }
        }));
    }

    /// Has finished what a host that died has left of tasks.
    fn tidy(&mut self, knows_all: bool, ctx: &mut Context<Self>) {
        let tasks = self.cache.tasks();
        let all = knows_all.then(|| tasks.iter().map(|task| task.id.clone()).collect());
        let tasks = tasks.into_iter().filter_map(Whose::of).collect();
        let tidied = self.memory.recipient().send(Tidy { tasks, all });
        ctx.spawn(tidied.into_actor(self).map(|notes, actor, _| {
            for note in notes.unwrap_or_default() {
                actor.diagnose(LogLevel::Warn, note);
            }
        }));
    }

    fn pod_event(&mut self, event: PodEvent, ctx: &mut Context<Self>) {
        match event {
            PodEvent::TaskChanged { task_id, status, task } => {
                let had_ended = self.cache.task(&task_id).is_some_and(|task| task.status.is_terminal());
                self.cache.adopt(*task);
                self.undo_given_up(&task_id, status, ctx);
                // What is said of a task that had ended before is no news to whoever resumes it.
                if status.is_terminal() && !had_ended {
                    self.drop_unbegun(&task_id);
                }
                self.tell_task(&task_id);
            }
            PodEvent::QueueDispatch { task_id } => self.dispatched(&task_id, ctx),
            PodEvent::DeadlineExpired { task_id, turn } => {
                if let Some(entry) = self.live.get(&task_id) {
                    entry.addr.recipient().do_send(Expired { turn });
                }
            }
            PodEvent::ExportProgress { export_id, task_id, done, total } => {
                self.listeners.tell(HostEvent::ExportProgress { export_id, task_id, done, total });
            }
            PodEvent::CoreWarning { task_id, message } => {
                let of = task_id.map(|id| format!("{id}: ")).unwrap_or_default();
                self.diagnose(LogLevel::Warn, format!("{of}{message}"));
            }
        }
    }

    /// A core that was away has made a task after all, which whoever asked for it was told it had not.
    fn undo_given_up(&mut self, task_id: &str, status: TaskStatus, ctx: &mut Context<Self>) {
        let (Ok(core), Some(lease_id)) = (self.core(), self.given_up.get(task_id).cloned()) else { return };
        let task_id = task_id.to_owned();
        if status.is_terminal() {
            self.given_up.remove(&task_id);
            return;
        }
        let undone = async move {
            if status == TaskStatus::Queued {
                return core.pod.ask(pod::TaskCancel { task_id }).await.map(drop);
            }
            let (reason, timed_out, last_text) = (Some("aborted".to_owned()), false, None);
            let ended = pod::TaskTurnEnded { task_id, lease_id, turn: 1, reason, timed_out, last_text };
            core.pod.ask(ended).await.map(drop)
        };
        ctx.spawn(undone.into_actor(self).map(|undone, actor, _| {
            if let Err(failure) = undone {
                actor.diagnose(
                    LogLevel::Warn,
                    format!("a task that nobody wants any more is left: {failure}"),
                );
            }
        }));
    }

    /// A queued task has a slot.
    fn dispatched(&mut self, task_id: &str, ctx: &mut Context<Self>) {
        match (self.cache.task(task_id).cloned(), self.live.get(task_id)) {
            (Some(task), Some(_)) => self.begin_unasked(task, None, ctx),
            // Its request failed on the way back: the core gives the slot back when nobody says that it lives.
            _ => {
                self.diagnose(LogLevel::Warn, format!("{task_id} has a slot, but this host does not hold it"))
            }
        }
    }

    /// Ends the turn of a task's agent, if there is one.
    pub(super) fn cancel_agent(&self, task_id: &str, reason: Option<String>) {
        if let Some(entry) = self.live.get(task_id) {
            let cause = CancelCause::User { reason: reason.unwrap_or_default() };
            entry.addr.recipient().do_send(Cancel { cause });
        }
    }

    /// Asks for the export records anew.
    pub(super) fn refresh_exports(&mut self, ctx: &mut Context<Self>) {
        let Ok(core) = self.core() else { return };
        let list = pod::ExportList { export_id: None, item_offset: None, item_limit: None };
        let asked = async move { core.pod.ask(list).await };
        ctx.spawn(asked.into_actor(self).map(|rows, actor, _| {
            if let Ok(rows) = rows {
                actor.cache.set_exports(rows.exports, rows.remembered);
                actor.listeners.tell(HostEvent::StateChanged);
            }
        }));
    }
}
