//! Making changes durable.

use cofferdam_protocol::pod::TaskId;
use diesel::prelude::*;
use std::collections::BTreeSet;

use super::schema::{audit, tasks};
use super::task::TaskRow;
use super::{PodDb, exports, remembered};
use crate::pod::error::{Error, Result};
use crate::pod::model::{Change, TaskRecord};

/// How many audit rows a task keeps.
pub(super) const AUDIT_KEPT: i64 = 200;

impl PodDb {
    /// Makes all changes durable, or none.
    pub fn commit(&mut self, changes: &[Change]) -> Result<()> {
        self.write(|database| {
            let mut audited = BTreeSet::new();
            for change in changes {
                match change {
                    Change::PutTask(task) => put(database, task)?,
                    Change::DeleteTask(id) => {
                        // What belongs to it goes with it.
                        diesel::delete(tasks::table.filter(tasks::id.eq(id.as_str()))).execute(database)?;
                    }
                    Change::PutExport(record) => {
                        if !exports::insert(database, record)? {
                            return Err(Error::Database(format!("export {} is there already", record.id)));
                        }
                    }
                    Change::PutExportItems { export, items } => exports::put_items(database, export, items)?,
                    Change::PutExportNotes { export, notes } => exports::put_notes(database, export, notes)?,
                    Change::SettleExport { export, status, undone_at } => {
                        exports::settle(database, export, *status, *undone_at)?;
                    }
                    Change::DeleteExport(id) => exports::delete(database, id)?,
                    Change::RememberTarget { session, target_dir, at } => {
                        remembered::put(database, session, target_dir, *at)?;
                    }
                    Change::PutConfig(config) => super::config::put(database, config)?,
                    Change::Audit { task, at, what } => {
                        note(database, task.as_str(), *at, what)?;
                        audited.insert(task);
                    }
                }
            }
            audited.into_iter().map(TaskId::as_str).try_for_each(|task| trim(database, task))
        })
    }
}

/// Inserts or replaces a task.
fn put(database: &mut SqliteConnection, task: &TaskRecord) -> Result<()> {
    let row = TaskRow::of(task)?;
    let known = tasks::table.filter(tasks::id.eq(&row.id));
    if diesel::update(known).set(&row).execute(database)? == 0 {
        diesel::insert_into(tasks::table).values(&row).execute(database)?;
    }
    Ok(())
}

/// Inserts a task that is not there.
pub(super) fn insert(database: &mut SqliteConnection, task: &TaskRecord) -> Result<()> {
    diesel::insert_into(tasks::table).values(&TaskRow::of(task)?).execute(database)?;
    Ok(())
}

/// Adds an audit row.
pub(super) fn note(database: &mut SqliteConnection, task: &str, at: i64, what: &str) -> Result<()> {
    diesel::insert_into(audit::table)
        .values((audit::task.eq(task), audit::at.eq(at), audit::what.eq(what)))
        .execute(database)?;
    Ok(())
}

/// Removes the audit rows of a task that are too many.
pub(super) fn trim(database: &mut SqliteConnection, task: &str) -> Result<()> {
    let newest_to_go = audit::table
        .filter(audit::task.eq(task))
        .order(audit::key.desc())
        .offset(AUDIT_KEPT)
        .limit(1)
        .select(audit::key);
    if let Some(key) = newest_to_go.first::<i64>(database).optional()? {
        diesel::delete(audit::table.filter(audit::task.eq(task).and(audit::key.le(key))))
            .execute(database)?;
    }
    Ok(())
}
