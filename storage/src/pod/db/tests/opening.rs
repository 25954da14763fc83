//! Which files are opened, which are left as they are, and who may have them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;

use cofferdam_tests::user::{self, NOBODY};
use cofferdam_tests::{files, skip};

use super::*;

/// If this fails, databases that people have would not fit any more: add a migration, raise the version, and freeze
/// the new schema beside the old ones.
#[test]
fn the_schema_of_a_version_is_frozen() {
    let place = Place::new();
    let mut db = place.open().db;
    let query = "SELECT coalesce(sql, name) || ';' AS line FROM sqlite_schema
                 WHERE name NOT LIKE '%diesel%' ORDER BY name";
    let schema: String = lines(&mut db, query).into_iter().map(|line| line + "\n").collect();
    assert_eq!(SCHEMA_VERSION, 1);
    assert_eq!(schema, include_str!("../frozen/v1.sql"));
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

/// All files of a directory.
fn content(dir: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap_or_default())).collect()
}

#[test]
fn a_new_database_its_log_and_its_directory_are_for_its_owner_only() {
    let place = Place::new();
    let db = place.open().db;
    assert_eq!(mode(place.dir()), 0o700);
    let names: Vec<_> = content(place.dir()).into_keys().collect();
    assert_eq!(names, ["pod.db", "pod.db-wal", "pod.db.lock"]);
    names.iter().for_each(|name| assert_eq!(mode(&place.dir().join(name)), 0o600, "{name:?}"));
    assert!(db.size() >= place.file.metadata().unwrap().len());
    db.close().unwrap();
    assert_eq!(content(place.dir()).into_keys().collect::<Vec<_>>(), ["pod.db", "pod.db.lock"]);
}

#[test]
fn a_second_opener_is_told_at_once_and_comes_in_when_the_first_is_gone() {
    let place = Place::new();
    let first = place.open();
    let error = place.try_open(&Disk::default(), NOW).unwrap_err();
    assert!(matches!(error, Error::Locked(_)), "{error}");
    assert!(error.to_string().contains("pod.db"), "{error}");
    drop(first);
    place.open();
}

#[test]
fn a_database_that_is_closed_stays_locked_for_who_still_works_for_it() {
    let place = Place::new();
    let db = place.open().db;
    let locked = db.keep_locked();
    db.close().unwrap();
    let error = place.try_open(&Disk::default(), NOW).unwrap_err();
    assert!(matches!(error, Error::Locked(_)), "{error}");
    drop(locked);
    place.open();
}

#[test]
fn nobody_else_can_read_or_write_what_is_open() {
    let place = Place::new();
    let _open = place.open();
    for script in ["SELECT count(*) FROM tasks", "BEGIN IMMEDIATE"] {
        let error = connect(&place.file).batch_execute(script).unwrap_err();
        assert!(error.to_string().contains("locked"), "{script}: {error}");
    }
}

#[test]
fn a_database_that_another_program_writes_to_is_an_error_until_it_ends() {
    let place = Place::with(&[put(&task(1, "a", TaskStatus::Running))]);
    let mut other = connect(&place.file);
    other.batch_execute("BEGIN IMMEDIATE").unwrap();
    let error = place.try_open(&Disk::default(), NOW).unwrap_err();
    assert!(matches!(&error, Error::Database(text) if text.contains("locked")), "{error}");
    other.batch_execute("ROLLBACK").unwrap();
    drop(other);
    assert_eq!(place.open().loaded.tasks[0].summary.status, TaskStatus::Interrupted);
}

#[test]
fn an_empty_file_and_a_first_start_that_was_cut_short_are_new_databases() {
    let migrations = "CREATE TABLE __diesel_schema_migrations (version VARCHAR(50) PRIMARY KEY NOT NULL,
                      run_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);";
    for script in ["", "PRAGMA journal_mode = WAL;", migrations] {
        let place = Place::new();
        std::fs::create_dir(place.dir()).unwrap();
        std::fs::write(&place.file, "").unwrap();
        place.edit(script);
        assert!(place.open().loaded.tasks.is_empty(), "{script}");
    }
}

/// The error of opening, and whether anything was changed by it.
fn refused(place: &Place) -> Error {
    let mut before = content(place.dir());
    let error = place.try_open(&Disk::default(), NOW).unwrap_err();
    let after = content(place.dir());
    before.insert("pod.db.lock".into(), Vec::new());
    assert!(after == before, "{error}: {:?}", after.keys());
    error
}

#[test]
fn a_file_that_is_no_database_of_ours_is_left_as_it_is() {
    let files: [(&[u8], &str); 3] = [
        (&[0xa5; 10_000], "not an SQLite database"),
        (b"{}", "not an SQLite database"),
        (b"SQLite format 3\0", "not an SQLite database"),
    ];
    for (bytes, expected) in files {
        let place = Place::new();
        std::fs::create_dir(place.dir()).unwrap();
        std::fs::write(&place.file, bytes).unwrap();
        let error = refused(&place);
        assert!(matches!(&error, Error::Database(text) if text.contains(expected)), "{error}");
    }
    let scripts = [
        "PRAGMA application_id = 7; CREATE TABLE theirs (x);",
        "PRAGMA application_id = 7; PRAGMA user_version = 9; CREATE TABLE theirs (x);",
        "PRAGMA user_version = 1; CREATE TABLE theirs (x);",
        "PRAGMA journal_mode = WAL; CREATE TABLE theirs (x);",
        "CREATE TABLE theirs (x);",
    ];
    for script in scripts {
        let place = Place::new();
        std::fs::create_dir(place.dir()).unwrap();
        place.edit(script);
        let error = refused(&place);
        assert!(
            matches!(&error, Error::Database(text) if text.contains("another program's")),
            "{script} {error}"
        );
    }
}

