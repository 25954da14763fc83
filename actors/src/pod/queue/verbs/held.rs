//! Methods of whoever holds a task. They are refused in this order: the task is unknown, or migrated; the lease is not
//! the one that holds it; its status does not go with the method.

use cofferdam_protocol::pod::{HeartbeatResult, LeaseId, Method, TaskHeartbeat, TaskId, TaskResult};

use super::{Claim, Facts, Outcome, Queue, Refusal, Verb};
use crate::pod::queue::rules::Step;

/// A method of a task's holder that changes the task and answers with it.
pub(super) trait Held: Method<Result = TaskResult> {
    /// Its row in the table.
    const STEP: Step;

    /// Which task, and who says it holds it.
    fn ids(&self) -> (&str, &LeaseId);

    /// Refuses params that make no sense together.
    fn check(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// Carries it out where the table says that it goes.
    fn go(self, queue: &mut Queue, at: i64) -> Result<(), Refusal>;
}

impl<H: Held> Verb for H {
    type Found = ();

    fn admit(&self, queue: &Queue) -> Result<(), Refusal> {
        self.check()?;
        queue.live_task(self.ids().0).map(drop)
    }

    fn claim(&self) -> Option<Claim> {
        holds(self.ids())
    }

    fn apply(self, queue: &mut Queue, facts: Facts<()>) -> Result<Outcome<TaskResult>, Refusal> {
        let id = self.ids().0.to_owned();
        if queue.permits(&id, H::STEP)? {
            self.go(queue, facts.at)?;
        }
        queue.answer(&id)
    }
}

impl Verb for TaskHeartbeat {
    type Found = ();

    fn admit(&self, queue: &Queue) -> Result<(), Refusal> {
        queue.live_task(&self.task_id).map(drop)
    }

    fn claim(&self) -> Option<Claim> {
        holds((&self.task_id, &self.lease_id))
    }

    fn apply(self, queue: &mut Queue, _: Facts<()>) -> Result<Outcome<HeartbeatResult>, Refusal> {
        queue.permits(&self.task_id, Step::Heartbeat)?;
        Ok(Outcome::Done(HeartbeatResult { ok: true, task: queue.shown(queue.task(&self.task_id)?) }))
    }
}

/// The id is that of a task, as `admit` has seen; so it is one.
fn holds((id, lease): (&str, &LeaseId)) -> Option<Claim> {
    TaskId::new(id).ok().map(|id| Claim::Holds(id, lease.clone()))
}
