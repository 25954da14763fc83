//! Reading what is kept in memory, and what is not.

use cofferdam_protocol::pod::{LegacyLog, LegacyLogEntry, LogLevel};
use diesel::connection::DefaultLoadingMode;
use diesel::prelude::*;
use diesel::result::Error as DatabaseError;

use super::schema::{legacy_log, legacy_notes, tasks};
use super::task::TaskRow;
use super::{PodDb, config, diagnostic};
use crate::pod::error::Result;
use crate::pod::model::Loaded;

impl PodDb {
    /// What is durable. A row that cannot be read costs that row.
    pub fn load(&mut self) -> Result<Loaded> {
        let at = self.opened_at;
        self.read(|database| {
            let (config, complaints) = config::load(database)?;
            let said =
                |why| diagnostic(at, LogLevel::Error, format!("CONFIG_INVALID in the database: {why}"));
            let mut diagnostics: Vec<_> = complaints.into_iter().map(said).collect();
            let mut loaded = Vec::new();
            for row in tasks::table.order(tasks::row).load_iter::<TaskRow, DefaultLoadingMode>(database)? {
                let decoded = match row {
                    Ok(row) => {
                        let id = row.id.clone();
                        row.record().map_err(|why| format!("task {id}: {why}"))
                    }
                    Err(DatabaseError::DeserializationError(why)) => Err(format!("a task: {why}")),
                    Err(error) => return Err(error.into()),
                };
                match decoded {
                    Ok(task) => loaded.push(task),
                    Err(why) => {
                        let message = format!("a row of the database cannot be read and is left out: {why}");
                        diagnostics.push(diagnostic(at, LogLevel::Error, message));
                    }
                }
            }
            let next_row = next_row(database)?;
            Ok(Loaded { tasks: loaded, next_row, config, diagnostics })
        })
    }

    /// The transcript of a migrated task, and what else its file said of it; empty for another one.
    pub fn legacy_log(&mut self, task: &str) -> Result<LegacyLog> {
        type Columns = (i64, String, String, i64, String, String);
        self.read(|database| {
            let rows: Vec<Columns> = legacy_log::table
                .filter(legacy_log::task.eq(task))
                .order(legacy_log::position)
                .select((
                    legacy_log::seq,
                    legacy_log::event,
                    legacy_log::kind,
                    legacy_log::time,
                    legacy_log::text,
                    legacy_log::think,
                ))
                .load(database)?;
            let entry = |(seq, event, kind, time, text, think)| LegacyLogEntry {
                seq,
                event,
                kind,
                time,
                text,
                think,
            };
            let entries = rows.into_iter().map(entry).collect();
            let notes: Option<String> =
                legacy_notes::table.find(task).select(legacy_notes::notes).get_result(database).optional()?;
            let notes = notes.and_then(|notes| serde_json::from_str(&notes).ok());
            Ok(LegacyLog { entries, truncated: false, notes })
        })
    }
}

/// The row that the next task gets.
pub(super) fn next_row(database: &mut SqliteConnection) -> Result<i64> {
    let newest: Option<i64> = tasks::table.select(diesel::dsl::max(tasks::row)).get_result(database)?;
    Ok(newest.unwrap_or(0).saturating_add(1))
}
