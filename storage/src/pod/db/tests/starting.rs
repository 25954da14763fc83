//! Taking up work, and being killed while doing so.

use std::sync::Mutex;

use cofferdam_protocol::pod::{Config, ExportStatus, INTERRUPTED};

use super::importing::LEGACY;
use super::*;
use crate::pod::db::exports::insert;

#[test]
fn what_had_not_ended_is_interrupted_and_nothing_else_is_touched() {
    for status in TaskStatus::ALL {
        for ended_at in [0, NOW - 7] {
            let mut stored = task(1, "a", status);
            stored.summary.ended_at = ended_at;
            stored.summary.error = "earlier".to_owned();
            stored.summary.turn_deadline = NOW + 1;
            stored.summary.turns = 3;
            stored.open_turn = Some(4);
            stored.last_turn = Some(4);
            stored.deadline_passed = true;
            stored.cancel_requested = true;
            stored.reattached_from = Some(TaskStatus::Failed);
            let place = Place::with(&[put(&stored)]);
            let mut opened = place.open();
            let mut expected = stored.clone();
            let mut audited: &[&str] = &[];
            if !status.is_terminal() {
                audited = &["interrupted"];
                expected.summary.status = TaskStatus::Interrupted;
                expected.summary.error = INTERRUPTED.to_owned();
                expected.summary.turn_deadline = 0;
                expected.summary.ended_at = if ended_at == 0 { NOW } else { ended_at };
                expected.open_turn = None;
                expected.deadline_passed = false;
                expected.cancel_requested = false;
                expected.reattached_from = None;
            }
            assert_eq!(opened.loaded.tasks, std::slice::from_ref(&expected), "{status:?}");
            assert_eq!(audit_of(&mut opened.db, "a"), audited);
            drop(opened);
            // Later starts find nothing to do.
            let again = place.try_open(&Disk::default(), NOW + 1000).unwrap();
            assert_eq!((again.loaded.tasks, again.diagnostics), (vec![expected], vec![]));
        }
    }
}

#[test]
fn an_export_that_ran_is_interrupted() {
    let place = Place::new();
    let mut db = place.open().db;
    let mut running = exports::record("a", "exp-1", NOW, 2);
    running.status = ExportStatus::Running;
    db.write(|database| insert(database, &running)).unwrap();
    exports::add(&mut db, "a", "exp-2", 1);
    drop(db);
    let mut opened = place.open();
    let found = exports::shown(&mut opened.db);
    let statuses: Vec<_> = found.iter().map(|export| export.status).collect();
    assert_eq!(statuses, [ExportStatus::Completed, ExportStatus::Interrupted]);
    assert_eq!(found[1].items, running.items);
    assert_eq!(opened.diagnostics[0].message, "interrupted by the restart: 1 export");
}

/// A database with something to do for every part of a start.
fn unfinished() -> Place {
    let mut changes: Vec<_> =
        [TaskStatus::Queued, TaskStatus::Starting, TaskStatus::Running, TaskStatus::Failed]
            .into_iter()
            .zip(1..)
            .map(|(status, row)| put(&task(row, &format!("t{row}"), status)))
            .collect();
    changes.push(Change::PutConfig(Box::new(Config { max_tasks: 12, max_exports: 5, ..Config::default() })));
    let place = Place::with(&changes);
    std::fs::write(place.legacy(), LEGACY).unwrap();
    let mut db = connect(&place.file);
    let mut running = exports::record("t1", "exp-1", NOW, 2);
    running.status = ExportStatus::Running;
    insert(&mut db, &running).unwrap();
    insert(&mut db, &exports::record("t1", "exp-0", 0, 2)).unwrap();
    place
}

/// All that a start leaves, to be compared.
fn state(opened: &mut Opened) -> String {
    let db = &mut opened.db;
    let audit = lines(db, "SELECT task || at || what AS line FROM audit ORDER BY task, key");
    let exports = exports::shown(db);
    format!("{:#?}{audit:#?}{exports:#?}", opened.loaded)
}

/// Copies the database's directory before each operation and at each step, as it would be after a power cut then.
#[derive(Debug)]
struct Snapshots {
    from: PathBuf,
    taken: Mutex<Vec<Place>>,
}

impl Snapshots {
    fn take(&self) {
        let place = Place::new();
        std::fs::create_dir_all(place.dir()).unwrap();
        std::fs::write(place.legacy(), LEGACY).unwrap();
        for entry in std::fs::read_dir(&self.from).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), place.dir().join(entry.file_name())).unwrap();
        }
        self.taken.lock().unwrap().push(place);
    }
}

impl FaultHook for Snapshots {
    fn before(&self, _: Op) -> io::Result<()> {
        self.take();
        Ok(())
    }

    fn step(&self, _: &str) -> io::Result<()> {
        self.take();
        Ok(())
    }
}

#[test]
fn wherever_a_start_is_killed_the_next_one_ends_in_the_same_state() {
    let place = unfinished();
    let hook = Arc::new(Snapshots { from: place.dir().to_owned(), taken: Mutex::default() });
    let mut opened = place.try_open(&Disk::with_faults(hook.clone()), NOW).unwrap();
    let expected = state(&mut opened);
    assert_eq!((opened.loaded.tasks.len(), opened.db.export_count().unwrap()), (12, 5));
    assert!(opened.loaded.tasks.iter().any(|task| task.summary.legacy));
    let killed = std::mem::take(&mut *hook.taken.lock().unwrap());
    assert!(killed.len() >= 5, "{}", killed.len());
    for (place, n) in killed.into_iter().zip(0..) {
        assert_eq!(state(&mut place.open()), expected, "killed at {n}");
    }
}

#[test]
fn whichever_operation_or_step_of_a_start_fails_the_next_one_ends_in_the_same_state() {
    let expected = state(&mut unfinished().open());
    for nth in 0.. {
        let place = unfinished();
        let (disk, hook) = FailNth::disk(nth);
        let first = place.try_open(&disk, NOW).map(drop);
        assert_eq!(first.is_err(), hook.has_failed(), "operation {nth}: {first:?}");
        assert_eq!(state(&mut place.open()), expected, "operation {nth}");
        if first.is_ok() {
            assert!(nth >= 5, "{nth}");
            return;
        }
    }
}
