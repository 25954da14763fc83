//! Giving a task an agent again: looking at it, resuming it, telling it something more.

use actix::prelude::{ActorFutureExt, Context, Handler};
use cofferdam_protocol::host::{OpenTask, OpenedTask, ResumeTask, ResumedTask};
use cofferdam_protocol::pod::{self, TaskStatus, TaskSummary};

use super::live::has_not_begun;
use super::{Answering, HostActor, after, at_once};
use crate::host::failure::{HostFailure, HostRefusal};
use crate::host::live_task::GiveBackSlot;
use crate::host::messages::Ask;
use crate::mailbox::Carries;
use crate::pod::{Failure, Refusal};

/// What a task is taken up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Its agent is to be there, should somebody want to tell it something.
    Look,
    /// It is told something as soon as it is there.
    Tell,
    /// Its first turn, which has not begun yet.
    Begin,
}

impl HostActor {
    /// Goes on with a task when it has an agent: at once if it has one, else after it was resumed.
    pub(super) fn with_agent<T: 'static>(
        &mut self,
        task_id: &str,
        ctx: &Context<Self>,
        then: impl FnOnce(&mut Self, TaskSummary) -> Answering<T> + 'static,
    ) -> Answering<T> {
        let task = match self.known_task(task_id) {
            Ok(task) => task.clone(),
            Err(refusal) => return at_once(Err(refusal)),
        };
        if self.live.has_agent(task_id) {
            return then(self, task);
        }
        let resumed = self.resume(&task, Purpose::Tell, ctx);
        Box::pin(resumed.then(|resumed, actor, _| match resumed {
            Ok(task) => then(actor, task),
            Err(failure) => at_once(Err(failure)),
        }))
    }

    /// Gives a task an agent, which goes on with its conversation if there is one. The task's record stays as it was if that
    /// fails, unless its first turn was to begin.
    fn resume(
        &mut self,
        task: &TaskSummary,
        purpose: Purpose,
        ctx: &Context<Self>,
    ) -> Answering<TaskSummary> {
        match self.reattach(task, purpose, ctx) {
            Ok(reattached) => reattached,
            Err(refusal) => at_once(Err(refusal)),
        }
    }

    fn reattach(
        &mut self,
        task: &TaskSummary,
        purpose: Purpose,
        ctx: &Context<Self>,
    ) -> Result<Answering<TaskSummary>, HostFailure> {
        let core = self.admits_tasks()?;
        self.if_not_rewinding(&task.id)?;
        let id = task.id.clone();
        let not_resumable = |why: String| HostFailure::from(HostRefusal::NotResumable(why));
        let held = self.live.get(&id).map(|entry| (entry.lease.clone(), entry.begun));
        let busy = match (&held, task.status) {
            (Some(_), TaskStatus::Queued) => {
                Some("the task waits in the queue; it gets its agent when its turn comes")
            }
            // Whose agent is gone is held still, under a lease with which it can be reattached. One that has not begun is
            // being resumed for somebody else: a second lease would be refused, and take the place of the first.
            (Some((_, begun)), status) if !begun || !status.is_terminal() => {
                Some("the task's agent is being made ready; try again in a moment")
            }
            _ => None,
        };
        if let Some(what) = busy {
            return Err(HostRefusal::TaskBusy(what.to_owned()).into());
        }
        if task.legacy {
            return Err(Failure::from(Refusal::LegacyReadonly(id)).into());
        }
        let preset = self.preset(&task.preset_id).ok_or_else(|| {
            not_resumable(format!("the task's preset, {:?}, is not there any more", task.preset_id))
        })?;
        if let Some(why) = &preset.broken {
            return Err(not_resumable(format!("the task's preset, {}, cannot be used: {why}", preset.id)));
        }
        if !preset.resumable && purpose != Purpose::Begin {
            return Err(not_resumable(format!(
                "agents of the preset {} cannot go on with an old conversation; start a new task",
                preset.id
            )));
        }
        let preset = preset.clone();
        if purpose == Purpose::Begin {
            self.check_slots()?;
        }
        let lease_id = match held {
            Some((lease, _)) => lease,
            None => self.hold(&id, preset, ctx)?,
        };
        self.live.look_at(&id, (purpose == Purpose::Look).then_some(task.status));
        let reattach = pod::TaskReattach { task_id: id.clone(), lease_id };
        let dir = task.task_dir.clone();
        let reattached = async move {
            let is_there = tokio::task::spawn_blocking(move || std::path::Path::new(&dir).is_dir()).await;
            if !is_there.unwrap_or(false) {
                return Err(HostRefusal::NotResumable(
                    "the task's directory is gone, and its agent has nowhere to work; start a new task"
                        .to_owned(),
                )
                .into());
            }
            Ok(core.pod.ask(reattach).await?.task)
        };
        Ok(Box::pin(after(reattached, |_, reattached, _| reattached).then(
            move |reattached: Result<TaskSummary, HostFailure>, actor, _| match reattached {
                Err(failure) => {
                    actor.drop_unbegun(&id);
                    at_once(Err(failure))
                }
                Ok(task) => {
                    let begun = actor.begin(task.clone(), None, purpose != Purpose::Begin);
                    let begun = after(begun, move |_, begun, _| begun.map(|()| task));
                    match purpose {
                        Purpose::Look => Box::pin(begun.then(|begun, actor, _| actor.give_back(begun))),
                        Purpose::Tell | Purpose::Begin => begun,
                    }
                }
            },
        )))
    }

    /// Has the slot given back of a task that was taken up and not told anything.
    fn give_back(&mut self, begun: Result<TaskSummary, HostFailure>) -> Answering<TaskSummary> {
        let task = match begun {
            Ok(task) => task,
            Err(failure) => return at_once(Err(failure)),
        };
        let Some(addr) = self.live.get(&task.id).map(|entry| entry.addr.clone()) else {
            return at_once(Ok(task));
        };
        let given_back =
            async move { Ok(addr.recipient().send(GiveBackSlot).await.ok().flatten().unwrap_or(task)) };
        after(given_back, |_, given_back, _| given_back)
    }

    /// A task that begins waits for no slot of its own any more; so it does not when there is none.
    fn check_slots(&self) -> Result<(), HostFailure> {
        let most = self.cache.config().map_or(0, |config| config.max_concurrent);
        let active = self.cache.tasks().iter().filter(|task| task.status.is_active()).count();
        match i64::try_from(active).is_ok_and(|active| active < most) {
            true => Ok(()),
            false => Err(HostRefusal::TaskBusy(format!(
                "the task has not begun, and as many run as may at the same time ({most}); try again when one has ended"
            ))
            .into()),
        }
    }
}

