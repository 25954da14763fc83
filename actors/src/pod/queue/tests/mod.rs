//! The state machine in the place of the actors: requests go in, and what they change is held against what the contract
//! says. There is no database; what the changes would make of it is compared with memory after every request.

mod config;
mod deadlines;
mod files;
mod holders;
mod order;
mod removal;
mod reserve;
mod table;
mod turns;
mod walk;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use cofferdam_protocol::pod::{
    Config, ConfigSet, LeaseId, PodErrorCode as Code, PodEvent, Reserved, TaskGet, TaskId, TaskMarkRunning,
    TaskReserve, TaskStatus, TaskSummary, TaskTurnEnded, TaskTurnStarted,
};
use cofferdam_storage::disk::Disk;
use cofferdam_storage::pod::{Change, Loaded, Protected, Surroundings, TaskRecord};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::verbs::{Claim, Facts, Later, Look, Outcome, Site, Then, Undo, Verb};
use super::{Effects, Queue, TimerChange};
use crate::pod::failure::{Failure, Refusal};
use crate::pod::messages::Deadline;

/// The wall time at which tests begin.
const START: i64 = 1_000_000;
/// Where the database would be.
const DATABASE: &str = "/nowhere/isolation-pod/pod.db";

/// A queue with what surrounds it.
struct Pod {
    queue: Queue,
    /// The sandbox root.
    root: TempDir,
    at: i64,
    /// Who holds what, and whether that holder was heard of lately.
    leases: HashMap<TaskId, (LeaseId, bool)>,
    /// What the database would hold.
    tasks: BTreeMap<TaskId, TaskRecord>,
    config: Config,
    /// Since they were last looked at.
    events: Vec<PodEvent>,
    timers: Vec<TimerChange>,
    audit: Vec<String>,
}

impl Pod {
    /// Without tasks, and with so many slots.
    fn new(slots: i64) -> Self {
        let root = tempfile::tempdir().unwrap();
        let sandbox_root = root.path().to_str().unwrap().to_owned();
        Self::with(root, Config { sandbox_root, max_concurrent: slots, ..Config::default() }, Vec::new())
    }

    fn with(root: TempDir, config: Config, tasks: Vec<TaskRecord>) -> Self {
        let known = tasks.iter().map(|task| (TaskId::new(task.summary.id.as_str()).unwrap(), task.clone()));
        Self {
            tasks: known.collect(),
            queue: Queue::new(Loaded {
                next_row: i64::try_from(tasks.len()).unwrap() + 1,
                tasks,
                config: config.clone(),
                diagnostics: Vec::new(),
            }),
            root,
            at: START,
            leases: HashMap::new(),
            config,
            events: Vec::new(),
            timers: Vec::new(),
            audit: Vec::new(),
        }
    }

    /// With task `a` in that status, held by lease `L`.
    fn with_task(status: TaskStatus) -> Self {
        let mut pod = match status {
            TaskStatus::Queued => {
                let mut pod = Self::new(1);
                pod.reserve("other");
                pod
            }
            _ => Self::new(3),
        };
        pod.reserve("a");
        match status {
            TaskStatus::Queued | TaskStatus::Starting => {}
            TaskStatus::Running => pod.running("a"),
            TaskStatus::Timeout => pod.ended("a", json!({"timedOut": true})),
            TaskStatus::Completed => pod.ended("a", json!({"reason": "completed"})),
            TaskStatus::Failed => pod.ended("a", json!({"reason": "error"})),
            TaskStatus::Cancelled => pod.ended("a", json!({"reason": "aborted"})),
            TaskStatus::Interrupted => pod.ended("a", json!({"reason": "interrupted"})),
        }
        assert_eq!(pod.task("a").status, status);
        pod.forget();
        pod
    }

    /// Carries a request out as the actors do.
    fn ask<V: Verb>(&mut self, params: Value) -> Result<V::Result, Failure> {
        self.ask_kept::<V>(params).map(|(answer, _)| answer)
    }

    /// The same, with what takes it back on the disk.
    fn ask_kept<V: Verb>(&mut self, params: Value) -> Result<(V::Result, Option<Undo>), Failure> {
        let request: V = serde_json::from_value(params)
            .map_err(|error| Failure::from(Refusal::BadRequest(error.to_string())))?;
        let before = image(&self.queue);
        let done = self.carry_out(request);
        if done.is_err() {
            assert!(self.queue.is_settled(), "{} was refused and left something to do", V::NAME);
            assert_eq!(image(&self.queue), before, "{} was refused and changed something", V::NAME);
        }
        self.compare();
        done.map_err(Failure::from)
    }

