//! Taking up work: what a former process left behind is interrupted, the predecessor's file is imported once, and
//! what is too old or too much goes. Each is one transaction that can be done again without harm, so it does not
//! matter where a start is killed.

use std::path::Path;

use cofferdam_protocol::pod::{Diagnostic, ExportStatus, INTERRUPTED, LogLevel, TaskStatus};
use diesel::prelude::*;

use super::schema::tasks;
use super::{PodDb, commit, diagnostic, exports, import, prune};
use crate::pod::error::{Error, Result};
use crate::pod::export;
use crate::pod::model::KeptExport;
use crate::pod::sandbox::Protected;

/// Brings an opened database to where work begins.
pub(super) fn take_up(
    db: &mut PodDb,
    legacy: Option<&Path>,
    protected: &Protected,
    now: i64,
) -> Result<Vec<Diagnostic>> {
    let mut said = interrupt(db, now)?;
    reached(db, "pod.start.interrupted")?;
    if let Some(file) = legacy {
        said.extend(import::import(db, file, protected, now)?);
        reached(db, "pod.start.imported")?;
    }
    said.extend(prune::prune(db, now)?);
    reached(db, "pod.start.pruned")?;
    Ok(said)
}

/// A named step for tests that fail or kill it.
pub(super) fn reached(db: &PodDb, step: &str) -> Result<()> {
    db.disk.step(step).map_err(|error| Error::io(step, error))
}

/// Nobody works on anything any more.
fn interrupt(db: &mut PodDb, now: i64) -> Result<Vec<Diagnostic>> {
    // What became of an export is looked up on the disk first; nothing is lost if that is done once more.
    let mut exported = Vec::new();
    let mut interrupted_exports = 0;
    for id in db.unsettled_exports()? {
        let Some(kept) = db.export(&id)? else { continue };
        interrupted_exports += usize::from(kept.record.status == ExportStatus::Running);
        exported.push(export::reconcile(&db.disk, kept));
    }
    let unfinished = db.write(|database| {
        let words = TaskStatus::ALL.into_iter().filter(|status| !status.is_terminal());
        let unfinished = tasks::status.eq_any(words.map(TaskStatus::as_str).collect::<Vec<_>>());
        let ids: Vec<String> =
            tasks::table.filter(unfinished.clone()).order(tasks::row).select(tasks::id).load(database)?;
        diesel::update(tasks::table.filter(unfinished.clone().and(tasks::ended_at.eq(0))))
            .set(tasks::ended_at.eq(now))
            .execute(database)?;
        diesel::update(tasks::table.filter(unfinished))
            .set((
                tasks::status.eq(TaskStatus::Interrupted.as_str()),
                tasks::error.eq(INTERRUPTED),
                tasks::turn_deadline.eq(0),
                tasks::open_turn.eq(None::<i64>),
                tasks::deadline_passed.eq(false),
                tasks::cancel_requested.eq(false),
                tasks::reattached_from.eq(None::<String>),
            ))
            .execute(database)?;
        for id in &ids {
            commit::note(database, id, now, TaskStatus::Interrupted.as_str())?;
            commit::trim(database, id)?;
        }
        for KeptExport { record, notes } in &exported {
            let items: Vec<_> = record.items.iter().cloned().enumerate().collect();
            exports::put_items(database, &record.id, &items)?;
            exports::put_notes(database, &record.id, notes)?;
            exports::settle(database, &record.id, record.status, record.undone_at)?;
        }
        Ok(ids.len())
    })?;
    let counts = [(unfinished, "task"), (interrupted_exports, "export")];
    let message = |(count, what)| {
        let message = format!("interrupted by the restart: {count} {what}{}", plural(count));
        diagnostic(now, LogLevel::Info, message)
    };
    Ok(counts.into_iter().filter(|(count, _)| *count > 0).map(message).collect())
}

/// The ending of a noun of which there are so many.
pub(super) fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
