//! `task.delete`: the record goes; the files stay.

use cofferdam_protocol::pod::{TaskDelete, TaskDeleted};

use super::{Facts, Outcome, Queue, Refusal, Verb};
use crate::pod::queue::rules::Step;

impl Verb for TaskDelete {
    type Found = ();

    fn apply(self, queue: &mut Queue, _: Facts<()>) -> Result<Outcome<TaskDeleted>, Refusal> {
        queue.permits(&self.task_id, Step::Delete)?;
        queue.remove(&self.task_id)?;
        Ok(Outcome::Done(TaskDeleted { ok: true, task_id: self.task_id }))
    }
}
