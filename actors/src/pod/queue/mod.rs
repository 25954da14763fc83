//! Tasks and their queue as one state machine without a disk, a clock or a mailbox: a request goes in, what it changes
//! comes out.

mod effects;
mod holds;
mod life;
mod rules;
mod timers;
pub(super) mod verbs;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use cofferdam_protocol::pod::{Config, TaskId, TaskStatus, TaskSummary};
use cofferdam_storage::pod::{Loaded, TaskRecord};

use super::failure::Refusal;

use super::messages::Deadline;

pub(super) use effects::{Effects, TimerChange};
pub(super) use holds::FileUse;

/// The most characters of an agent's last text.
const TEXT_CHARS: usize = 4000;
/// The most characters of a task's error.
const ERROR_CHARS: usize = 2000;
/// The most characters of a reason or a code, where one is repeated.
const WORD_CHARS: usize = 100;
/// How long a task may have a slot and no turn while its holder is not heard of. Nothing else would ever end it.
const LEASE_LOST: Duration = Duration::from_secs(60);

/// All tasks and the configuration. What is here agrees with the database once the changes that [`Queue::finish`] gave
/// are committed.
#[derive(Debug)]
pub(super) struct Queue {
    tasks: HashMap<TaskId, TaskRecord>,
    /// All tasks in the order in which they were inserted.
    rows: BTreeMap<i64, TaskId>,
    /// Those that wait, in the order of the queue.
    waiting: BTreeMap<i64, TaskId>,
    /// The task of each session; sessions of migrated tasks may be empty and are not here then.
    sessions: HashMap<String, TaskId>,
    /// How many have a slot.
    active: usize,
    next_row: i64,
    config: Config,
    holds: holds::Holds,
    effects: effects::Pending,
}

impl Queue {
    /// What the database holds.
    pub(super) fn new(loaded: Loaded) -> Self {
        let mut queue = Self {
            tasks: HashMap::new(),
            rows: BTreeMap::new(),
            waiting: BTreeMap::new(),
            sessions: HashMap::new(),
            active: 0,
            next_row: loaded.next_row,
            config: loaded.config,
            holds: holds::Holds::default(),
            effects: effects::Pending::default(),
        };
        for record in loaded.tasks {
            queue.index(record);
        }
        queue
    }

    /// The configuration in effect.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// The task of that id.
    pub(super) fn task(&self, id: &str) -> Result<&TaskRecord, Refusal> {
        self.tasks.get(id).ok_or_else(|| Refusal::TaskNotFound(id.to_owned()))
    }

    /// Its id as a type.
    fn id(&self, id: &str) -> Result<TaskId, Refusal> {
        let (id, _) = self.tasks.get_key_value(id).ok_or_else(|| Refusal::TaskNotFound(id.to_owned()))?;
        Ok(id.clone())
    }

    /// The task, if it is not a migrated one.
    pub(super) fn live_task(&self, id: &str) -> Result<&TaskRecord, Refusal> {
        let task = self.task(id)?;
        match task.summary.legacy {
            true => Err(Refusal::LegacyReadonly(id.to_owned())),
            false => Ok(task),
        }
    }

    /// The task of a session.
    pub(super) fn by_session(&self, session: &str) -> Option<&TaskRecord> {
        self.tasks.get(self.sessions.get(session)?)
    }

    /// All tasks, the first inserted first.
    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = &TaskRecord> {
        self.rows.values().filter_map(|id| self.tasks.get(id))
    }

    /// What the wire shows of a task.
    pub(super) fn shown(&self, task: &TaskRecord) -> TaskSummary {
        let queued_position = match self.waiting.contains_key(&task.row) {
            true => self.waiting.range(..=task.row).count(),
            false => 0,
        };
        TaskSummary { queued_position, ..task.summary.clone() }
    }

    /// The same of many, without counting for each.
    fn all_shown(&self, tasks: Vec<&TaskRecord>) -> impl Iterator<Item = TaskSummary> {
        let positions: HashMap<i64, usize> =
            match tasks.iter().any(|task| task.summary.status == TaskStatus::Queued) {
                true => self.waiting.keys().copied().zip(1..).collect(),
                false => HashMap::new(),
            };
        tasks.into_iter().map(move |task| TaskSummary {
            queued_position: positions.get(&task.row).copied().unwrap_or(0),
            ..task.summary.clone()
        })
    }

    /// What a list of all tasks shows: the newest first, long texts cut.
    pub(super) fn list(&self) -> Vec<TaskSummary> {
        let mut tasks: Vec<_> = self.all().collect();
        tasks.sort_by_key(|task| Reverse((task.summary.created_at, task.row)));
        self.all_shown(tasks).map(TaskSummary::for_list).collect()
    }

    /// How many tasks have a slot.
    pub(super) fn active(&self) -> usize {
        self.active
    }

    /// How many tasks wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a slot is free.
    pub(super) fn has_slot(&self) -> bool {
        self.active() < usize::try_from(self.config.max_concurrent).unwrap_or(0)
    }

