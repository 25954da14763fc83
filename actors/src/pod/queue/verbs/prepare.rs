//! `sandbox.prepare`: where a task may write.

use std::path::Path;

use cofferdam_protocol::pod::{SandboxPolicy, SandboxPrepare, SandboxPrepared, Subdir, TaskId};
use cofferdam_storage::pod::{check_root, make_task_dir, policy};

use super::{Facts, Look, Outcome, Queue, Refusal, Site, Verb};
use crate::pod::queue::rules::Step;

impl Verb for SandboxPrepare {
    type Found = Option<Result<SandboxPolicy, Refusal>>;

    fn admit(&self, queue: &Queue) -> Result<(), Refusal> {
        queue.live_task(&self.task_id)?;
        queue.permits(&self.task_id, Step::Prepare).map(drop)
    }

    /// Agents may write in the whole root, so while this task waited, another one's may have removed its directory or
    /// put a link in its place. What is gone is made again; nothing that leads out is handed out.
    fn look(&self, queue: &Queue, site: &Site) -> Look<Self::Found> {
        let Ok(task) = queue.task(&self.task_id) else { return Look::Ready(None) };
        let (summary, site) = (task.summary.clone(), site.clone());
        Look::Blocking(Box::new(move || {
            let found = || {
                let root = check_root(&summary.sandbox_root, &site.protected)?;
                let subdir = Subdir::new(&summary.subdir).map_err(Refusal::Subdir)?;
                let task = TaskId::new(summary.id).map_err(|error| Refusal::BadRequest(error.to_string()))?;
                make_task_dir(&site.disk, Path::new(&root), &subdir, &task)?;
                Ok(policy(&root, &summary.task_dir))
            };
            Some(found())
        }))
    }

    fn apply(
        self,
        queue: &mut Queue,
        facts: Facts<Self::Found>,
    ) -> Result<Outcome<SandboxPrepared>, Refusal> {
        let task = queue.shown(queue.task(&self.task_id)?);
        let policy = facts.found.unwrap_or(Err(Refusal::TaskNotFound(self.task_id)))?;
        Ok(Outcome::Done(SandboxPrepared { policy, task }))
    }
}
