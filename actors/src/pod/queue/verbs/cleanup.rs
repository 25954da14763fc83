//! `task.cleanupFiles`: a task's directory goes; the record stays.

use std::path::Path;

use cofferdam_protocol::pod::{CleanupFilesResult, RootRefusal, TaskCleanupFiles, TaskSummary};
use cofferdam_storage::pod::{Error, TaskPlace, TaskRecord, remove_task_dir};

use super::{Facts, Later, Look, Outcome, Queue, Refusal, Site, Verb};
use crate::pod::queue::FileUse;

impl Verb for TaskCleanupFiles {
    type Found = Site;

    fn look(&self, _: &Queue, site: &Site) -> Look<Site> {
        Look::Ready(site.clone())
    }

    fn apply(self, queue: &mut Queue, facts: Facts<Site>) -> Result<Outcome<CleanupFilesResult>, Refusal> {
        let task = queue.task(&self.task_id)?;
        if !task.summary.status.is_terminal() {
            return Err(Refusal::Running(task.summary.status));
        }
        let place = queue.removable(&task.summary, |_| true)?;
        let held = queue.hold(&self.task_id, FileUse::Removed)?;
        Ok(Later::answer(vec![held], move || {
            Ok(CleanupFilesResult { ok: true, removed: remove(&facts.found, place.as_ref())? })
        }))
    }
}

/// Removes a task's directory. Says whether it was there; one on another system is not.
pub(super) fn remove(site: &Site, place: Option<&TaskPlace>) -> Result<bool, Error> {
    place.map_or(Ok(false), |place| remove_task_dir(&site.disk, place, &site.protected))
}

impl Queue {
    /// Which directory goes if a task's files do; an error if it must not, be it for the other tasks that `stay`.
    pub(super) fn removable(
        &self,
        task: &TaskSummary,
        stays: impl Fn(&TaskRecord) -> bool,
    ) -> Result<Option<TaskPlace>, Refusal> {
        self.check_unused(&task.id)?;
        let Some(place) = TaskPlace::of(task) else { return Ok(None) };
        let (root, dir) = (Path::new(&task.sandbox_root), Path::new(&task.task_dir));
        let current = Path::new(&self.config.sandbox_root);
        if dir == root || (current.is_absolute() && current.starts_with(dir)) {
            let what = format!("{} is the sandbox root itself, or around it, and stays", dir.display());
            return Err(RootRefusal::Protected(what).into());
        }
        if root.is_absolute() && !dir.starts_with(root) {
            let what = format!("{} is not below its sandbox root {}", dir.display(), root.display());
            return Err(Error::PathOutside(what).into());
        }
        let others = self.all().filter(|other| other.summary.id != task.id && stays(other));
        let sharing = others.filter(|other| Path::new(&other.summary.task_dir).starts_with(dir));
        match sharing.map(|other| other.summary.id.clone()).collect::<Vec<_>>() {
            sharing if sharing.is_empty() => Ok(Some(place)),
            sharing => Err(Refusal::SharedWith(sharing)),
        }
    }
}
