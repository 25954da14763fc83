//! `sandbox.prepare`: where a task may write.

use cofferdam_protocol::pod::{SandboxPrepare, SandboxPrepared};
use cofferdam_storage::pod::policy;

use super::{Facts, Outcome, Queue, Refusal, Verb};
use crate::pod::queue::rules::Step;

impl Verb for SandboxPrepare {
    type Found = ();

    fn admit(&self, queue: &Queue) -> Result<(), Refusal> {
        queue.live_task(&self.task_id).map(drop)
    }

    fn apply(self, queue: &mut Queue, _: Facts<()>) -> Result<Outcome<SandboxPrepared>, Refusal> {
        queue.permits(&self.task_id, Step::Prepare)?;
        let task = queue.shown(queue.task(&self.task_id)?);
        Ok(Outcome::Done(SandboxPrepared { policy: policy(&task.sandbox_root, &task.task_dir), task }))
    }
}
