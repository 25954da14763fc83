//! `sandbox.prepare`: where a task may write.

use cofferdam_protocol::pod::{SandboxPolicy, SandboxPrepare, SandboxPrepared};
use cofferdam_storage::pod::policy;

use super::{Facts, Look, Outcome, Queue, Refusal, Site, Verb};
use crate::pod::queue::rules::Step;

impl Verb for SandboxPrepare {
    type Found = Option<SandboxPolicy>;

    fn admit(&self, queue: &Queue) -> Result<(), Refusal> {
        queue.live_task(&self.task_id)?;
        queue.permits(&self.task_id, Step::Prepare).map(drop)
    }

    fn look(&self, queue: &Queue, _: &Site) -> Look<Self::Found> {
        let Ok(task) = queue.task(&self.task_id) else { return Look::Ready(None) };
        let (root, dir) = (task.summary.sandbox_root.clone(), task.summary.task_dir.clone());
        Look::Blocking(Box::new(move || Some(policy(&root, &dir))))
    }

    fn apply(
        self,
        queue: &mut Queue,
        facts: Facts<Self::Found>,
    ) -> Result<Outcome<SandboxPrepared>, Refusal> {
        let task = queue.shown(queue.task(&self.task_id)?);
        let policy = facts.found.ok_or(Refusal::TaskNotFound(self.task_id))?;
        Ok(Outcome::Done(SandboxPrepared { policy, task }))
    }
}
