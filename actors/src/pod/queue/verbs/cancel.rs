//! `task.cancel`: somebody does not want a task any more. Nobody has to hold it for that.

use std::time::Duration;

use cofferdam_protocol::pod::{TaskCancel, TaskResult, TaskStatus};

use super::{Facts, Outcome, Queue, Refusal, Verb};
use crate::pod::messages::Deadline;
use crate::pod::queue::life;
use crate::pod::queue::rules::Step;

/// How long the host has to settle a task that was cancelled.
const TO_SETTLE: Duration = Duration::from_secs(30);

impl Verb for TaskCancel {
    type Found = ();

    fn admit(&self, queue: &Queue) -> Result<(), Refusal> {
        queue.live_task(&self.task_id).map(drop)
    }

    /// What waits is cancelled at once. What is active stays so until the host has ended its agent and says so.
    fn apply(self, queue: &mut Queue, facts: Facts<()>) -> Result<Outcome<TaskResult>, Refusal> {
        let (id, at) = (self.task_id.as_str(), facts.at);
        if queue.permits(id, Step::Cancel)? {
            let task = queue.task(id)?;
            if task.summary.status == TaskStatus::Queued {
                queue.edit(id, at, |task| life::end(task, TaskStatus::Cancelled, at))?;
            } else if let Some(before) = task.reattached_from {
                // Somebody only looked at it: nothing of it runs, and how it ended stays.
                queue.edit(id, at, |task| life::end_as_before(task, before, at))?;
            } else if !task.cancel_requested {
                queue.edit(id, at, |task| task.cancel_requested = true)?;
                let id = queue.id(id)?;
                queue.audit(&id, at, "cancel requested");
                queue.arm(&id, Deadline::Cancellation, TO_SETTLE);
            }
        }
        queue.answer(id)
    }
}