    /// Whether a new task gets a slot.
    fn starts_new(&self) -> bool {
        self.has_slot() && self.waiting.is_empty()
    }

    /// Whether a new task that gets no slot may wait. A queue that is there takes more even if it is off.
    fn queues_new(&self) -> bool {
        self.config.queue_enabled || !self.waiting.is_empty()
    }

    /// Inserts a new task, behind all others.
    pub(super) fn insert(&mut self, summary: TaskSummary, at: i64) -> Result<(), Refusal> {
        let id = TaskId::new(summary.id.as_str()).map_err(|error| Refusal::BadRequest(error.to_string()))?;
        self.effects.changed(&id);
        self.effects.audit(&id, at, summary.status.as_str());
        if summary.status == TaskStatus::Starting {
            self.arm(&id, Deadline::Heartbeat, LEASE_LOST);
        }
        let row = self.next_row;
        self.next_row += 1;
        self.index(TaskRecord {
            row,
            summary,
            open_turn: None,
            last_turn: None,
            deadline_passed: false,
            cancel_requested: false,
            reattached_from: None,
        });
        Ok(())
    }

    /// Changes a task; the only way one changes. What the change means for the database, the events, the timers and the
    /// indices follows from the difference.
    pub(super) fn edit(
        &mut self,
        id: &str,
        at: i64,
        change: impl FnOnce(&mut TaskRecord),
    ) -> Result<&TaskRecord, Refusal> {
        let Some((id, mut record)) = self.tasks.remove_entry(id) else {
            return Err(Refusal::TaskNotFound(id.to_owned()));
        };
        let mut before = record.clone();
        change(&mut record);
        if record != before {
            self.effects.stored(&id);
        }
        let (was, is) = (before.summary.status, record.summary.status);
        if was != is {
            self.status_changed(&id, record.row, (was, is));
            self.effects.audit(&id, at, is.as_str());
        }
        if record.summary != before.summary {
            before.summary.last_text.clone_from(&record.summary.last_text);
            match record.summary == before.summary {
                true => self.effects.text_changed(&id),
                false => self.effects.changed(&id),
            }
        }
        Ok(self.tasks.entry(id).insert_entry(record).into_mut())
    }

    fn status_changed(&mut self, id: &TaskId, row: i64, (was, is): (TaskStatus, TaskStatus)) {
        self.active = self.active + usize::from(is.is_active()) - usize::from(was.is_active());
        if was == TaskStatus::Queued {
            self.leave_queue(row);
        }
        if is.is_terminal() {
            self.effects.timers.push(TimerChange::DisarmAll(id.clone()));
        }
        if is == TaskStatus::Starting {
            self.arm(id, Deadline::Heartbeat, LEASE_LOST);
        }
    }

    /// Removes a task.
    pub(super) fn remove(&mut self, id: &str) -> Result<TaskRecord, Refusal> {
        let Some((id, record)) = self.tasks.remove_entry(id) else {
            return Err(Refusal::TaskNotFound(id.to_owned()));
        };
        self.rows.remove(&record.row);
        if self.sessions.get(&record.summary.session_id) == Some(&id) {
            self.sessions.remove(&record.summary.session_id);
        }
        self.leave_queue(record.row);
        self.active -= usize::from(record.summary.status.is_active());
        self.effects.removed(id);
        Ok(record)
    }

    /// Replaces the configuration.
    pub(super) fn set_config(&mut self, config: Config) {
        if config != self.config {
            self.config = config;
            self.effects.config = true;
        }
    }

    /// Gives free slots to those who wait longest. Called after every request: so a slot is never free while somebody
    /// waits.
    pub(super) fn fill_slots(&mut self, at: i64) -> Result<(), Refusal> {
        while self.has_slot() {
            let Some(id) = self.waiting.values().next().cloned() else { return Ok(()) };
            self.edit(id.as_str(), at, |task| task.summary.status = TaskStatus::Starting)?;
            self.effects.dispatched.push(id);
        }
        Ok(())
    }

    /// Whether nothing was changed since [`Self::finish`].
    pub(super) fn is_settled(&self) -> bool {
        self.effects.is_empty()
    }

    fn index(&mut self, record: TaskRecord) {
        // What was in the database has been through this check.
        let Ok(id) = TaskId::new(record.summary.id.clone()) else { return };
        self.rows.insert(record.row, id.clone());
        self.active += usize::from(record.summary.status.is_active());
        if record.summary.status == TaskStatus::Queued {
            self.waiting.insert(record.row, id.clone());
        }
        if !record.summary.session_id.is_empty() {
            self.sessions.insert(record.summary.session_id.clone(), id.clone());
        }
        self.tasks.insert(id, record);
    }

    fn leave_queue(&mut self, row: i64) {
        if self.waiting.remove(&row).is_some() {
            self.effects.moved(row);
        }
    }
}
