//! What requests change besides memory: collected while they are carried out, handed over at the end.

use std::collections::HashSet;
use std::time::Duration;

use cofferdam_protocol::pod::{LeaseId, PodEvent, TaskId};
use cofferdam_storage::pod::{Change, TaskRecord};

use super::Queue;
use crate::pod::messages::{ArmDeadline, Deadline};

/// What a request changed: to be made durable first, and acted upon then.
#[derive(Debug, Default)]
pub(in crate::pod) struct Effects {
    /// For the database.
    pub(in crate::pod) changes: Vec<Change>,
    /// For the host, after the answer: the task that it is about, then others that changed.
    pub(in crate::pod) changed: Vec<PodEvent>,
    /// Then those that only moved in the queue.
    pub(in crate::pod) moved: Vec<PodEvent>,
    /// Then warnings and deadlines, and dispatches last.
    pub(in crate::pod) events: Vec<PodEvent>,
    /// Tasks of which nothing but the last text changed; the host hears of that not too often.
    pub(in crate::pod) texts: Vec<TaskId>,
    /// For the ticker.
    pub(in crate::pod) timers: Vec<TimerChange>,
    /// Who holds a task from now on, at once.
    pub(in crate::pod) leased: Vec<(TaskId, LeaseId)>,
    /// Tasks that nobody can hold any more.
    pub(in crate::pod) released: Vec<TaskId>,
}

/// A change of deadlines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::pod) enum TimerChange {
    /// Time runs from now.
    Arm(ArmDeadline),
    /// The deadline of that kind is off.
    Disarm(TaskId, Deadline),
    /// All of the task's are.
    DisarmAll(TaskId),
}

/// The same while it is being collected: tasks by id, so that each is written and told once, as it is in the end.
#[derive(Debug, Default)]
pub(super) struct Pending {
    stored: Ids,
    /// Changed visibly; the subject of the request first.
    changed: Ids,
    /// The first row of the queue from which on places changed.
    moved_from: Option<i64>,
    texts: Ids,
    removed: Vec<TaskId>,
    audits: Vec<Change>,
    pub(super) dispatched: Vec<TaskId>,
    pub(super) other_events: Vec<PodEvent>,
    pub(super) timers: Vec<TimerChange>,
    pub(super) leased: Vec<(TaskId, LeaseId)>,
    pub(super) config: bool,
}

/// Ids in the order in which they came, each once.
#[derive(Debug, Default)]
struct Ids {
    order: Vec<TaskId>,
    known: HashSet<TaskId>,
}

impl Ids {
    fn add(&mut self, id: &TaskId) {
        if !self.known.contains(id) {
            self.known.insert(id.clone());
            self.order.push(id.clone());
        }
    }
}

impl Pending {
    pub(super) fn stored(&mut self, id: &TaskId) {
        self.stored.add(id);
    }

    pub(super) fn changed(&mut self, id: &TaskId) {
        self.stored.add(id);
        self.changed.add(id);
    }

    pub(super) fn text_changed(&mut self, id: &TaskId) {
        self.stored.add(id);
        self.texts.add(id);
    }

    /// Everybody in the queue behind that row has another place.
    pub(super) fn moved(&mut self, row: i64) {
        self.moved_from = Some(self.moved_from.map_or(row, |from| from.min(row)));
    }

    pub(super) fn removed(&mut self, id: TaskId) {
        self.removed.push(id);
    }

    pub(super) fn audit(&mut self, id: &TaskId, at: i64, what: impl Into<String>) {
        self.audits.push(Change::Audit { task: id.clone(), at, what: what.into() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stored.order.is_empty()
            && self.changed.order.is_empty()
            && self.removed.is_empty()
            && self.audits.is_empty()
            && self.timers.is_empty()
            && self.other_events.is_empty()
            && !self.config
    }
}

impl Queue {
    /// Says in the audit of a task what happened. Changes of its status are there anyway.
    pub(super) fn audit(&mut self, id: &TaskId, at: i64, what: impl Into<String>) {
        self.effects.audit(id, at, what);
    }

    /// A person should know this.
    pub(super) fn warn(&mut self, id: &TaskId, message: impl Into<String>) {
        self.tell(PodEvent::CoreWarning { task_id: Some(id.to_string()), message: message.into() });
    }

    /// The host has to hear this.
    pub(super) fn tell(&mut self, event: PodEvent) {
        self.effects.other_events.push(event);
    }

    /// That lease holds a task that nobody held.
    pub(super) fn lease(&mut self, id: &TaskId, lease: &LeaseId) {
        self.effects.leased.push((id.clone(), lease.clone()));
    }

    /// Time runs for a task from when this is durable.
    pub(super) fn arm(&mut self, id: &TaskId, deadline: Deadline, after: Duration) {
        let arm = ArmDeadline { task: id.clone(), deadline, after };
        self.effects.timers.push(TimerChange::Arm(arm));
    }

    /// Time does not run any more.
    pub(super) fn disarm(&mut self, id: &TaskId, deadline: Deadline) {
        self.effects.timers.push(TimerChange::Disarm(id.clone(), deadline));
    }

    /// What was changed since the last time.
    pub(in crate::pod) fn finish(&mut self) -> Effects {
        let pending = std::mem::take(&mut self.effects);
        let record = |id: &TaskId| self.tasks.get(id);
        let mut changes = Vec::new();
        let stored = pending.stored.order.iter().filter_map(record);
        changes.extend(stored.map(|task| Change::PutTask(Box::new(task.clone()))));
        changes.extend(pending.removed.iter().cloned().map(Change::DeleteTask));
        // An audit row needs its task.
        changes.extend(pending.audits.into_iter().filter(|change| match change {
            Change::Audit { task, .. } => self.tasks.contains_key(task),
            _ => true,
        }));
        if pending.config {
            changes.push(Change::PutConfig(Box::new(self.config.clone())));
        }
        let moved = pending.moved_from.into_iter().flat_map(|row| self.waiting.range(row..));
        let only_moved = moved.map(|(_, id)| id).filter(|id| !pending.changed.known.contains(*id));
        let told = |tasks: Vec<&TaskRecord>| -> Vec<_> {
            self.all_shown(tasks).map(|task| PodEvent::changed(&task)).collect()
        };
        let changed = told(pending.changed.order.iter().filter_map(record).collect());
        let moved = told(only_moved.filter_map(record).collect());
        let mut events = pending.other_events;
        events
            .extend(pending.dispatched.iter().map(|id| PodEvent::QueueDispatch { task_id: id.to_string() }));
        let mut texts = pending.texts.order;
        texts.retain(|id| !pending.changed.known.contains(id) && self.tasks.contains_key(id));
        let mut timers = pending.timers;
        timers.extend(pending.removed.iter().cloned().map(TimerChange::DisarmAll));
        Effects {
            changes,
            changed,
            moved,
            events,
            texts,
            timers,
            leased: pending.leased,
            released: pending.removed,
        }
    }
}
