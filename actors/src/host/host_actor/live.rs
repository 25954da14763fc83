//! The tasks that this host holds, each with the actor that holds it.

use std::collections::HashMap;
use std::time::Duration;

use actix::prelude::{ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};
use cofferdam_protocol::host::{CoreState, CoreStatus, HostEvent, TaskRow};
use cofferdam_protocol::pod::{LeaseId, LogLevel, SandboxPolicy, TaskStatus, TaskSummary};

use super::HostActor;
use crate::host::agent::Preset;
use crate::host::failure::{HostFailure, HostRefusal};
use crate::host::live_task::{
    Begin, LetGo, LiveChange, LiveNotice, LiveParts, LiveTaskAddr, Release, StillRunning,
};
use crate::mailbox::Carries;

/// How long an agent may take to end (G82), and a little more, since its own actor waits as long.
const RELEASE: Duration = Duration::from_secs(12);

/// The tasks that this host holds, by their ids.
#[derive(Debug, Default)]
pub(super) struct LiveTasks(HashMap<String, LiveEntry>);

/// A task that this host holds.
#[derive(Clone, Debug)]
pub(super) struct LiveEntry {
    pub(super) addr: LiveTaskAddr,
    pub(super) lease: LeaseId,
    /// Whether its agent was asked for: from then on it is that actor that settles the task.
    pub(super) begun: bool,
    /// Whether there is an agent.
    pub(super) agent: bool,
    /// What the task was before somebody took it up without telling it anything. It is shown as that until somebody does:
    /// who only looks at a task does not run it.
    pub(super) looked_at: Option<TaskStatus>,
}

impl LiveTasks {
    pub(super) fn get(&self, task: &str) -> Option<&LiveEntry> {
        self.0.get(task)
    }

    /// Whether there is an agent for a task.
    pub(super) fn has_agent(&self, task: &str) -> bool {
        self.0.get(task).is_some_and(|entry| entry.agent)
    }

    /// The tasks that have an agent.
    pub(super) fn agents(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, entry)| entry.agent).map(|(task, _)| task.as_str())
    }

    /// Says what a task that is taken up was, if that is only to look at it.
    pub(super) fn look_at(&mut self, task: &str, before: Option<TaskStatus>) {
        if let Some(entry) = self.0.get_mut(task) {
            entry.looked_at = before;
        }
    }

    /// Nothing is held any more; the tasks with whoever held them.
    pub(super) fn take_all(&mut self) -> Vec<(String, LiveEntry)> {
        self.0.drain().collect()
    }

    /// A task is let go; whoever holds it still has to be told.
    pub(super) fn take(&mut self, task: &str) -> Option<LiveEntry> {
        self.0.remove(task)
    }

    /// The same, if it is that lease which holds it.
    pub(super) fn take_lease(&mut self, task: &str, lease: &str) -> Option<LiveEntry> {
        match self.0.get(task).is_some_and(|entry| entry.lease.0 == lease) {
            true => self.0.remove(task),
            false => None,
        }
    }
}

impl LiveEntry {
    /// Ends the agent; an error says that something of it still runs.
    pub(super) async fn release(self, why: LetGo, within: Duration) -> Result<(), HostFailure> {
        let released = self.addr.recipient().send(Release(why));
        match tokio::time::timeout(within, released).await {
            // One that stopped by itself has let everything go.
            Ok(Ok(Ok(())) | Err(_)) => Ok(()),
            Ok(Ok(Err(still))) => Err(HostRefusal::TaskRunning(still.to_string()).into()),
            Err(_) => Err(HostRefusal::TaskRunning(StillRunning.to_string()).into()),
        }
    }
}

impl HostActor {
    /// Starts the actor that holds a task under a fresh lease. Before the core is asked for the task: an event may come before
    /// the answer.
    pub(super) fn hold(
        &mut self,
        task_id: &str,
        preset: Preset,
        ctx: &Context<Self>,
    ) -> Result<LeaseId, HostFailure> {
        let lease = LeaseId(format!("lease-{}", self.parts.ids.fresh()));
        let parts = LiveParts {
            task_id: task_id.to_owned(),
            lease: lease.clone(),
            preset,
            core: self.core()?,
            sessions: self.sessions.clone(),
            memory: self.memory.clone(),
            clock: self.parts.clock.clone(),
            faster: self.parts.faster,
            notices: ctx.address().recipient(),
            _held: self.held.subscribe(),
        };
        let addr = (self.subordinates.live_task)(parts);
        let entry = LiveEntry { addr, lease: lease.clone(), begun: false, agent: false, looked_at: None };
        self.live.0.insert(task_id.to_owned(), entry);
        Ok(lease)
    }

    /// Has a task's agent made ready. What comes of it is in the task's record, but for a task that is only resumed.
    pub(super) fn begin(
        &mut self,
        task: TaskSummary,
        policy: Option<SandboxPolicy>,
        resume: bool,
    ) -> impl Future<Output = Result<(), HostFailure>> + use<> {
        let main = self.main_session(&task.main_session_id);
        let config = self.cache.config().cloned();
        let entry = self.live.0.get_mut(&task.id).map(|entry| {
            entry.begun = true;
            entry.addr.clone()
        });
        async move {
            let (Some(addr), Some(config)) = (entry, config) else {
                return Err(HostRefusal::Unavailable.into());
            };
            let begun = addr.recipient().send(Begin { task, policy, config, main, resume }).await;
            begun.unwrap_or_else(|_| {
                Err(HostRefusal::NotResumable("the agent ended at once".to_owned()).into())
            })
        }
    }

