//! `task.cleanupFiles`: a task's directory goes; the record stays.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

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
        let going = [&self.task_id].into();
        let (strangers, stay) = (queue.strangers(&going), queue.staying(&going));
        let held = queue.hold(&self.task_id, FileUse::Removed)?;
        Ok(Later::answer(vec![held], move || {
            let removed = Removal::new(facts.found, strangers, stay).remove(place.as_ref());
            removed.map(|removed| CleanupFilesResult { ok: true, removed })
        }))
    }
}

/// Removes directories that may go as far as memory can tell.
pub(super) struct Removal {
    site: Site,
    /// Where those stay that memory knows by another root.
    strangers: Vec<(String, PathBuf)>,
    /// The directories of all tasks that stay.
    stay: Vec<PathBuf>,
}

impl Removal {
    /// Looks where `strangers` are.
    pub(super) fn new(site: Site, strangers: Vec<(String, TaskPlace)>, stay: Vec<PathBuf>) -> Self {
        let resolved = |(id, place): (String, TaskPlace)| Some((id, place.resolved()?));
        Self { site, strangers: strangers.into_iter().filter_map(resolved).collect(), stay }
    }

    /// Removes a task's directory. Says whether it was there; one on another system is not.
    pub(super) fn remove(&self, place: Option<&TaskPlace>) -> Result<bool, Refusal> {
        let Some(place) = place else { return Ok(false) };
        if let Some(dir) = place.resolved() {
            let sharing = self.strangers.iter().filter(|(_, other)| other.starts_with(&dir));
            let sharing: Vec<String> = sharing.map(|(id, _)| id.clone()).collect();
            if !sharing.is_empty() {
                return Err(Refusal::SharedWith(sharing));
            }
        }
        Ok(remove_task_dir(&self.site.disk, place, &self.stay, &self.site.protected)?)
    }
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
    /// The directories of the tasks that stay while these go.
    pub(super) fn staying(&self, going: &HashSet<&String>) -> Vec<PathBuf> {
        let staying = self.all().filter(|task| !going.contains(&task.summary.id));
        staying.map(|task| PathBuf::from(&task.summary.task_dir)).collect()
    }

    /// Tasks that stay while these go, where some have another root: the same directory can have two names then, and
    /// only the disk can tell.
    pub(super) fn strangers(&self, going: &HashSet<&String>) -> Vec<(String, TaskPlace)> {
        let (gone, stay): (Vec<_>, Vec<_>) =
            self.all().map(|task| &task.summary).partition(|task| going.contains(&task.id));
        let roots: HashSet<&str> = gone.iter().map(|task| task.sandbox_root.as_str()).collect();
        let strangers = stay.into_iter().filter(|task| roots.iter().any(|root| *root != task.sandbox_root));
        strangers.filter_map(|task| Some((task.id.clone(), TaskPlace::of(task)?))).collect()
    }
}
