//! Where exports went, as far as a user wanted that remembered.

use std::collections::BTreeMap;

use diesel::prelude::*;

use super::PodDb;
use super::schema::remembered_targets::{self, at, session, target_dir};
use crate::pod::error::Result;

/// Of how many main sessions a target is kept.
const KEPT: i64 = 200;

impl PodDb {
    /// The remembered target of each main session that has one.
    pub fn remembered_targets(&mut self) -> Result<BTreeMap<String, String>> {
        self.read(|database| {
            let rows = remembered_targets::table.select((session, target_dir));
            Ok(rows.load::<(String, String)>(database)?.into_iter().collect())
        })
    }
}

/// Replaces a session's target.
pub(super) fn put(database: &mut SqliteConnection, of: &str, target: &str, now: i64) -> Result<()> {
    diesel::replace_into(remembered_targets::table)
        .values((session.eq(of), target_dir.eq(target), at.eq(now)))
        .execute(database)?;
    let oldest = remembered_targets::table.order((at.desc(), session)).select(session).offset(KEPT);
    let too_many: Vec<String> = oldest.limit(i64::MAX).load(database)?;
    diesel::delete(remembered_targets::table.filter(session.eq_any(too_many))).execute(database)?;
    Ok(())
}