    /// The same, with nobody who waits for it.
    pub(super) fn begin_unasked(
        &mut self,
        task: TaskSummary,
        policy: Option<SandboxPolicy>,
        ctx: &mut Context<Self>,
    ) {
        let id = task.id.clone();
        let began = self.begin(task, policy, false);
        ctx.spawn(began.into_actor(self).map(move |began, actor, _| {
            if let Err(failure) = began {
                actor.diagnose(LogLevel::Warn, format!("{id} did not start: {failure}"));
            }
        }));
    }

    /// Lets a task go whose agent was never asked for.
    pub(super) fn drop_unbegun(&mut self, task: &str) {
        if self.live.get(task).is_some_and(|entry| !entry.begun)
            && let Some(entry) = self.live.take(task)
        {
            actix::spawn(async move { drop(entry.release(LetGo::Forgotten, RELEASE).await) });
        }
    }

    /// Ends all agents, for a core that does not know their leases any more. Says which of them still run.
    pub(super) fn release_all(&mut self) -> impl Future<Output = Vec<String>> + use<> {
        let (entries, within) = (self.live.take_all(), self.patience());
        self.cache.touch();
        async move {
            let release = |(id, entry): (String, LiveEntry)| {
                (id, actix::spawn(entry.release(LetGo::Forgotten, within)))
            };
            let released: Vec<_> = entries.into_iter().map(release).collect();
            let mut stubborn = Vec::new();
            for (id, release) in released {
                if let Ok(Err(_)) = release.await {
                    stubborn
                        .push(format!("the agent of task {id} has not ended within 10 s; end its process"));
                }
            }
            stubborn
        }
    }

    /// How long an agent's end is waited for.
    pub(super) fn patience(&self) -> Duration {
        self.parts.real(RELEASE)
    }

    /// A task as it is shown.
    pub(super) fn row(&self, task: &TaskSummary) -> TaskRow {
        let mut task = task.clone();
        if let Some(before) = self.live.get(&task.id).and_then(|entry| entry.looked_at)
            && task.status == TaskStatus::Starting
        {
            task.status = before;
        }
        let resumable = || {
            self.preset(&task.preset_id)
                .is_some_and(|preset| (preset.resumable || has_not_begun(&task)) && preset.broken.is_none())
        };
        TaskRow {
            live: self.live.has_agent(&task.id),
            can_resume: task.status.is_terminal()
                && !task.legacy
                && self.cache.has_directory(&task.id)
                && resumable(),
            task,
        }
    }

    /// The newest that is known of a task; what a request answered, where nothing is.
    pub(super) fn newest_row(&self, answered: &TaskSummary) -> TaskRow {
        self.row(self.cache.task(&answered.id).unwrap_or(answered))
    }

    /// Tells listeners how a task is now.
    pub(super) fn tell_task(&mut self, id: &str) {
        if self.listeners.any()
            && let Some(task) = self.cache.task(id)
        {
            let task = Box::new(self.row(task));
            self.listeners.tell(HostEvent::TaskChanged { task_id: id.to_owned(), task });
        }
    }

    /// Tells listeners how the core is now.
    pub(super) fn tell_core(&mut self) {
        let core: CoreState = self.cache.core.clone();
        self.listeners.tell(HostEvent::CoreChanged { core });
    }

    /// Whether the core can be asked.
    pub(super) fn core_answers(&self) -> bool {
        matches!(self.cache.core.status, CoreStatus::Ready | CoreStatus::Mismatch)
    }
}

/// Whether a task ended before anything of it began, such as one that waited when the daemon was restarted.
pub(super) fn has_not_begun(task: &TaskSummary) -> bool {
    task.status.is_terminal() && task.turns == 0
}

impl Handler<LiveNotice> for HostActor {
    type Result = ();

    fn handle(&mut self, notice: LiveNotice, _: &mut Context<Self>) {
        let LiveNotice { task_id, lease, what } = notice;
        match what {
            LiveChange::Agent { live } => {
                if let Some(entry) = self.live.0.get_mut(&task_id)
                    && entry.lease.0 == lease
                {
                    entry.agent = live;
                    self.cache.touch();
                    self.tell_task(&task_id);
                }
            }
            LiveChange::Entry(entry) => {
                if self.listeners.any() {
                    self.listeners.tell(HostEvent::TaskEntry { task_id, entry });
                }
            }
            LiveChange::Missed => self.listeners.tell(HostEvent::Lost),
            LiveChange::Diagnostic { level, message } => {
                self.diagnose(level, format!("{task_id}: {message}"));
            }
            LiveChange::Ended => {
                if self.live.take_lease(&task_id, &lease).is_some() {
                    self.cache.touch();
                    self.tell_task(&task_id);
                }
            }
        }
    }
}
