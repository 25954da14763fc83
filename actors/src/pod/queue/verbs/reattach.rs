//! `task.reattach`: somebody takes a task up again, or takes it over from a holder that is gone.

use std::time::Duration;

use cofferdam_protocol::pod::{TaskId, TaskReattach, TaskResult, TaskStatus};

use super::{Claim, Facts, Outcome, Queue, Refusal, Verb};
use crate::pod::messages::Deadline;
use crate::pod::queue::life;
use crate::pod::queue::rules::Step;

/// How long a reattached task keeps its slot without a turn: a person may only be looking at it.
const TO_BEGIN: Duration = Duration::from_secs(60);

impl Verb for TaskReattach {
    type Found = ();

    /// The lease is taken next, so what its status refuses is refused here.
    fn admit(&self, queue: &Queue) -> Result<(), Refusal> {
        queue.live_task(&self.task_id)?;
        queue.check_files_stay(&self.task_id)?;
        queue.permits(&self.task_id, Step::Reattach).map(drop)
    }

    fn claim(&self) -> Option<Claim> {
        // The id is that of a task, as `admit` has seen; so it is one.
        TaskId::new(self.task_id.as_str()).ok().map(|id| Claim::Takes(id, self.lease_id.clone()))
    }

    /// It never waits for a slot. Times, turns and error stay; a turn that was open is lost with its holder.
    fn apply(self, queue: &mut Queue, facts: Facts<()>) -> Result<Outcome<TaskResult>, Refusal> {
        let id = self.task_id.as_str();
        let active = queue.task(id)?.summary.status.is_active();
        // Who holds an active task has nothing to take up.
        if facts.taken || !active {
            queue.edit(id, facts.at, |task| {
                let before = match active {
                    true => TaskStatus::Interrupted,
                    false => task.summary.status,
                };
                task.reattached_from.get_or_insert(before);
                life::close_turn(task);
                task.summary.status = TaskStatus::Starting;
            })?;
            queue.arm(&queue.id(id)?, Deadline::FirstTurn, TO_BEGIN);
        }
        queue.answer(id)
    }
}
