//! Which records go at a start.

use cofferdam_protocol::pod::Config;

use super::*;
use crate::pod::db::prune::{Candidate, outdated};

const DAY: i64 = 86_400_000;

fn config(max_tasks: i64, retention_days: i64) -> Config {
    Config { max_tasks, retention_days, max_exports: 2, ..Config::default() }
}

#[test]
fn what_has_ended_goes_by_age_and_by_number_oldest_first() {
    let ended = |row, ended_at| Candidate { row, is_terminal: true, created_at: NOW - 9 * DAY, ended_at };
    let tasks = vec![
        ended(1, NOW - DAY),
        // Ended at an unknown time: as old as its beginning.
        ended(2, 0),
        ended(3, NOW - 2 * DAY),
        Candidate { row: 4, is_terminal: false, created_at: 0, ended_at: 0 },
        ended(5, NOW - 2 * DAY - 1),
        ended(6, NOW - DAY),
    ];
    let table: [(i64, i64, &[i64]); 7] = [
        (200, 0, &[]),
        (200, 10, &[]),
        (200, 2, &[2, 5]),
        (5, 2, &[2, 5]),
        (2, 2, &[2, 5, 3]),
        (1, 0, &[2, 5, 3, 1]),
        (4, 0, &[2]),
    ];
    for (max_tasks, retention_days, expected) in table {
        let found = outdated(tasks.clone(), &config(max_tasks, retention_days), NOW);
        assert_eq!(found, expected, "{max_tasks} tasks, {retention_days} days");
    }
}

#[test]
fn a_start_keeps_the_newest_record_above_the_cap_and_everything_of_the_others_goes() {
    let tasks = ["a", "b", "c"].into_iter().zip(1..);
    let mut changes: Vec<_> = tasks
        .map(|(id, row)| {
            let mut task = task(row, id, TaskStatus::Completed);
            task.summary.ended_at = NOW - 10 * row;
            put(&task)
        })
        .collect();
    // Ends at the start, as the newest.
    changes.push(put(&task(4, "q", TaskStatus::Queued)));
    changes.push(audit("a", NOW, "x"));
    changes.push(Change::PutConfig(Box::new(config(1, 0))));
    let place = Place::with(&changes);
    let mut opened = place.open();
    assert_eq!(ids(&opened.loaded.tasks), ["q"]);
    assert_eq!(audit_of(&mut opened.db, "a"), [""; 0]);
    let said: Vec<_> = opened.diagnostics.iter().map(|said| said.message.as_str()).collect();
    assert_eq!(
        said,
        ["interrupted by the restart: 1 task", "removed as too old or too many: 3 task records"]
    );
}

#[test]
fn a_start_keeps_the_newest_exports_with_their_items() {
    let place = Place::with(&[Change::PutConfig(Box::new(config(1, 0)))]);
    let mut db = place.open().db;
    for (export, at) in [("exp-1", 3), ("exp-2", 1), ("exp-3", 3), ("exp-4", 2)] {
        exports::add_at(&mut db, "a", export, at, 2);
    }
    drop(db);
    let mut db = place.open().db;
    let found: Vec<_> = exports::shown(&mut db).into_iter().map(|export| export.id).collect();
    assert_eq!(found, ["exp-3", "exp-1"]);
    assert_eq!((db.export_count().unwrap(), count(&mut db, "export_items")), (2, 4));
}

#[test]
fn nothing_goes_by_a_bound_that_cannot_be_read() {
    for key in ["maxTasks", "maxExports", "retentionDays"] {
        let mut changes: Vec<_> =
            (1..4).map(|row| put(&task(row, &format!("t{row}"), TaskStatus::Completed))).collect();
        changes.push(Change::PutConfig(Box::new(config(1, 0))));
        let place = Place::new();
        let mut db = place.open().db;
        db.commit(&changes).unwrap();
        (0..3).for_each(|n| exports::add(&mut db, "a", &format!("exp-{n}"), 1));
        drop(db);
        place.edit(&format!("UPDATE config SET value = '{{' WHERE key = '{key}'"));
        let mut opened = place.open();
        assert_eq!((opened.loaded.tasks.len(), opened.db.export_count().unwrap()), (3, 3), "{key}");
        let [said] = &*opened.diagnostics else { panic!("{:?}", opened.diagnostics) };
        assert!(said.message.contains(key), "{said:?}");
        // Once it is set again, the bounds hold again.
        opened.db.commit(&[Change::PutConfig(Box::new(config(1, 0)))]).unwrap();
        drop(opened);
        let mut opened = place.open();
        assert_eq!((opened.loaded.tasks.len(), opened.db.export_count().unwrap()), (1, 2), "{key}");
    }
}
