//! The files of an export that runs, as they were planned: one text, until a row says how a file ended.

use cofferdam_protocol::pod::{ExportItem, ExportRecord};
use diesel::prelude::*;

use super::schema::meta;
use crate::pod::error::{Error, Result};

/// Its key among the facts about the database.
fn key(export: &str) -> String {
    format!("export.planned.{export}")
}

/// Inserts the text of a record.
pub(super) fn put(database: &mut SqliteConnection, record: &ExportRecord) -> Result<()> {
    let text = serde_json::to_string(&record.items).map_err(|error| Error::Database(error.to_string()))?;
    diesel::insert_into(meta::table)
        .values((meta::key.eq(key(&record.id)), meta::value.eq(text)))
        .execute(database)?;
    Ok(())
}

/// The files of an export; none if there is no text, or none that can be read.
pub(super) fn get(database: &mut SqliteConnection, export: &str) -> QueryResult<Vec<ExportItem>> {
    let found = meta::table.find(key(export)).select(meta::value);
    let Some(text) = found.get_result::<String>(database).optional()? else { return Ok(Vec::new()) };
    Ok(serde_json::from_str(&text).unwrap_or_else(|error| {
        tracing::error!(export, %error, "what an export has planned cannot be read");
        Vec::new()
    }))
}

/// Deletes the text of an export, if there is one.
pub(super) fn delete(database: &mut SqliteConnection, export: &str) -> Result<()> {
    diesel::delete(meta::table.find(key(export))).execute(database)?;
    Ok(())
}
