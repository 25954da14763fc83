//! Methods that change nothing.

use cofferdam_protocol::pod::{ConfigGet, ConfigResult, TaskGet, TaskResult};

use super::{Outcome, Queue, Refusal, Verb};

impl Verb for ConfigGet {
    type Found = ();

    fn apply(self, queue: &mut Queue, _: i64, (): ()) -> Result<Outcome<ConfigResult>, Refusal> {
        Ok(Outcome::Done(ConfigResult { config: queue.config().clone() }))
    }
}

impl Verb for TaskGet {
    type Found = ();

    fn admit(&self, queue: &Queue) -> Result<(), Refusal> {
        queue.task(&self.task_id).map(drop)
    }

    fn apply(self, queue: &mut Queue, _: i64, (): ()) -> Result<Outcome<TaskResult>, Refusal> {
        Ok(Outcome::Done(TaskResult { task: queue.shown(queue.task(&self.task_id)?) }))
    }
}
