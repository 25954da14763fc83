//! What is committed is there, all of it or nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cofferdam_protocol::pod::Config;
use cofferdam_tests::mount::Mount;
use cofferdam_tests::{files, skip};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::pod::db::commit::AUDIT_KEPT;

#[test]
fn what_is_committed_is_loaded_again_also_after_a_restart() {
    let place = Place::new();
    let mut db = place.open().db;
    let mut first = task(1, "a", TaskStatus::Completed);
    db.commit(&[put(&first), put(&task(2, "b", TaskStatus::Failed)), audit("a", NOW, "completed")]).unwrap();
    first.summary.label = "other".to_owned();
    let config = Config { max_concurrent: 5, sandbox_root: "/root".to_owned(), ..Config::default() };
    db.commit(&[put(&first), Change::DeleteTask(id("b")), Change::PutConfig(Box::new(config.clone()))])
        .unwrap();
    let loaded = db.load().unwrap();
    assert_eq!(loaded.tasks, [first]);
    assert_eq!((loaded.next_row, &loaded.config, &*loaded.diagnostics), (2, &config, &[][..]));
    db.close().unwrap();
    let opened = place.open();
    assert_eq!(opened.loaded, loaded);
    assert_eq!(opened.diagnostics, []);
}

fn any_task() -> impl Strategy<Value = TaskRecord> {
    let texts = vec(any::<String>(), 16);
    let numbers = vec(any::<i64>(), 7);
    let status = || proptest::sample::select(&TaskStatus::ALL[..]);
    let flags = any::<[bool; 4]>();
    let turns = any::<[Option<u64>; 2]>();
    let lists = [vec(any::<String>(), 0..3), vec(any::<String>(), 0..3)];
    let effort = any::<Option<String>>();
    let rest = (flags, turns, lists, effort, proptest::option::of(status()));
    (texts, numbers, status(), rest).prop_map(
        |(texts, numbers, status, (flags, turns, lists, effort, from))| {
            let mut texts = texts.into_iter();
            let mut text = || texts.next().unwrap();
            let mut numbers = numbers.into_iter();
            let mut number = || numbers.next().unwrap();
            let [allow, available_tools] = lists;
            let summary = TaskSummary {
                id: String::new(),
                session_id: text(),
                main_session_id: text(),
                label: text(),
                description: text(),
                status,
                subdir: text(),
                task_dir: text(),
                sandbox_root: text(),
                created_at: number(),
                queued_at: number(),
                started_at: number(),
                ended_at: number(),
                turns: number(),
                timeout_ms: number(),
                allow,
                available_tools,
                preset_id: text(),
                model: ModelChoice { provider: text(), model: text(), reasoning_effort: effort },
                sandbox_mode: text(),
                sandbox_probe: text(),
                fs_denied: flags[0],
                last_text: text(),
                error: text(),
                legacy: flags[1],
                turn_deadline: number(),
                queued_position: 0,
            };
            TaskRecord {
                row: 0,
                summary,
                open_turn: turns[0],
                last_turn: turns[1],
                deadline_passed: flags[2],
                cancel_requested: flags[3],
                reattached_from: from,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn every_record_is_loaded_as_it_was_committed_and_each_change_replaces_all_of_it(
        versions in vec(vec(any_task(), 3), 2)
    ) {
        let place = Place::new();
        let mut db = place.open().db;
        for mut tasks in versions {
            for (task, row) in tasks.iter_mut().zip(1..) {
                task.row = row;
                task.summary.id = format!("t{row}");
            }
            db.commit(&tasks.iter().map(put).collect::<Vec<_>>()).unwrap();
            prop_assert_eq!(db.load().unwrap().tasks, tasks);
        }
    }
}

#[test]
fn rows_are_the_order_and_a_deleted_task_takes_everything_of_it_along_but_exports() {
    let place = Place::new();
    let mut db = place.open().db;
    let tasks = [("c", 1), ("a", 2), ("b", 3)].map(|(id, row)| task(row, id, TaskStatus::Queued));
    db.commit(&tasks.each_ref().map(put)).unwrap();
    db.commit(&[audit("a", NOW, "x"), audit("b", NOW, "x")]).unwrap();
    exports::add(&mut db, "a", "exp-1", 1);
    assert_eq!(ids(&db.load().unwrap().tasks), ["c", "a", "b"]);
    db.commit(&[Change::DeleteTask(id("a")), Change::DeleteTask(id("unknown"))]).unwrap();
    let loaded = db.load().unwrap();
    assert_eq!((ids(&loaded.tasks), loaded.next_row), (vec!["c", "b"], 4));
    assert_eq!(count(&mut db, "audit"), 1);
    assert_eq!(exports::shown(&mut db)[0].task_id, "a");
}

#[test]
fn a_task_keeps_its_last_audit_rows() {
    let place = Place::new();
    let mut db = place.open().db;
    db.commit(&[put(&task(1, "a", TaskStatus::Queued)), put(&task(2, "b", TaskStatus::Queued))]).unwrap();
    db.commit(&[audit("b", NOW, "kept")]).unwrap();
    for batch in 0..3 {
        let changes: Vec<_> = (0..150).map(|n| audit("a", NOW, &format!("{}", batch * 150 + n))).collect();
        db.commit(&changes).unwrap();
    }
    let expected: Vec<_> = (450 - AUDIT_KEPT..450).map(|n| n.to_string()).collect();
    assert_eq!(audit_of(&mut db, "a"), expected);
    assert_eq!(audit_of(&mut db, "b"), ["kept"]);
}

#[test]
fn a_commit_that_fails_leaves_nothing_and_the_next_one_succeeds() {
    let place = Place::with(&[put(&task(1, "a", TaskStatus::Completed))]);
    let before = place.open().loaded;
    let mut failed = 0;
    for nth in 0.. {
        let (disk, hook) = FailNth::disk(nth);
        let Ok(opened) = place.try_open(&disk, NOW) else { continue };
        let mut db = opened.db;
        let changes = [put(&task(2, "b", TaskStatus::Completed)), Change::DeleteTask(id("a"))];
        if db.commit(&changes).is_ok() {
            assert!(!hook.has_failed() && failed > 0, "{failed}");
            return;
        }
        failed += 1;
        assert_eq!(db.load().unwrap(), before);
        db.commit(&[audit("a", NOW, "x")]).unwrap();
    }
}

#[test]
fn a_change_that_cannot_be_made_takes_the_whole_commit_back() {
    let place = Place::new();
    let mut db = place.open().db;
    let error = db.commit(&[put(&task(1, "a", TaskStatus::Queued)), audit("nobody", NOW, "x")]).unwrap_err();
    assert!(matches!(error, Error::Database(_)), "{error}");
    assert!(db.load().unwrap().tasks.is_empty());
    db.commit(&[put(&task(1, "a", TaskStatus::Queued))]).unwrap();
}

#[test]
fn a_panic_in_a_transaction_takes_it_back_and_the_lock_stays() {
    let place = Place::new();
    let mut db = place.open().db;
    db.commit(&[put(&task(1, "a", TaskStatus::Queued))]).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        db.write(|database| -> Result<()> {
            database.batch_execute("DELETE FROM tasks")?;
            panic!("planned")
        })
    }));
    panicked.unwrap_err();
    assert!(matches!(place.try_open(&Disk::default(), NOW), Err(Error::Locked(_))));
    assert_eq!(ids(&db.load().unwrap().tasks), ["a"]);
    db.commit(&[put(&task(2, "b", TaskStatus::Queued))]).unwrap();
}

