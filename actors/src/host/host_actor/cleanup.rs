//! Removing tasks: their agents first, then files and records.

use std::collections::HashMap;
use std::path::PathBuf;

use actix::prelude::{Context, Handler};
use cofferdam_protocol::host::{BulkCleanup, CleanedUp, Cleanup, CleanupScope, HostErrorCode, HostEvent};
use cofferdam_protocol::pod::{
    self, BulkCleanupResult, BulkCleanupRow, LogLevel, PodErrorCode, TaskStatus, TaskSummary,
};

use super::file_work::FileWork;
use super::live::LiveEntry;
use super::{Answering, HostActor, after, at_once};
use crate::host::core::PodCore;
use crate::host::failure::HostFailure;
use crate::host::live_task::LetGo;
use crate::host::memory::{ForgetTask, Memory};
use crate::host::messages::Ask;
use crate::mailbox::Carries;

/// A task that is to go, and the agent that has to go first.
struct Ending {
    task: TaskSummary,
    entry: Option<LiveEntry>,
    core: PodCore,
    within: std::time::Duration,
}

/// What came of a bulk clean-up.
struct BulkRemoved {
    /// The answer.
    removed: Result<BulkCleanupResult, HostFailure>,
    /// Whose records have gone, also if the answer is a failure.
    gone: Vec<String>,
    /// What is left of them.
    left: Vec<String>,
}

impl Ending {
    /// Cancels what runs or waits, waits for the agent to be gone, and sees to it that the task has ended.
    async fn end(self) -> Result<(), HostFailure> {
        let Self { task, entry, core, within } = self;
        if !task.status.is_terminal() {
            core.pod.ask(pod::TaskCancel { task_id: task.id.clone() }).await?;
        }
        let Some(entry) = entry else { return Ok(()) };
        let lease_id = entry.lease.clone();
        entry.release(LetGo::Unwanted, within).await?;
        // A task without an open turn has nothing that could settle it but this.
        let now = core.pod.ask(pod::TaskGet { task_id: task.id.clone() }).await?.task;
        if now.status.is_active() {
            let turn = u64::try_from(now.turns).unwrap_or_default() + 1;
            let ended = pod::TaskTurnEnded {
                task_id: task.id,
                lease_id,
                turn,
                reason: Some("aborted".to_owned()),
                timed_out: false,
                last_text: None,
            };
            core.pod.ask(ended).await?;
        }
        Ok(())
    }
}

/// Removes a task that was ended for it, and says what became of that, and whether its files have gone. The record stays if
/// the files cannot be removed.
async fn remove(core: &PodCore, task_id: String, delete_files: bool) -> (BulkCleanupRow, bool) {
    let mut removed_files = false;
    let removing = async {
        if delete_files {
            removed_files = core.pod.ask(pod::TaskCleanupFiles { task_id: task_id.clone() }).await?.removed;
        }
        core.pod.ask(pod::TaskDelete { task_id: task_id.clone() }).await
    };
    let (ok, code, message) = match removing.await {
        Ok(_) => (true, String::new(), String::new()),
        Err(failure) => (false, HostErrorCode::from(failure.code).word(), failure.message),
    };
    (BulkCleanupRow { task_id, ok, code, message }, removed_files)
}

/// Forgets what is kept of a task whose files or record have gone. Says what is left of it.
async fn forget_kept(memory: &Memory, task: &str, dir: PathBuf, record: bool) -> Vec<String> {
    let forget = ForgetTask { task: task.to_owned(), dir, record, unless_used: false };
    memory.recipient().send(forget).await.unwrap_or_default()
}

impl HostActor {
    /// A task is to go: whoever holds it lets go, and says so when it has.
    fn ending(&self, task: TaskSummary, core: PodCore) -> Ending {
        let (entry, within) = (self.live.get(&task.id).cloned(), self.patience());
        Ending { task, entry, core, within }
    }

    /// Tells people what of tasks that are gone is left.
    fn say_left(&mut self, left: Vec<String>) {
        for what in left {
            self.diagnose(LogLevel::Warn, what);
        }
    }

    /// A task's record is gone.
    fn forget(&mut self, task_id: &str) {
        if self.cache.remove(task_id) {
            self.listeners.tell(HostEvent::TaskRemoved { task_id: task_id.to_owned() });
        }
    }

    /// The tasks that a bulk clean-up is about.
    fn matching(&self, request: &BulkCleanup) -> Vec<TaskSummary> {
        let statuses = request.statuses.as_deref().unwrap_or(&[TaskStatus::Completed]);
        let now = self.now();
        let is_old = |task: &TaskSummary| {
            let since = if task.ended_at > 0 { task.ended_at } else { task.created_at };
            request.older_than_ms.is_none_or(|age| now - since > age)
        };
        let matches = |task: &&&TaskSummary| statuses.contains(&task.status) && is_old(task);
        self.cache.tasks().iter().filter(matches).map(|task| (*task).clone()).collect()
    }
}

impl Handler<Ask<Cleanup>> for HostActor {
    type Result = Answering<CleanedUp>;

