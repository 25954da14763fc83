//! What somebody else has written into the file costs no more than what it is about.

use cofferdam_protocol::pod::{Config, LogLevel};

use super::*;

#[test]
fn a_row_that_cannot_be_read_costs_that_row() {
    let edits = [
        "UPDATE tasks SET allow = '{' WHERE id = 'b'",
        "UPDATE tasks SET model = '7' WHERE id = 'b'",
        "UPDATE tasks SET reattached_from = 'nowhere' WHERE id = 'b'",
        "UPDATE tasks SET label = CAST(x'ff' AS TEXT) WHERE id = 'b'",
    ];
    for edit in edits {
        let tasks = ["a", "b", "c"].into_iter().zip(1..);
        let changes: Vec<_> = tasks.map(|(id, row)| put(&task(row, id, TaskStatus::Completed))).collect();
        let place = Place::with(&changes);
        place.edit(edit);
        let mut opened = place.open();
        assert_eq!(ids(&opened.loaded.tasks), ["a", "c"], "{edit}");
        let [said] = &*opened.loaded.diagnostics else { panic!("{edit}: {:?}", opened.loaded.diagnostics) };
        assert_eq!((said.at, said.level), (NOW, LogLevel::Error));
        assert!(said.message.contains("left out"), "{said:?}");
        // Its id can be used again.
        let again = task(opened.loaded.next_row, "b", TaskStatus::Queued);
        opened.db.commit(&[put(&again)]).unwrap();
        let loaded = opened.db.load().unwrap();
        assert_eq!(ids(&loaded.tasks), ["a", "c", "b"], "{edit}");
        assert_eq!(loaded.tasks[2], again);
    }
}

#[test]
fn a_configuration_value_that_cannot_be_used_costs_that_key() {
    let config = Config {
        max_tasks: 7,
        max_concurrent: 2,
        preset_id: "p".to_owned(),
        queue_enabled: false,
        ..Config::default()
    };
    let place = Place::with(&[Change::PutConfig(Box::new(config.clone()))]);
    place.edit(
        "UPDATE config SET value = '{' WHERE key = 'maxTasks';
         UPDATE config SET value = '\"many\"' WHERE key = 'maxConcurrent';
         UPDATE config SET value = CAST(x'22ff22' AS TEXT) WHERE key = 'presetId';
         INSERT INTO config VALUES ('unknown', '1')",
    );
    let loaded = place.open().loaded;
    let expected = Config { max_tasks: 200, max_concurrent: 3, preset_id: String::new(), ..config };
    assert_eq!(loaded.config, expected);
    assert_eq!(loaded.diagnostics.len(), 4, "{:?}", loaded.diagnostics);
    for said in loaded.diagnostics {
        assert!(said.message.starts_with("CONFIG_INVALID"), "{said:?}");
    }
}

#[test]
fn a_row_of_the_highest_number_is_no_overflow() {
    let last = task(i64::MAX, "a", TaskStatus::Completed);
    assert_eq!(Place::with(&[put(&last)]).open().loaded.next_row, i64::MAX);
}
