//! `task.markStarting`, `task.markRunning`: the host says how far it is with the agent.

use cofferdam_protocol::pod::{LeaseId, TaskMarkRunning, TaskMarkStarting, TaskStatus};

use super::held::Held;
use super::{Queue, Refusal};
use crate::pod::queue::rules::Step;

impl Held for TaskMarkStarting {
    const STEP: Step = Step::MarkStarting;

    fn ids(&self) -> (&str, &LeaseId) {
        (&self.task_id, &self.lease_id)
    }

    /// Whoever has a slot is starting already: the slot came with that status.
    fn go(self, _: &mut Queue, _: i64) -> Result<(), Refusal> {
        Ok(())
    }
}

impl Held for TaskMarkRunning {
    const STEP: Step = Step::MarkRunning;

    fn ids(&self) -> (&str, &LeaseId) {
        (&self.task_id, &self.lease_id)
    }

    fn go(self, queue: &mut Queue, at: i64) -> Result<(), Refusal> {
        queue.edit(&self.task_id, at, |task| task.summary.status = TaskStatus::Running).map(drop)
    }
}