impl Handler<Ask<ResumeTask>> for HostActor {
    type Result = Answering<ResumedTask>;

    /// One whose first turn has not begun begins it now: what it is to do is known.
    fn handle(&mut self, Ask(request): Ask<ResumeTask>, ctx: &mut Context<Self>) -> Self::Result {
        let resumed = |actor: &Self, task: &TaskSummary| {
            let task = actor.row(task);
            ResumedTask { session_id: task.task.session_id.clone(), live: task.live, task }
        };
        let task = match self.known_task(&request.task_id) {
            Ok(task) => task.clone(),
            Err(refusal) => return at_once(Err(refusal)),
        };
        if self.live.has_agent(&task.id) {
            return at_once(Ok(resumed(self, &task)));
        }
        let purpose = if has_not_begun(&task) { Purpose::Begin } else { Purpose::Look };
        let taken_up = self.resume(&task, purpose, ctx);
        Box::pin(taken_up.map(move |task, actor, _| task.map(|task| resumed(actor, &task))))
    }
}

impl Handler<Ask<OpenTask>> for HostActor {
    type Result = Answering<OpenedTask>;

    fn handle(&mut self, Ask(request): Ask<OpenTask>, ctx: &mut Context<Self>) -> Self::Result {
        let task = match self.known_task(&request.task_id) {
            Ok(task) => task.clone(),
            Err(refusal) => return at_once(Err(refusal)),
        };
        let opened = |actor: &Self, task: &TaskSummary, resume_error: Option<String>| {
            let task = actor.row(task);
            let session_id = task.task.session_id.clone();
            Ok(OpenedTask { session_id, live: task.live, task, resume_error })
        };
        let wanted = self.cache.config().is_some_and(|config| config.auto_resume_on_open)
            && task.status.is_terminal()
            // There is nothing to resume, and nothing wrong with that.
            && !task.legacy
            && !has_not_begun(&task)
            && !self.live.has_agent(&task.id);
        if !wanted {
            return at_once(opened(self, &task, None));
        }
        let resumed = self.resume(&task, Purpose::Look, ctx);
        Box::pin(resumed.map(move |resumed, actor, _| match resumed {
            Ok(task) => opened(actor, &task, None),
            Err(failure) => opened(actor, actor.cache.task(&task.id).unwrap_or(&task), Some(failure.message)),
        }))
    }
}
