//! Tasks and their queue as one state machine without a disk, a clock or a mailbox: a request goes in, what it changes
//! comes out.

mod effects;
mod timers;
pub(super) mod verbs;

use std::collections::{BTreeMap, HashMap};

use cofferdam_protocol::pod::{Config, TaskId, TaskStatus, TaskSummary};
use cofferdam_storage::pod::{Loaded, TaskRecord};

use super::failure::Refusal;

pub(super) use effects::{Effects, TimerChange};

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
    next_row: i64,
    config: Config,
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
            next_row: loaded.next_row,
            config: loaded.config,
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

    /// The same, if it is not a migrated one.
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

    /// How many tasks have a slot.
    pub(super) fn active(&self) -> usize {
        self.tasks.values().filter(|task| task.summary.status.is_active()).count()
    }

    /// How many tasks wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a slot is free.
    pub(super) fn has_slot(&self) -> bool {
        self.active() < usize::try_from(self.config.max_concurrent).unwrap_or(0)
    }

    /// Inserts a new task; its row is decided here.
    pub(super) fn insert(&mut self, mut record: TaskRecord, at: i64) -> Result<(), Refusal> {
        let id =
            TaskId::new(record.summary.id.clone()).map_err(|error| Refusal::BadRequest(error.to_string()))?;
        record.row = self.next_row;
        self.next_row += 1;
        self.effects.changed(&id);
        self.effects.audit(&id, at, record.summary.status.as_str());
        self.index(record);
        Ok(())
    }

    /// Changes a task; the only way one changes. What the change means for the database, the events and the indices
    /// follows from the difference.
    pub(super) fn edit(
        &mut self,
        id: &str,
        at: i64,
        change: impl FnOnce(&mut TaskRecord),
    ) -> Result<&TaskRecord, Refusal> {
        let Some((id, mut record)) = self.tasks.remove_entry(id) else {
            return Err(Refusal::TaskNotFound(id.to_owned()));
        };
        let before = record.clone();
        change(&mut record);
        let (was, is) = (before.summary.status, record.summary.status);
        if record != before {
            self.effects.stored(&id);
        }
        if was != is {
            self.effects.audit(&id, at, is.as_str());
        }
        if was == TaskStatus::Queued && is != TaskStatus::Queued {
            self.leave_queue(record.row);
        }
        if is.is_terminal() && !was.is_terminal() {
            self.effects.timers.push(TimerChange::DisarmAll(id.clone()));
        }
        if record.summary != before.summary {
            let only_text = TaskSummary { last_text: String::new(), ..record.summary.clone() }
                == TaskSummary { last_text: String::new(), ..before.summary };
            match only_text {
                true => self.effects.text_changed(&id),
                false => self.effects.changed(&id),
            }
        }
        Ok(self.tasks.entry(id).insert_entry(record).into_mut())
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
        if record.summary.status == TaskStatus::Queued {
            self.waiting.insert(record.row, id.clone());
        }
        if !record.summary.session_id.is_empty() {
            self.sessions.insert(record.summary.session_id.clone(), id.clone());
        }
        self.tasks.insert(id, record);
    }

    /// Everybody behind that row moves up.
    fn leave_queue(&mut self, row: i64) {
        if self.waiting.remove(&row).is_some() {
            for id in self.waiting.range(row..).map(|(_, id)| id) {
                self.effects.moved(id);
            }
        }
    }
}
