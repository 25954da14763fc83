//! The one import of the predecessor's file.

use std::path::Path;

use cofferdam_protocol::pod::{Diagnostic, LogLevel};
use diesel::prelude::*;

use super::schema::{legacy_log, legacy_notes, meta, tasks};
use super::{PodDb, commit, config, diagnostic, exports, load};
use crate::pod::error::Result;
use crate::pod::legacy::{self, Legacy, LegacyTask};
use crate::pod::model::TaskRecord;
use crate::pod::sandbox::Protected;

/// The key under which it stands that the file was imported.
const IMPORTED: &str = "legacy.imported";

/// Imports the file, unless one was imported before. One that is not there or cannot be read may still be imported at
/// a later start.
pub(super) fn import(
    db: &mut PodDb,
    file: &Path,
    protected: &Protected,
    now: i64,
) -> Result<Vec<Diagnostic>> {
    if db.read(|database| Ok(meta::table.find(IMPORTED).count().get_result::<i64>(database)? > 0))? {
        return Ok(Vec::new());
    }
    let shown = file.display();
    match legacy::read(file, protected, now) {
        Ok(None) => Ok(Vec::new()),
        Ok(Some(found)) => {
            let (tasks, exports) = db.write(|database| insert(database, &found))?;
            let message = format!("{shown} was imported: {tasks} tasks, {exports} exports");
            let mut said = found.diagnostics;
            said.push(diagnostic(now, LogLevel::Info, message));
            Ok(said)
        }
        Err(why) => {
            let message = format!("{shown} was not imported, and is tried again at the next start: {why}");
            Ok(vec![diagnostic(now, LogLevel::Error, message)])
        }
    }
}

/// What the database has already stays as it is.
fn insert(database: &mut SqliteConnection, found: &Legacy) -> Result<(usize, usize)> {
    if !config::is_there(database)? {
        config::put(database, &found.config)?;
    }
    let (mut tasks, mut exports) = (0, 0);
    for task in &found.tasks {
        tasks += usize::from(insert_task(database, task)?);
    }
    for record in &found.exports {
        exports += usize::from(exports::insert(database, record)?);
    }
    diesel::insert_into(meta::table)
        .values((meta::key.eq(IMPORTED), meta::value.eq(&found.hash)))
        .execute(database)?;
    Ok((tasks, exports))
}

fn insert_task(database: &mut SqliteConnection, task: &LegacyTask) -> Result<bool> {
    let LegacyTask { summary, side, log } = task;
    let id = &summary.id;
    if tasks::table.filter(tasks::id.eq(id)).count().get_result::<i64>(database)? > 0 {
        return Ok(false);
    }
    let record = TaskRecord {
        row: load::next_row(database)?,
        summary: summary.clone(),
        open_turn: None,
        last_turn: None,
        deadline_passed: false,
        cancel_requested: false,
        reattached_from: None,
    };
    commit::insert(database, &record)?;
    diesel::insert_into(legacy_notes::table)
        .values((legacy_notes::task.eq(id), legacy_notes::notes.eq(side)))
        .execute(database)?;
    for (entry, position) in log.iter().zip(0_i64..) {
        diesel::insert_into(legacy_log::table)
            .values((
                legacy_log::task.eq(id),
                legacy_log::position.eq(position),
                legacy_log::seq.eq(entry.seq),
                legacy_log::event.eq(&entry.event),
                legacy_log::kind.eq(&entry.kind),
                legacy_log::time.eq(entry.time),
                legacy_log::text.eq(&entry.text),
                legacy_log::think.eq(&entry.think),
            ))
            .execute(database)?;
    }
    Ok(true)
}