#[test]
fn nothing_is_said_to_be_saved_to_a_file_that_was_removed_or_replaced() {
    type Damage = fn(&Place);
    let removed: Damage = |place| files::remove(&place.file);
    let replaced: Damage = |place| {
        let copy = files::read(&place.file);
        files::remove(&place.file);
        files::write(&place.file, copy);
    };
    for damage in [removed, replaced] {
        let place = Place::new();
        let mut db = place.open().db;
        db.commit(&[put(&task(1, "a", TaskStatus::Completed))]).unwrap();
        damage(&place);
        let error = db.commit(&[put(&task(2, "b", TaskStatus::Completed))]).unwrap_err();
        assert!(error.to_string().contains("removed or replaced"), "{error}");
        assert_eq!(ids(&db.load().unwrap().tasks), ["a"]);
    }
}

fn large(row: i64) -> Change {
    let mut task = task(row, &format!("t{row}"), TaskStatus::Completed);
    task.summary.description = "d".repeat(60_000);
    put(&task)
}

#[test]
fn the_log_stays_small_however_much_is_written() {
    let place = Place::new();
    let mut db = place.open().db;
    let mut largest = 0;
    for round in 0..400 {
        db.commit(&[large(round % 20)]).unwrap();
        largest = largest.max(place.file.with_extension("db-wal").metadata().unwrap().len());
    }
    assert!(largest < 8 << 20, "{largest}");
}

#[test]
fn a_full_disk_is_an_error_and_nothing_is_lost_or_half_done() {
    if !cofferdam_tests::user::is_root() {
        skip!("mounting needs root");
    }
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::tmpfs(&dir.path().join("small"), 1024);
    let ballast = mount.path().join("ballast");
    std::fs::write(&ballast, vec![0; 256 << 10]).unwrap();
    let file = mount.path().join("pod.db");
    let open = || PodDb::open(&Disk::default(), &file, None, &Protected::default(), NOW);
    let mut db = open().unwrap().db;
    let mut stored = 0;
    let error = loop {
        match db.commit(&[large(2 * stored + 1), large(2 * stored + 2)]) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, Error::Database(text) if text.contains("full")), "{error}");
    assert!(stored > 0);
    assert_eq!(db.load().unwrap().tasks.len(), 2 * usize::try_from(stored).unwrap());
    drop(db);
    // There may be too little space even to open it.
    files::remove(&ballast);
    let mut db = open().unwrap().db;
    db.commit(&[audit("t1", NOW, "space again")]).unwrap();
    assert_eq!(db.load().unwrap().tasks.len(), 2 * usize::try_from(stored).unwrap());
}