    fn carry_out<V: Verb>(&mut self, request: V) -> Result<(V::Result, Option<Undo>), Refusal> {
        request.admit(&self.queue)?;
        let look = request.look(&self.queue, &self.site());
        let taken = match request.claim() {
            Some(Claim::Holds(task, lease)) => match self.leases.get_mut(&task) {
                Some((holder, heard)) if *holder == lease => {
                    *heard = true;
                    false
                }
                _ => return Err(Refusal::StaleLease),
            },
            Some(Claim::Takes(task, lease)) => {
                match self.leases.insert(task.clone(), (lease.clone(), true)) {
                    Some((holder, true)) if holder != lease => {
                        self.leases.insert(task, (holder, true));
                        return Err(Refusal::busy("held"));
                    }
                    held => held.is_none_or(|(holder, _)| holder != lease),
                }
            }
            None => false,
        };
        let found = match look {
            Look::Ready(found) => found,
            Look::Blocking(job) => job(),
        };
        let outcome = request.apply(&mut self.queue, Facts { at: self.at, taken, found })?;
        self.after();
        match outcome {
            Outcome::Done(answer) => Ok((answer, None)),
            Outcome::DoneOrUndo(answer, undo) => Ok((answer, Some(undo))),
            Outcome::Read(_) => panic!("{} asks the database", V::NAME),
            Outcome::Later(Later { holds, work }) => {
                let then = work();
                holds.iter().for_each(|task| self.queue.let_go(task));
                let answer = match then {
                    Then::Answer(answer) => answer,
                    Then::Change(change) => change(&mut self.queue, self.at),
                };
                self.after();
                answer.map(|answer| (answer, None))
            }
        }
    }

    fn site(&self) -> Site {
        let protected = Protected::new(&Surroundings::default(), Path::new(DATABASE));
        Site { disk: Disk::default(), protected }
    }

    /// What follows after every request and every deadline.
    fn after(&mut self) {
        self.queue.fill_slots(self.at).unwrap();
        let Effects { changes, changed, moved, events, timers, leased, released, .. } = self.queue.finish();
        for change in changes {
            match change {
                Change::PutTask(task) => {
                    drop(self.tasks.insert(TaskId::new(task.summary.id.as_str()).unwrap(), *task));
                }
                Change::DeleteTask(task) => drop(self.tasks.remove(&task)),
                Change::PutConfig(config) => self.config = *config,
                Change::Audit { task, what, .. } => self.audit.push(format!("{task} {what}")),
                other => panic!("the queue changes no exports: {other:?}"),
            }
        }
        self.events.extend(changed.into_iter().chain(moved).chain(events));
        self.timers.extend(timers);
        released.iter().for_each(|task| drop(self.leases.remove(task)));
        self.leases.extend(leased.into_iter().map(|(task, lease)| (task, (lease, true))));
    }

    /// Memory is what the database holds, and the rules that always hold do.
    fn compare(&self) {
        let mut tasks: Vec<_> = self.tasks.values().cloned().collect();
        tasks.sort_by_key(|task| task.row);
        let loaded = Loaded {
            tasks,
            next_row: self.queue.next_row,
            config: self.config.clone(),
            diagnostics: Vec::new(),
        };
        assert_eq!(image(&Queue::new(loaded)), image(&self.queue));
        assert!(!self.queue.has_slot() || self.queue.waiting() == 0, "a slot is free while somebody waits");
        let places = self.queue.all().map(|task| self.queue.shown(task).queued_position).filter(|at| *at > 0);
        assert_eq!(places.collect::<Vec<_>>(), (1..=self.queue.waiting()).collect::<Vec<_>>());
        for task in self.queue.all() {
            let status = task.summary.status;
            assert_eq!(task.open_turn.is_some(), task.summary.turn_deadline != 0, "{task:?}");
            assert!(task.open_turn.is_none() || status == TaskStatus::Running, "{task:?}");
            assert!(task.open_turn.is_some() || !task.deadline_passed, "{task:?}");
            assert!(status.is_active() || !task.cancel_requested, "{task:?}");
            assert!(status.is_active() || task.reattached_from.is_none(), "{task:?}");
            assert!(!status.is_terminal() || task.summary.ended_at != 0, "{task:?}");
        }
    }

