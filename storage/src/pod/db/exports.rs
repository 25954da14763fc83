//! Export records.

use std::collections::{BTreeMap, HashSet};

use cofferdam_protocol::pod::{ExportItem, ExportRecord, ExportRows, ExportStatus, MAX_RESPONSE_LINE};
use diesel::prelude::*;
use diesel::result::Error as DatabaseError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::schema::{export_items, exports};
use super::{PodDb, planned};
use crate::pod::error::{Error, Result};
use crate::pod::export;
use crate::pod::model::{ExportPage, KeptExport};

#[derive(Queryable)]
struct ExportRow {
    key: i64,
    id: String,
    task: String,
    label: String,
    at: i64,
    target_dir: String,
    mode: String,
    conflict: String,
    status: String,
    undone_at: i64,
    legacy: bool,
    notes: String,
}

#[derive(Queryable, Insertable)]
#[diesel(table_name = export_items, treat_none_as_default_value = false)]
struct ItemRow {
    export: i64,
    position: i64,
    status: String,
    src: String,
    dst: String,
    bytes: i64,
    hash: String,
    existed: bool,
    backup_path: String,
    message: String,
}

/// How many files one statement inserts.
const TOGETHER: usize = 16;

impl PodDb {
    /// Export records, newest first; as many as a line can hold, and at least one. A record that cannot be read costs
    /// that record, unless it is the one that was asked for.
    pub fn exports(&mut self, page: &ExportPage) -> Result<ExportRows> {
        self.read(|database| {
            let mut wanted = exports::table
                .order((exports::at.desc(), exports::key.desc()))
                .select(exports::key)
                .into_boxed();
            if let Some(id) = &page.export {
                wanted = wanted.filter(exports::id.eq(id));
            }
            let mut found = ExportRows { exports: Vec::new(), remembered: BTreeMap::new(), truncated: false };
            let mut room = MAX_RESPONSE_LINE;
            for key in wanted.load::<i64>(database)? {
                if room == 0 {
                    found.truncated = true;
                    break;
                }
                match exports::table
                    .find(key)
                    .get_result(database)
                    .and_then(|row: ExportRow| row.record(database, page))
                {
                    Ok(record) => {
                        room = room.saturating_sub(serde_json::to_vec(&record).map_or(0, |json| json.len()));
                        found.exports.push(record);
                    }
                    Err(DatabaseError::DeserializationError(why)) if page.export.is_none() => {
                        tracing::error!(key, why, "an export record cannot be read and is left out");
                        found.truncated = true;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(found)
        })
    }

    /// One export with all of its files.
    pub fn export(&mut self, id: &str) -> Result<Option<KeptExport>> {
        let page = ExportPage { export: Some(id.to_owned()), item_offset: 0, item_limit: usize::MAX };
        self.read(|database| {
            let row: Option<ExportRow> =
                exports::table.filter(exports::id.eq(id)).get_result(database).optional()?;
            let Some(mut row) = row else { return Ok(None) };
            let notes = std::mem::take(&mut row.notes);
            Ok(Some(KeptExport { record: row.record(database, &page)?, notes }))
        })
    }

    /// The records that are too many if `kept` of them are enough, oldest first. None that runs, and not `besides`.
    pub fn surplus_exports(&mut self, kept: i64, besides: &str) -> Result<Vec<String>> {
        let running = word(&ExportStatus::Running)?;
        self.read(|database| {
            let mut surplus: Vec<(String, String)> = exports::table
                .order((exports::at.desc(), exports::key.desc()))
                .select((exports::id, exports::status))
                .offset(kept)
                .limit(i64::MAX)
                .load(database)?;
            surplus.retain(|(id, status)| id != besides && *status != running);
            Ok(surplus.into_iter().rev().map(|(id, _)| id).collect())
        })
    }

    /// The records of exports that have not ended, or of which a start has to find something out.
    pub(super) fn unsettled_exports(&mut self) -> Result<Vec<String>> {
        let running = word(&ExportStatus::Running)?;
        self.read(|database| {
            let unsettled = exports::status.eq(running).or(exports::notes.like(export::UNFINISHED));
            Ok(exports::table.filter(unsettled).order(exports::key).select(exports::id).load(database)?)
        })
    }

    /// How many export records there are.
    pub fn export_count(&mut self) -> Result<usize> {
        self.read(|database| {
            let count: i64 = exports::table.count().get_result(database)?;
            Ok(usize::try_from(count).unwrap_or(0))
        })
    }
}

impl ExportRow {
    fn record(self, database: &mut SqliteConnection, page: &ExportPage) -> QueryResult<ExportRecord> {
        let all = export_items::table.filter(export_items::export.eq(self.key));
        // Counted without gaps: the last one tells how many there are.
        let last: Option<i64> = all.select(diesel::dsl::max(export_items::position)).get_result(database)?;
        let first = i64::try_from(page.item_offset).unwrap_or(i64::MAX);
        let end = first.saturating_add(i64::try_from(page.item_limit).unwrap_or(i64::MAX));
        let rows: Vec<ItemRow> = all
            .filter(export_items::position.ge(first).and(export_items::position.lt(end)))
            .order(export_items::position)
            .load(database)?;
        let status = parse(self.status)?;
        let planned = match status {
            ExportStatus::Running => planned::get(database, &self.id)?,
            _ => Vec::new(),
        };
        let total = last.map_or(0, |last| usize::try_from(last).unwrap_or(0).saturating_add(1));
        let total = total.max(planned.len());
        let mut items: Vec<ExportItem> =
            planned.into_iter().skip(page.item_offset).take(page.item_limit).collect();
        for row in rows {
            let at = usize::try_from(row.position - first).unwrap_or(usize::MAX);
            match items.get_mut(at) {
                Some(item) => *item = row.item()?,
                None => items.push(row.item()?),
            }
        }
        let items_truncated = items.len() < total;
        Ok(ExportRecord {
            id: self.id,
            task_id: self.task,
            label: self.label,
            at: self.at,
            target_dir: self.target_dir,
            mode: parse(self.mode)?,
            conflict: parse(self.conflict)?,
            status,
            undone_at: self.undone_at,
            legacy: self.legacy,
            items,
            items_total: items_truncated.then_some(total),
            items_truncated,
        })
    }
}

impl ItemRow {
    fn of(export: i64, position: i64, item: &ExportItem) -> Result<Self> {
        Ok(Self {
            export,
            position,
            status: word(&item.status)?,
            src: item.src.clone(),
            dst: item.dst.clone(),
            bytes: item.bytes.cast_signed(),
            hash: item.hash.clone(),
            existed: item.existed,
            backup_path: item.backup_path.clone(),
            message: item.message.clone(),
        })
    }

    fn item(self) -> QueryResult<ExportItem> {
        Ok(ExportItem {
            status: parse(self.status)?,
            src: self.src,
            dst: self.dst,
            bytes: self.bytes.cast_unsigned(),
            hash: self.hash,
            existed: self.existed,
            backup_path: self.backup_path,
            message: self.message,
        })
    }
}

/// Inserts a record unless there is one of that id. Says whether it did.
pub(super) fn insert(database: &mut SqliteConnection, record: &ExportRecord) -> Result<bool> {
    let known = exports::table.filter(exports::id.eq(&record.id));
    if known.count().get_result::<i64>(database)? > 0 {
        return Ok(false);
    }
    diesel::insert_into(exports::table)
        .values((
            exports::id.eq(&record.id),
            exports::task.eq(&record.task_id),
            exports::label.eq(&record.label),
            exports::at.eq(record.at),
            exports::target_dir.eq(&record.target_dir),
            exports::mode.eq(word(&record.mode)?),
            exports::conflict.eq(word(&record.conflict)?),
            exports::status.eq(word(&record.status)?),
            exports::undone_at.eq(record.undone_at),
            exports::legacy.eq(record.legacy),
        ))
        .execute(database)?;
    match record.status {
        ExportStatus::Running => planned::put(database, record)?,
        _ => {
            let key: i64 = known.select(exports::key).get_result(database)?;
            put_rows(database, key, record.items.iter().enumerate())?;
        }
    }
    Ok(true)
}

/// Inserts or replaces files of a record. Of one that is gone they are not kept.
pub(super) fn put_items(
    database: &mut SqliteConnection,
    export: &str,
    items: &[(usize, ExportItem)],
) -> Result<()> {
    let key = exports::table.filter(exports::id.eq(export)).select(exports::key);
    let Some(key) = key.first::<i64>(database).optional()? else { return Ok(()) };
    put_rows(database, key, items.iter().map(|(position, item)| (*position, item)))
}

/// Inserts or replaces files of the record with that key.
fn put_rows<'i>(
    database: &mut SqliteConnection,
    key: i64,
    items: impl Iterator<Item = (usize, &'i ExportItem)>,
) -> Result<()> {
    let row = |(position, item)| ItemRow::of(key, i64::try_from(position).unwrap_or(i64::MAX), item);
    let rows = items.map(row).collect::<Result<Vec<_>>>()?;
    // As many as always, or one: either statement is planned once. One for any number would be planned anew each time.
    let (groups, rest) = rows.as_chunks::<TOGETHER>();
    for group in groups {
        diesel::replace_into(export_items::table).values(group).execute(database)?;
    }
    for row in rest {
        diesel::replace_into(export_items::table).values(row).execute(database)?;
    }
    Ok(())
}

/// Says how an export stands.
pub(super) fn settle(
    database: &mut SqliteConnection,
    export: &str,
    status: ExportStatus,
    undone_at: i64,
) -> Result<()> {
    diesel::update(exports::table.filter(exports::id.eq(export)))
        .set((exports::status.eq(word(&status)?), exports::undone_at.eq(undone_at)))
        .execute(database)?;
    match status {
        ExportStatus::Running => Ok(()),
        _ => put_what_stayed_planned(database, export),
    }
}

/// Gives each file of an export that has ended its row.
fn put_what_stayed_planned(database: &mut SqliteConnection, export: &str) -> Result<()> {
    let planned = planned::get(database, export)?;
    let key = exports::table.filter(exports::id.eq(export)).select(exports::key);
    if !planned.is_empty()
        && let Some(key) = key.get_result::<i64>(database).optional()?
    {
        let known = export_items::table.filter(export_items::export.eq(key)).select(export_items::position);
        let known: HashSet<i64> = known.load(database)?.into_iter().collect();
        let is_new = |(at, _): &(usize, &ExportItem)| !i64::try_from(*at).is_ok_and(|at| known.contains(&at));
        put_rows(database, key, planned.iter().enumerate().filter(is_new))?;
    }
    planned::delete(database, export)
}

/// Replaces what an export's undo must know.
pub(super) fn put_notes(database: &mut SqliteConnection, export: &str, notes: &str) -> Result<()> {
    diesel::update(exports::table.filter(exports::id.eq(export)))
        .set(exports::notes.eq(notes))
        .execute(database)?;
    Ok(())
}

/// Deletes a record with its files.
pub(super) fn delete(database: &mut SqliteConnection, export: &str) -> Result<()> {
    diesel::delete(exports::table.filter(exports::id.eq(export))).execute(database)?;
    planned::delete(database, export)
}

/// The word that the wire has for it, which is the database's too.
pub(super) fn word(value: &impl Serialize) -> Result<String> {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => Ok(word),
        _ => Err(Error::Database("a word was expected".to_owned())),
    }
}

fn parse<T: DeserializeOwned>(word: String) -> QueryResult<T> {
    serde_json::from_value(Value::String(word))
        .map_err(|error| DatabaseError::DeserializationError(Box::new(error)))
}
