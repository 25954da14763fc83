//! `task.bulkCleanup`: many records go at once, with their files if that is asked for.

use std::collections::HashSet;

use cofferdam_protocol::pod::{BulkCleanupResult, BulkCleanupRow, TaskBulkCleanup, TaskStatus};
use cofferdam_storage::pod::{TaskPlace, TaskRecord};
use serde_json::json;

use super::cleanup::Removal;
use super::{Facts, Later, Look, Outcome, Queue, Refusal, Site, Then, Verb};
use crate::pod::failure::Failure;
use crate::pod::queue::{FileUse, life};

/// How many go at once.
const AT_ONCE: usize = 500;

impl Verb for TaskBulkCleanup {
    type Found = Site;

    fn admit(&self, _: &Queue) -> Result<(), Refusal> {
        match &self.statuses {
            // Never a silent default where something is deleted.
            Some(statuses) if statuses.is_empty() => {
                Err(Refusal::BadRequest("statuses is empty; name some, or leave it out".to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn look(&self, _: &Queue, site: &Site) -> Look<Site> {
        Look::Ready(site.clone())
    }

    /// What is active goes too, if that is asked for: its slot is free then, and its holder holds nothing. But its
    /// files do not.
    fn apply(self, queue: &mut Queue, facts: Facts<Site>) -> Result<Outcome<BulkCleanupResult>, Refusal> {
        let statuses = self.statuses.unwrap_or_else(|| vec![TaskStatus::Completed]);
        let old = |task: &TaskRecord| match self.older_than_ms {
            Some(limit) => facts.at.saturating_sub(ended(task)) > limit,
            None => true,
        };
        let mut matching: Vec<_> = queue
            .all()
            .filter(|task| statuses.contains(&task.summary.status) && old(task))
            .map(|task| (ended(task), task.row, task.summary.id.clone()))
            .collect();
        matching.sort_unstable();
        let more = matching.len() > AT_ONCE;
        matching.truncate(AT_ONCE);
        let tasks: Vec<String> = matching.into_iter().map(|(_, _, id)| id).collect();
        match self.delete_files {
            true => with_files(queue, tasks, more, facts.at, facts.found),
            false => Ok(Outcome::Done(queue.forget(tasks.into_iter().map(|id| (id, Ok(()))), more)?)),
        }
    }
}

/// The files go first, and then the records of those whose files are gone.
fn with_files(
    queue: &mut Queue,
    tasks: Vec<String>,
    more: bool,
    at: i64,
    site: Site,
) -> Result<Outcome<BulkCleanupResult>, Refusal> {
    let usable = |id: &&String| {
        let is_active = queue.task(id).is_ok_and(|task| task.summary.status.is_active());
        !is_active && queue.check_unused(id).is_ok()
    };
    let going: HashSet<String> = tasks.iter().filter(usable).cloned().collect();
    let mut places: Vec<(String, Result<Option<TaskPlace>, Refusal>)> = Vec::new();
    for id in tasks {
        let task = queue.task(&id)?;
        let place = match task.summary.status.is_active() {
            true => Err(Refusal::Running(task.summary.status)),
            false => queue.removable(&task.summary, |other| !going.contains(&other.summary.id)),
        };
        places.push((id, place));
    }
    let all = going.iter().collect();
    let (strangers, stay) = (queue.strangers(&all), queue.staying(&all));
    let mut holds = Vec::new();
    for (id, _) in places.iter().filter(|(_, place)| place.is_ok()) {
        if queue.task(id)?.summary.status == TaskStatus::Queued {
            // It must not begin while its files go.
            queue.edit(id, at, |task| life::end(task, TaskStatus::Cancelled, at))?;
        }
        holds.push(queue.hold(id, FileUse::Removed)?);
    }
    Ok(Outcome::Later(Later {
        holds,
        work: Box::new(move || {
            let removal = Removal::new(site, strangers, stay);
            let remove = |place: Option<TaskPlace>| removal.remove(place.as_ref()).map(drop);
            let gone: Vec<_> = places.into_iter().map(|(id, place)| (id, place.and_then(remove))).collect();
            Then::Change(Box::new(move |queue, _| queue.forget(gone, more)))
        }),
    }))
}

impl Queue {
    /// Removes the records of tasks with which nothing went wrong.
    fn forget(
        &mut self,
        tasks: impl IntoIterator<Item = (String, Result<(), Refusal>)>,
        more: bool,
    ) -> Result<BulkCleanupResult, Refusal> {
        let mut results = Vec::new();
        for (task_id, outcome) in tasks {
            results.push(match outcome {
                Ok(()) => {
                    // Somebody may have deleted it meanwhile.
                    if self.task(&task_id).is_ok() {
                        self.remove(&task_id)?;
                    }
                    BulkCleanupRow { task_id, ok: true, code: String::new(), message: String::new() }
                }
                Err(refusal) => {
                    let Failure { code, message, .. } = refusal.into();
                    let code = json!(code).as_str().unwrap_or_default().to_owned();
                    BulkCleanupRow { task_id, ok: false, code, message }
                }
            });
        }
        Ok(BulkCleanupResult { deleted: results.iter().filter(|row| row.ok).count(), results, more })
    }
}

/// From when on a task is old.
fn ended(task: &TaskRecord) -> i64 {
    match task.summary.ended_at {
        0 => task.summary.created_at,
        at => at,
    }
}