    /// A request of the holder with lease `L`.
    fn held<V: Verb>(&mut self, task: &str, more: Value) -> Result<V::Result, Failure> {
        let mut params = json!({"taskId": task, "leaseId": "L"});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ask::<V>(params)
    }

    fn reserve(&mut self, task: &str) -> Reserved {
        self.ask::<TaskReserve>(reserve(task)).unwrap()
    }

    /// A task that was reserved runs its first turn.
    fn running(&mut self, task: &str) {
        self.held::<TaskMarkRunning>(task, json!({})).unwrap();
        self.held::<TaskTurnStarted>(task, json!({"turn": 1})).unwrap();
    }

    /// A task that was reserved ends its first turn so.
    fn ended(&mut self, task: &str, how: Value) {
        self.running(task);
        let mut more = json!({"turn": 1});
        more.as_object_mut().unwrap().extend(how.as_object().unwrap().clone());
        self.held::<TaskTurnEnded>(task, more).unwrap();
    }

    fn task(&mut self, task: &str) -> TaskSummary {
        self.ask::<TaskGet>(json!({"taskId": task})).unwrap().task
    }

    fn configure(&mut self, patch: Value) -> Vec<String> {
        self.ask::<ConfigSet>(json!({"patch": patch})).unwrap().messages
    }

    /// Nobody was heard of lately.
    fn silence(&mut self) {
        self.leases.values_mut().for_each(|(_, heard)| *heard = false);
    }

    /// Time is up.
    fn expire(&mut self, task: &str, deadline: Deadline) {
        self.expire_unheard(task, deadline, Some(Duration::ZERO));
    }

    fn expire_unheard(&mut self, task: &str, deadline: Deadline, unheard: Option<Duration>) {
        self.queue.expired(&TaskId::new(task).unwrap(), deadline, unheard, self.at).unwrap();
        self.after();
        self.compare();
    }

    /// What the host was told since the last time.
    fn told(&mut self) -> Vec<String> {
        let text = |event: PodEvent| match event {
            PodEvent::TaskChanged { task, .. } => match task.queued_position {
                0 => format!("{} {}", task.id, task.status.as_str()),
                place => format!("{} {} {place}", task.id, task.status.as_str()),
            },
            PodEvent::QueueDispatch { task_id } => format!("dispatch {task_id}"),
            PodEvent::DeadlineExpired { task_id, turn } => format!("expired {task_id} {turn}"),
            PodEvent::CoreWarning { task_id, .. } => format!("warning {}", task_id.unwrap()),
            PodEvent::ExportProgress { .. } => panic!("the queue exports nothing"),
        };
        std::mem::take(&mut self.events).into_iter().map(text).collect()
    }

    /// The timers that were set or taken back since the last time.
    fn timed(&mut self) -> Vec<String> {
        let text = |change| match change {
            TimerChange::Arm(arm) => format!("{} {:?} {}s", arm.task, arm.deadline, arm.after.as_secs()),
            TimerChange::Disarm(task, deadline) => format!("{task} no {deadline:?}"),
            TimerChange::DisarmAll(task) => format!("{task} none"),
        };
        std::mem::take(&mut self.timers).into_iter().map(text).collect()
    }

    fn forget(&mut self) {
        self.events.clear();
        self.timers.clear();
        self.audit.clear();
    }
}

/// The params of `task.reserve`.
fn reserve(task: &str) -> Value {
    json!({
        "taskId": task, "sessionId": format!("s-{task}"), "mainSessionId": "m", "label": "l", "description": "d",
        "subdir": "", "timeoutMs": 600_000, "allow": ["read"], "presetId": "",
        "model": {"provider": "", "model": "", "reasoningEffort": null}, "leaseId": "L",
    })
}

/// Everything a queue knows.
fn image(queue: &Queue) -> impl PartialEq + std::fmt::Debug + use<> {
    let Queue { tasks, rows, waiting, sessions, active, next_row, config, holds: _, effects: _ } = queue;
    let tasks: BTreeMap<_, _> = tasks.clone().into_iter().collect();
    let sessions: BTreeMap<_, _> = sessions.clone().into_iter().collect();
    (tasks, rows.clone(), waiting.clone(), sessions, *active, *next_row, config.clone())
}

/// The code of a refusal.
#[track_caller]
fn code<T: std::fmt::Debug>(answer: Result<T, Failure>) -> Code {
    answer.unwrap_err().code
}
