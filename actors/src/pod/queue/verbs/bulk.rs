//! `task.bulkCleanup`: many records go at once.

use cofferdam_protocol::pod::{BulkCleanupResult, BulkCleanupRow, TaskBulkCleanup, TaskStatus};
use cofferdam_storage::pod::TaskRecord;

use super::{Facts, Outcome, Queue, Refusal, Verb};

/// How many go at once.
const AT_ONCE: usize = 500;

impl Verb for TaskBulkCleanup {
    type Found = ();

    fn admit(&self, _: &Queue) -> Result<(), Refusal> {
        if self.delete_files {
            let why = "deleteFiles is not available in this version; clean up the records only";
            return Err(Refusal::BadRequest(why.to_owned()));
        }
        match &self.statuses {
            // Never a silent default where something is deleted.
            Some(statuses) if statuses.is_empty() => {
                Err(Refusal::BadRequest("statuses is empty; name some, or leave it out".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// What is active goes too, if that is asked for: its slot is free then, and its holder holds nothing.
    fn apply(self, queue: &mut Queue, facts: Facts<()>) -> Result<Outcome<BulkCleanupResult>, Refusal> {
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
        let mut results = Vec::new();
        for (_, _, task_id) in matching {
            queue.remove(&task_id)?;
            results.push(BulkCleanupRow { task_id, ok: true, code: String::new(), message: String::new() });
        }
        Ok(Outcome::Done(BulkCleanupResult { deleted: results.len(), results, more }))
    }
}

/// From when on a task is old.
fn ended(task: &TaskRecord) -> i64 {
    match task.summary.ended_at {
        0 => task.summary.created_at,
        at => at,
    }
}
