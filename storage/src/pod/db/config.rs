//! The configuration: one row a key, so that one bad value costs that key.

use cofferdam_protocol::pod::Config;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Binary;
use serde_json::{Map, Value};

use super::schema::config;
use crate::pod::error::{Error, Result};

/// Writes every key.
pub(super) fn put(database: &mut SqliteConnection, value: &Config) -> Result<()> {
    let keys = serde_json::to_value(value).map_err(|error| Error::Database(error.to_string()))?;
    for (key, value) in keys.as_object().into_iter().flatten() {
        let text = value.to_string();
        diesel::insert_into(config::table)
            .values((config::key.eq(key), config::value.eq(&text)))
            .on_conflict(config::key)
            .do_update()
            .set(config::value.eq(&text))
            .execute(database)?;
    }
    Ok(())
}

/// Whether a configuration was ever written.
pub(super) fn is_there(database: &mut SqliteConnection) -> Result<bool> {
    Ok(config::table.count().get_result::<i64>(database)? > 0)
}

/// Reads every key; a value that cannot be is the default's, with a complaint that begins with the key and a colon.
pub(super) fn load(database: &mut SqliteConnection) -> Result<(Config, Vec<String>)> {
    // As bytes: one text that is not UTF-8 would cost all of them.
    let columns = (sql::<Binary>("CAST(key AS BLOB)"), sql::<Binary>("CAST(value AS BLOB)"));
    let rows: Vec<(Vec<u8>, Vec<u8>)> = config::table.order(config::key).select(columns).load(database)?;
    let mut stored = Map::new();
    let mut complaints = Vec::new();
    for (key, value) in rows {
        let key = String::from_utf8_lossy(&key).into_owned();
        match serde_json::from_slice::<Value>(&value) {
            Ok(value) => drop(stored.insert(key, value)),
            Err(error) => complaints.push(format!("{key}: {error}")),
        }
    }
    // Whether the root is allowed is asked where it is used.
    let (config, messages) = Config::default().patched(&stored, |root| Ok(root.to_owned()));
    complaints.extend(messages);
    Ok((config, complaints))
}
