//! What a host knows that only listens: answers and events in the order in which they come.

use std::collections::{HashMap, HashSet};

use cofferdam_protocol::pod::{PodEvent, TaskStatus, TaskSummary};

use super::operation::Answer;

/// A host's cache, which `task.changed` alone fills.
#[derive(Default)]
pub(super) struct Host {
    pub(super) tasks: HashMap<String, TaskSummary>,
    limit: usize,
    /// Left the queue for a slot, and `queue.dispatch` is still to come.
    undispatched: HashSet<String>,
    /// When each task's last text was told last.
    texts: HashMap<String, i64>,
}

/// What a stretch of events was about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Tasks that changed, in order.
    pub(super) changed: Vec<String>,
    /// Tasks that were dispatched, in order.
    pub(super) dispatched: Vec<String>,
    /// Turns that are out of time.
    pub(super) expired: Vec<(String, u64)>,
    /// How many warnings there were.
    pub(super) warnings: usize,
}

impl Host {
    /// A host that has just initialized its sidecar.
    pub(super) fn new(tasks: Vec<TaskSummary>, limit: usize) -> Self {
        let tasks = tasks.into_iter().map(|task| (task.id.clone(), task)).collect();
        Self { tasks, limit, ..Self::default() }
    }

    /// Takes an answer: no event tells of what is gone.
    pub(super) fn answered(&mut self, answer: &Answer) {
        match answer {
            Answer::Gone(ids) => ids.iter().for_each(|id| drop(self.tasks.remove(id))),
            Answer::Limit(limit) => self.limit = *limit,
            Answer::Task(_) | Answer::Nothing => {}
        }
    }

    /// Takes what was told between two answers, or while nobody asked.
    pub(super) fn heard(&mut self, events: Vec<PodEvent>, now: i64) -> Told {
        let mut told = Told::default();
        for event in events {
            match event {
                PodEvent::TaskChanged { task_id, status, task } => {
                    assert_eq!((task_id.as_str(), status), (task.id.as_str(), task.status));
                    self.changed(*task, now);
                    told.changed.push(task_id);
                }
                PodEvent::QueueDispatch { task_id } => {
                    assert!(self.undispatched.remove(&task_id), "{task_id} was dispatched without a slot");
                    told.dispatched.push(task_id);
                }
                PodEvent::DeadlineExpired { task_id, turn } => told.expired.push((task_id, turn)),
                PodEvent::CoreWarning { message, .. } => {
                    assert!(!message.is_empty());
                    told.warnings += 1;
                }
                PodEvent::ExportProgress { .. } => panic!("nothing was exported"),
            }
        }
        assert!(self.undispatched.is_empty(), "never dispatched: {:?}", self.undispatched);
        told
    }

    fn changed(&mut self, task: TaskSummary, now: i64) {
        let before = self.tasks.get(&task.id);
        assert_ne!(before, Some(&task), "told what was known");
        let was = before.map(|before| before.status);
        let starts = task.status == TaskStatus::Starting && matches!(was, None | Some(TaskStatus::Queued));
        if starts {
            assert!(self.active() < self.limit, "{} got a slot that was not free", task.id);
        }
        if starts && was.is_some() {
            self.undispatched.insert(task.id.clone());
        }
        if let Some(before) = before
            && (TaskSummary { last_text: task.last_text.clone(), ..before.clone() }) == task
            && let Some(last) = self.texts.insert(task.id.clone(), now)
        {
            assert!(now - last >= 250, "{} told its texts {} ms apart", task.id, now - last);
        }
        self.tasks.insert(task.id.clone(), task);
    }

    fn active(&self) -> usize {
        self.tasks.values().filter(|task| task.status.is_active()).count()
    }
}
