//! The schema does not change unnoticed, and the database works where space is short.

use std::path::Path;

use diesel::prelude::*;
use diesel::sql_types::Text;

use super::{Catalog, CatalogCopy, Publication, Target, connection};
use crate::ckpt::error::Error;
use crate::ckpt::format::{ObjectId, ObjectKind};
use crate::ckpt::pack::Written;
use crate::clock::{RandomIds, WallTime};
use crate::disk::Disk;
use crate::fs::FileIdentity;

fn register(catalog: &Catalog, path: &str) -> Result<(), Error> {
    let identity = FileIdentity::from_bytes(b"identity");
    catalog.register(Path::new(path), 7, &identity, false, WallTime(1)).map(drop)
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

/// If this fails, stores that people have would not fit any more: add a migration, raise the version, and freeze
/// the new schema beside the old ones.
#[test]
fn the_schema_of_a_version_is_frozen() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(&Disk::default(), dir.path()).unwrap();
    let query = "SELECT coalesce(sql, name) || ';' AS line FROM sqlite_schema
                 WHERE name NOT LIKE '%diesel%' ORDER BY name";
    let lines: Vec<Line> = catalog.read(|database| Ok(diesel::sql_query(query).load(database)?)).unwrap();
    let schema: String = lines.into_iter().map(|row| row.line + "\n").collect();
    assert_eq!(connection::SCHEMA_VERSION, 2);
    assert_eq!(schema, include_str!("frozen/v2.sql"));
    // By this an older program knows that it must leave the file alone.
    let version = catalog.read(|database| Ok(crate::sqlite::pragma(database, "user_version")?)).unwrap();
    assert_eq!(version, connection::SCHEMA_VERSION);
}

#[test]
fn a_copy_of_an_open_catalog_has_what_was_committed_and_goes_with_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let catalog = Catalog::open(&disk, dir.path()).unwrap();
    register(&catalog, "/one").unwrap();
    let copy = CatalogCopy::take(&disk, dir.path(), &RandomIds).unwrap();
    register(&catalog, "/two").unwrap();
    assert_eq!(copy.catalog().workspaces().unwrap().len(), 1);
    assert_eq!(catalog.workspaces().unwrap().len(), 2);
    let files = copy.catalog().dir.clone();
    assert!(files.exists());
    drop(copy);
    assert!(!files.exists());
}

#[test]
fn a_panic_in_a_transaction_takes_nothing_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(&Disk::default(), dir.path()).unwrap();
    register(&catalog, "/one").unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        catalog.write(|database| -> super::Attempt<()> {
            diesel::sql_query("UPDATE workspaces SET owner = 8").execute(database)?;
            panic!("planned")
        })
    }));
    assert!(panicked.is_err());
    register(&catalog, "/two").unwrap();
    let owners = catalog.workspaces().unwrap().into_iter().map(|row| row.workspace.owner);
    assert_eq!(owners.collect::<Vec<_>>(), [7, 7]);
}

#[test]
fn nothing_is_published_into_a_snapshot_that_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(&Disk::default(), dir.path()).unwrap();
    register(&catalog, "/one").unwrap();
    let key = catalog.workspaces().unwrap()[0].key;
    let target = Target::Rewrite { snapshot: 99 };
    let manifest = ObjectId::of(ObjectKind::Manifest, b"x");
    let published = catalog.publish(key, &target, None, &manifest, &Written::default(), &RandomIds);
    assert!(matches!(published, Ok(Publication::Refused(Error::Catalog(_)))), "{published:?}");
}

#[test]
fn a_file_that_is_no_database_is_damage_and_the_error_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("catalog.sqlite3"), "x".repeat(10_000)).unwrap();
    let error = Catalog::open(&Disk::default(), dir.path()).map(drop).unwrap_err();
    assert!(matches!(error, Error::Corrupt(_)), "{error}");
    assert!(error.to_string().contains("put catalog.sqlite3 of the state directory back"), "{error}");
}

#[test]
fn another_programs_database_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("catalog.sqlite3");
    let mut database = SqliteConnection::establish(file.to_str().unwrap()).unwrap();
    diesel::connection::SimpleConnection::batch_execute(
        &mut database,
        "PRAGMA user_version = 1; CREATE TABLE theirs (x)",
    )
    .unwrap();
    drop(database);
    let error = Catalog::open(&Disk::default(), dir.path()).map(drop).unwrap_err();
    assert!(error.to_string().contains("another program's"), "{error}");
}

#[test]
fn a_database_that_somebody_else_has_open_is_an_error_that_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let _held = Catalog::open(&Disk::default(), dir.path()).unwrap();
    let mut other =
        SqliteConnection::establish(dir.path().join("catalog.sqlite3").to_str().unwrap()).unwrap();
    let error = diesel::sql_query("SELECT * FROM packs").execute(&mut other).unwrap_err();
    assert!(error.to_string().contains("locked"), "{error}");
}