#[test]
fn a_database_of_a_newer_program_is_left_as_it_is() {
    let place = Place::with(&[put(&task(1, "a", TaskStatus::Running))]);
    place.edit("PRAGMA user_version = 2");
    let error = refused(&place);
    assert!(matches!(error, Error::NewerSchema { found: 2, known: 1 }), "{error}");
    let place = Place::new();
    std::fs::create_dir(place.dir()).unwrap();
    place.edit("PRAGMA user_version = 2; CREATE TABLE unknown (x)");
    let error = refused(&place);
    assert!(matches!(error, Error::NewerSchema { found: 2, known: 1 }), "{error}");
}

#[test]
fn a_damaged_database_is_left_as_it_is() {
    let changes: Vec<_> =
        (1..200).map(|row| put(&task(row, &format!("t{row}"), TaskStatus::Running))).collect();
    let whole = std::fs::read(&Place::with(&changes).file).unwrap();
    type Damage = (&'static str, fn(&mut Vec<u8>));
    let damages: [Damage; 3] = [
        ("cut", |bytes| bytes.truncate(bytes.len() / 8192 * 4096)),
        ("cut inside of a page", |bytes| bytes.truncate(bytes.len() - 1000)),
        ("overwritten", |bytes| bytes[4096..].iter_mut().for_each(|byte| *byte = 0xa5)),
    ];
    for (what, damage) in damages {
        let mut bytes = whole.clone();
        damage(&mut bytes);
        let place = Place::new();
        std::fs::create_dir(place.dir()).unwrap();
        std::fs::write(&place.file, bytes).unwrap();
        let error = refused(&place);
        assert!(matches!(&error, Error::Database(text) if text.contains("move it away")), "{what}: {error}");
    }
}

#[test]
fn an_empty_database_beside_a_log_is_left_as_it_is() {
    let place = Place::new();
    let mut db = place.open().db;
    db.commit(&[put(&task(1, "a", TaskStatus::Completed))]).unwrap();
    let log = place.dir().join("pod.db-wal");
    let written = std::fs::read(&log).unwrap();
    drop(db);
    std::fs::write(&place.file, "").unwrap();
    std::fs::write(&log, &written).unwrap();
    let error = refused(&place);
    assert!(matches!(&error, Error::Database(text) if text.contains("pod.db-wal")), "{error}");
}

#[test]
fn what_is_no_regular_file_is_refused_without_waiting() {
    let place = Place::with(&[]);
    let aside = place.dir().join("aside.db");
    files::rename(&place.file, &aside);
    type Make = fn(&Path, &Path);
    let made: [(&str, Make); 3] = [
        ("is a link; name the file that it leads to", |file, aside| files::symlink(aside, file)),
        ("is a directory; name a file in it", |file, _| files::mkdir(file)),
        ("is not a regular file; name another dbPath", |file, _| files::fifo(file)),
    ];
    for (why, make) in made {
        make(&place.file, &aside);
        let error = place.try_open(&Disk::default(), NOW).unwrap_err();
        assert!(matches!(&error, Error::Database(text) if text.ends_with(why)), "{error}");
        files::remove(&place.file);
    }
}

#[test]
fn a_file_or_directory_that_may_not_be_written_is_an_error_and_stays_as_it_is() {
    if !user::is_root() {
        skip!("only root can be somebody else");
    }
    let place = Place::with(&[put(&task(1, "a", TaskStatus::Running))]);
    files::chmod(place.dir().parent().unwrap(), 0o755);
    for (directory, file) in [(0o777, 0o644), (0o555, 0o666)] {
        files::chmod(place.dir(), directory);
        files::chmod(&place.file, file);
        files::remove(place.dir().join("pod.db.lock"));
        let before = std::fs::read(&place.file).unwrap();
        let error = user::as_user(NOBODY, || place.try_open(&Disk::default(), NOW).unwrap_err());
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert!(before == std::fs::read(&place.file).unwrap());
        files::chmod(place.dir(), 0o777);
        assert!(!place.dir().join("pod.db-wal").exists());
        std::fs::write(place.dir().join("pod.db.lock"), "").unwrap();
    }
}

#[test]
fn whichever_operation_of_a_first_start_fails_the_next_start_succeeds() {
    for nth in 0.. {
        let place = Place::new();
        let (disk, hook) = FailNth::disk(nth);
        let first = place.try_open(&disk, NOW).map(drop);
        assert_eq!(first.is_err(), hook.has_failed(), "operation {nth}: {first:?}");
        assert!(place.open().loaded.tasks.is_empty());
        if first.is_ok() {
            assert!(nth > 10, "{nth}");
            return;
        }
    }
}