    fn handle(&mut self, Ask(request): Ask<Cleanup>, _: &mut Context<Self>) -> Self::Result {
        let Cleanup { task_id, scope } = request;
        let (core, task) = match (self.core(), self.known_task(&task_id)) {
            (Ok(core), Ok(task)) => (core, task.clone()),
            (Err(refusal), _) | (_, Err(refusal)) => return at_once(Err(refusal)),
        };
        if let Err(refusal) = self.if_not_rewinding(&task_id) {
            return at_once(Err(refusal));
        }
        self.file_works.begin(&task_id, FileWork::CleanUp);
        let (memory, dir) = (self.memory.clone(), PathBuf::from(&task.task_dir));
        let ending = self.ending(task, core.clone());
        let id = task_id.clone();
        let cleaned = async move {
            ending.end().await?;
            let mut done = CleanedUp { task_id: id.clone(), removed_files: false, removed_record: false };
            let removing = async {
                if scope != CleanupScope::Record {
                    done.removed_files =
                        core.pod.ask(pod::TaskCleanupFiles { task_id: id.clone() }).await?.removed;
                }
                if scope != CleanupScope::Files {
                    core.pod.ask(pod::TaskDelete { task_id: id.clone() }).await?;
                    done.removed_record = true;
                }
                Ok(())
            };
            let removed: Result<(), HostFailure> = removing.await;
            // Files that have gone need no checkpoints, whatever became of the record.
            let mut left = Vec::new();
            if done.removed_files || done.removed_record {
                left = forget_kept(&memory, &id, dir, done.removed_record).await;
            }
            Ok((removed.map(|()| done), left))
        };
        after(cleaned, move |actor, cleaned: Result<(Result<CleanedUp, HostFailure>, Vec<String>), _>, _| {
            actor.file_works.end(&task_id, FileWork::CleanUp);
            let cleaned = cleaned.and_then(|(done, left)| {
                actor.say_left(left);
                done
            });
            actor.shown.forget();
            if cleaned.as_ref().is_ok_and(|done| done.removed_record) {
                actor.forget(&task_id);
            } else {
                actor.tell_task(&task_id);
            }
            cleaned
        })
    }
}

impl Handler<Ask<BulkCleanup>> for HostActor {
    type Result = Answering<BulkCleanupResult>;

    fn handle(&mut self, Ask(request): Ask<BulkCleanup>, _: &mut Context<Self>) -> Self::Result {
        let core = match self.core() {
            Ok(core) => core,
            Err(refusal) => return at_once(Err(refusal)),
        };
        let matching = self.matching(&request);
        if let Some(Err(refusal)) =
            matching.iter().map(|task| self.if_not_rewinding(&task.id)).find(Result::is_err)
        {
            return at_once(Err(refusal));
        }
        let worked_on: Vec<_> = matching.iter().map(|task| task.id.clone()).collect();
        for id in &worked_on {
            self.file_works.begin(id, FileWork::CleanUp);
        }
        // Only those that this host holds have to be ended; the core sees to the others.
        let held: Vec<_> = matching.into_iter().filter(|task| self.live.get(&task.id).is_some()).collect();
        // What is ended for this has another status and another age then: it is removed by its name.
        let named: Vec<_> =
            held.iter().filter(|task| !task.status.is_terminal()).map(|task| task.id.clone()).collect();
        let endings: Vec<_> = held.into_iter().map(|task| self.ending(task, core.clone())).collect();
        let memory = self.memory.clone();
        let dirs: HashMap<_, _> =
            self.cache.tasks().iter().map(|task| (task.id.clone(), PathBuf::from(&task.task_dir))).collect();
        let BulkCleanup { statuses, older_than_ms, delete_files } = request;
        let removed = async move {
            let ended: Vec<_> = endings.into_iter().map(|ending| actix::spawn(ending.end())).collect();
            for end in ended {
                match end.await {
                    Ok(Err(failure)) if failure.code != PodErrorCode::TaskNotFound.into() => {
                        return Err(failure);
                    }
                    _ => {}
                }
            }
            let (mut results, mut gone, mut without_files) = (Vec::new(), Vec::new(), Vec::new());
            for task_id in named {
                let (row, removed_files) = remove(&core, task_id, delete_files).await;
                if removed_files && !row.ok {
                    without_files.push(row.task_id.clone());
                }
                results.push(row);
            }
            let others = core.pod.ask(pod::TaskBulkCleanup { statuses, older_than_ms, delete_files }).await;
            let removed = match others {
                Ok(others) => {
                    let deleted = others.deleted + results.iter().filter(|row| row.ok).count();
                    results.extend(others.results);
                    gone.extend(results.iter().filter(|row| row.ok).map(|row| row.task_id.clone()));
                    Ok(BulkCleanupResult { results, deleted, more: others.more })
                }
                Err(failure) => {
                    gone.extend(results.into_iter().filter(|row| row.ok).map(|row| row.task_id));
                    Err(failure.into())
                }
            };
            let mut left = Vec::new();
            let whole = gone.iter().map(|id| (id, true));
            for (id, record) in whole.chain(without_files.iter().map(|id| (id, false))) {
                let dir = dirs.get(id).cloned().unwrap_or_default();
                left.extend(forget_kept(&memory, id, dir, record).await);
            }
            Ok(BulkRemoved { removed, gone, left })
        };
        after(removed, move |actor, done: Result<BulkRemoved, HostFailure>, _| {
            for id in &worked_on {
                actor.file_works.end(id, FileWork::CleanUp);
            }
            actor.shown.forget();
            let BulkRemoved { removed, gone, left } = done?;
            actor.say_left(left);
            for id in gone {
                actor.forget(&id);
            }
            removed
        })
    }
}
