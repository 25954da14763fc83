//! The predecessor's file is imported once, and what the database has already stays.

use cofferdam_protocol::pod::{Config, LogLevel};

use super::*;

/// A file as the predecessor wrote it: 11 tasks and 7 exports.
pub(super) const LEGACY: &str = include_str!("../../legacy/vectors/legacy-isolation-pod-v0.1.3.json");

/// The id of its first task.
const FIRST: &str = "pod-mabc001";

fn imported(opened: &Opened) -> usize {
    opened.loaded.tasks.iter().filter(|task| task.summary.legacy).count()
}

#[test]
fn a_file_is_imported_once_and_left_as_it_is() {
    let place = Place::with(&[]);
    std::fs::write(place.legacy(), LEGACY).unwrap();
    let mut opened = place.open();
    assert_eq!((imported(&opened), opened.db.export_count().unwrap()), (11, 7));
    assert!(exports::shown(&mut opened.db).iter().all(|export| export.legacy));
    assert_eq!(opened.loaded.next_row, 12);
    let rows: Vec<_> = opened.loaded.tasks.iter().map(|task| task.row).collect();
    assert_eq!(rows, (1..12).collect::<Vec<_>>());
    let log = opened.db.legacy_log(FIRST).unwrap();
    assert_eq!((log.entries.len(), &log.notes.unwrap()["logCount"]), (15, &15.into()));
    assert_eq!(count(&mut opened.db, "legacy_notes"), 11);
    let hash = lines(&mut opened.db, "SELECT value AS line FROM meta WHERE key = 'legacy.imported'");
    assert_eq!(hash, [blake3::hash(LEGACY.as_bytes()).to_hex().to_string()]);
    // What was deleted does not come back.
    opened.db.commit(&[Change::DeleteTask(id(FIRST))]).unwrap();
    let log = opened.db.legacy_log(FIRST).unwrap();
    assert_eq!((log.entries, log.notes), (vec![], None));
    drop(opened);
    let again = place.open();
    assert_eq!((imported(&again), again.diagnostics.len()), (10, 0));
    assert_eq!(std::fs::read_to_string(place.legacy()).unwrap(), LEGACY);
}

#[test]
fn what_the_database_has_already_stays_as_it_is() {
    let mut mine = task(1, FIRST, TaskStatus::Completed);
    mine.summary.ended_at = NOW;
    let config = Config { max_concurrent: 7, ..Config::default() };
    let place = Place::with(&[put(&mine), Change::PutConfig(Box::new(config.clone()))]);
    std::fs::write(place.legacy(), LEGACY).unwrap();
    let opened = place.open();
    assert_eq!((imported(&opened), &opened.loaded.config), (10, &config));
    assert_eq!(opened.loaded.tasks[0], mine);
}

#[test]
fn a_file_that_is_not_there_or_broken_is_imported_once_it_is_whole() {
    let place = Place::with(&[]);
    assert_eq!(place.open().diagnostics, []);
    std::fs::write(place.legacy(), &LEGACY[..1000]).unwrap();
    for _ in 0..2 {
        let opened = place.open();
        assert!(opened.loaded.tasks.is_empty());
        let [said] = &*opened.diagnostics else { panic!("{:?}", opened.diagnostics) };
        assert_eq!(said.level, LogLevel::Error);
        assert!(said.message.contains("not imported"), "{said:?}");
    }
    std::fs::write(place.legacy(), LEGACY).unwrap();
    assert_eq!(imported(&place.open()), 11);
}
