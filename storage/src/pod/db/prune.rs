//! Records that are too old or too many go, exports with their backups; files stay.

use cofferdam_protocol::pod::{Config, Diagnostic, LogLevel, TaskStatus};
use diesel::prelude::*;

use super::schema::tasks;
use super::start::plural;
use super::{PodDb, config, diagnostic, exports};
use crate::disk::Disk;
use crate::pod::error::Result;
use crate::pod::export;
use crate::pod::model::KeptExport;

const DAY_MS: i64 = 86_400_000;

/// The keys of the configuration that say how much is kept.
const BOUNDS: [&str; 3] = ["maxTasks", "maxExports", "retentionDays"];

/// What decides whether a task's record goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) row: i64,
    pub(super) is_terminal: bool,
    pub(super) created_at: i64,
    pub(super) ended_at: i64,
}

impl Candidate {
    /// Since when it has been of no more use.
    fn since(self) -> i64 {
        if self.ended_at > 0 { self.ended_at } else { self.created_at }
    }
}

/// Removes records as the configuration says. If what it says of that cannot be read nothing goes: by the defaults,
/// what somebody wanted to keep might.
pub(super) fn prune(db: &mut PodDb, now: i64) -> Result<Vec<Diagnostic>> {
    let (config, complaints) = db.read(config::load)?;
    let unread = |key: &str| complaints.iter().any(|why| why.starts_with(&format!("{key}: ")));
    if let Some(key) = BOUNDS.into_iter().find(|key| unread(key)) {
        let message = format!("no old records were removed, since {key} cannot be read; set it again");
        return Ok(vec![diagnostic(now, LogLevel::Warn, message)]);
    }
    let old_exports = db.surplus_exports(config.max_exports, "")?;
    let mut said = Vec::new();
    for id in &old_exports {
        let left = match db.export(id) {
            Ok(kept) => kept.and_then(|kept| discard_backups(&db.disk, &kept)),
            Err(error) => Some(format!("export {id} cannot be read, so its backups stay: {error}")),
        };
        said.extend(left.map(|message| diagnostic(now, LogLevel::Warn, message)));
    }
    let old_tasks = db.write(|database| {
        let rows: Vec<(i64, String, i64, i64)> = tasks::table
            .select((tasks::row, tasks::status, tasks::created_at, tasks::ended_at))
            .load(database)?;
        let candidates = rows.into_iter().map(|(row, status, created_at, ended_at)| Candidate {
            row,
            is_terminal: TaskStatus::parse(&status).is_some_and(TaskStatus::is_terminal),
            created_at,
            ended_at,
        });
        let old_tasks = outdated(candidates.collect(), &config, now);
        for row in &old_tasks {
            diesel::delete(tasks::table.find(row)).execute(database)?;
        }
        old_exports.iter().try_for_each(|id| exports::delete(database, id))?;
        Ok(old_tasks.len())
    })?;
    let counts = [(old_tasks, "task"), (old_exports.len(), "export")];
    let message = |(count, what)| {
        let message = format!("removed as too old or too many: {count} {what} record{}", plural(count));
        diagnostic(now, LogLevel::Info, message)
    };
    said.extend(counts.into_iter().filter(|(count, _)| *count > 0).map(message));
    Ok(said)
}

/// Removes the backups of an export whose record goes, whatever becomes of them: the target may be on a disk that is
/// not there any more. Says what a person should know then.
pub fn discard_backups(disk: &Disk, kept: &KeptExport) -> Option<String> {
    let left = export::discard(disk, kept).err()?;
    Some(format!("the record of export {} is removed, but not all of its backups: {left}", kept.record.id))
}

/// The rows of the tasks that go: of those that have ended, what is older than the retention, and the oldest above the
/// cap.
pub(super) fn outdated(mut tasks: Vec<Candidate>, config: &Config, now: i64) -> Vec<i64> {
    tasks.retain(|task| task.is_terminal);
    tasks.sort_by_key(|task| (task.since(), task.row));
    let window = config.retention_days.saturating_mul(DAY_MS);
    let is_old = |task: &Candidate| window > 0 && now.saturating_sub(task.since()) > window;
    let too_many = tasks.len().saturating_sub(usize::try_from(config.max_tasks).unwrap_or(usize::MAX));
    let old = tasks.partition_point(is_old);
    tasks[..too_many.max(old)].iter().map(|task| task.row).collect()
}
