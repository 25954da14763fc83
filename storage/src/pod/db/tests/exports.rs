//! Export records and the pages of their files.

use cofferdam_protocol::pod::{
    ConflictMode, ExportItem, ExportItemStatus, ExportMode, ExportRecord, ExportStatus,
};

use super::*;
use crate::pod::db::exports::insert;
use crate::pod::{ExportPage, KeptExport};

pub(super) fn record(task: &str, id: &str, at: i64, items: u64) -> ExportRecord {
    let item = |n: u64| ExportItem {
        status: ExportItemStatus::UndoConflict,
        src: format!("{n}.txt"),
        dst: format!("/target/{n}.txt"),
        bytes: n,
        hash: "00".repeat(32),
        existed: n.is_multiple_of(2),
        backup_path: String::new(),
        message: String::new(),
    };
    ExportRecord {
        id: id.to_owned(),
        task_id: task.to_owned(),
        label: "label".to_owned(),
        at,
        target_dir: "/target".to_owned(),
        mode: ExportMode::Move,
        conflict: ConflictMode::Rename,
        status: ExportStatus::Completed,
        undone_at: 5,
        legacy: true,
        items: (0..items).map(item).collect(),
        items_total: None,
        items_truncated: false,
    }
}

/// Puts an export with so many files into the database.
pub(super) fn add(db: &mut PodDb, task: &str, id: &str, items: u64) {
    add_at(db, task, id, NOW, items);
}

pub(super) fn add_at(db: &mut PodDb, task: &str, id: &str, at: i64, items: u64) {
    assert!(db.write(|database| insert(database, &record(task, id, at, items))).unwrap());
}

/// All that a list shows, of which nothing may be missing.
pub(super) fn shown(db: &mut PodDb) -> Vec<ExportRecord> {
    let found = db.exports(&ExportPage::all()).unwrap();
    assert!(!found.truncated);
    found.exports
}

#[test]
fn a_record_is_read_as_it_was_written_newest_first_and_inserted_once() {
    let place = Place::new();
    let mut db = place.open().db;
    add_at(&mut db, "a", "exp-1", 5, 3);
    add_at(&mut db, "a", "exp-2", 6, 0);
    add_at(&mut db, "b", "exp-3", 5, 1);
    let all = [record("a", "exp-2", 6, 0), record("b", "exp-3", 5, 1), record("a", "exp-1", 5, 3)];
    assert_eq!(shown(&mut db), all);
    assert!(!db.write(|database| insert(database, &record("z", "exp-1", 9, 9))).unwrap());
    assert_eq!(shown(&mut db), all);
    assert_eq!(db.export_count().unwrap(), 3);
}

#[test]
fn a_page_has_the_files_it_asks_for_and_says_how_many_there_are() {
    let place = Place::new();
    let mut db = place.open().db;
    add(&mut db, "a", "exp-1", 5000);
    add(&mut db, "a", "exp-2", 200);
    let mut pages = |export: Option<&str>, item_offset, item_limit| {
        let page = ExportPage { export: export.map(str::to_owned), item_offset, item_limit };
        let found = db.exports(&page).unwrap().exports.into_iter();
        found
            .map(|export| {
                let first = export.items.first().map(|item| item.bytes);
                (export.items.len(), first, export.items_total, export.items_truncated)
            })
            .collect::<Vec<_>>()
    };
    let whole = (200, Some(0), None, false);
    assert_eq!(pages(None, 0, 200), [whole, (200, Some(0), Some(5000), true)]);
    assert_eq!(pages(Some("exp-1"), 4900, 200), [(100, Some(4900), Some(5000), true)]);
    assert_eq!(pages(Some("exp-1"), 0, usize::MAX), [(5000, Some(0), None, false)]);
    assert_eq!(pages(Some("exp-1"), usize::MAX, usize::MAX), [(0, None, Some(5000), true)]);
    assert_eq!(pages(Some("exp-9"), 0, 200), []);
}

fn settle(export: &str, status: ExportStatus, undone_at: i64) -> Change {
    Change::SettleExport { export: export.to_owned(), status, undone_at }
}

#[test]
fn an_export_is_kept_as_its_changes_say() {
    let place = Place::new();
    let mut db = place.open().db;
    let mut expected = record("a", "exp-1", NOW, 3);
    expected.status = ExportStatus::Running;
    expected.legacy = false;
    db.commit(&[Change::PutExport(Box::new(expected.clone()))]).unwrap();
    assert_eq!(
        db.export("exp-1").unwrap(),
        Some(KeptExport { record: expected.clone(), notes: String::new() })
    );

    expected.items[1].status = ExportItemStatus::Ok;
    expected.items[1].dst = "/target/1-1.txt".to_owned();
    let added = ExportItem { status: ExportItemStatus::Skip, ..expected.items[0].clone() };
    expected.items.push(added.clone());
    (expected.status, expected.undone_at) = (ExportStatus::Failed, 9);
    let changes = [
        Change::PutExportItems {
            export: "exp-1".to_owned(),
            items: vec![(1, expected.items[1].clone()), (3, added)],
        },
        Change::PutExportNotes { export: "exp-1".to_owned(), notes: "times".to_owned() },
        settle("exp-1", ExportStatus::Failed, 9),
    ];
    db.commit(&changes).unwrap();
    let kept = KeptExport { record: expected, notes: "times".to_owned() };
    assert_eq!(db.export("exp-1").unwrap(), Some(kept));

    db.commit(&[Change::DeleteExport("exp-1".to_owned())]).unwrap();
    assert_eq!(db.export("exp-1").unwrap(), None);
    assert_eq!(count(&mut db, "export_items"), 0);
    // What comes too late changes nothing.
    db.commit(&changes).unwrap();
    assert_eq!((db.export_count().unwrap(), count(&mut db, "export_items")), (0, 0));
}

#[test]
fn an_export_that_runs_shows_what_is_planned_and_has_a_row_for_each_file_once_it_has_ended() {
    let place = Place::new();
    let mut db = place.open().db;
    let facts = count(&mut db, "meta");
    let mut expected = record("a", "exp-1", NOW, 5);
    expected.status = ExportStatus::Running;
    db.commit(&[Change::PutExport(Box::new(expected.clone()))]).unwrap();
    assert_eq!((count(&mut db, "export_items"), shown(&mut db)), (0, vec![expected.clone()]));

    expected.items[3].status = ExportItemStatus::Ok;
    let items = vec![(3, expected.items[3].clone())];
    db.commit(&[Change::PutExportItems { export: "exp-1".to_owned(), items }]).unwrap();
    assert_eq!(shown(&mut db), [expected.clone()]);
    for (item_offset, items) in [(0, 0..2), (2, 2..4), (4, 4..5), (9, 5..5)] {
        let page = ExportPage { export: Some("exp-1".to_owned()), item_offset, item_limit: 2 };
        let found = db.exports(&page).unwrap().exports.remove(0);
        assert_eq!(found.items, expected.items[items], "from {item_offset}");
        assert_eq!((found.items_total, found.items_truncated), (Some(5), true));
    }

    expected.status = ExportStatus::Failed;
    db.commit(&[settle("exp-1", ExportStatus::Failed, expected.undone_at)]).unwrap();
    assert_eq!((count(&mut db, "export_items"), shown(&mut db)), (5, vec![expected]));
    assert_eq!(count(&mut db, "meta"), facts, "what was planned is not kept");

    let running = ExportRecord { status: ExportStatus::Running, ..record("a", "exp-2", NOW, 5) };
    let delete = Change::DeleteExport("exp-2".to_owned());
    db.commit(&[Change::PutExport(Box::new(running)), delete]).unwrap();
    assert_eq!(count(&mut db, "meta"), facts);
}

#[test]
fn two_exports_do_not_share_an_id() {
    let place = Place::new();
    let mut db = place.open().db;
    let put = Change::PutExport(Box::new(record("a", "exp-1", NOW, 1)));
    db.commit(std::slice::from_ref(&put)).unwrap();
    let error = db.commit(&[settle("exp-1", ExportStatus::Failed, 1), put]).unwrap_err();
    assert!(matches!(error, Error::Database(_)), "{error}");
    assert_eq!(db.export("exp-1").unwrap().unwrap().record.status, ExportStatus::Completed);
}

#[test]
fn too_many_are_the_oldest_but_none_that_runs_and_not_the_one_that_was_just_made() {
    let place = Place::new();
    let mut db = place.open().db;
    for (export, at) in [("exp-1", 3), ("exp-2", 1), ("exp-3", 3), ("exp-4", 2), ("exp-5", 0)] {
        add_at(&mut db, "a", export, at, 1);
    }
    let mut surplus = |kept, besides: &str| db.surplus_exports(kept, besides).unwrap();
    assert_eq!(surplus(2, ""), ["exp-5", "exp-2", "exp-4"]);
    assert_eq!(surplus(2, "exp-2"), ["exp-5", "exp-4"]);
    assert_eq!(surplus(5, ""), [""; 0]);
    db.commit(&[settle("exp-5", ExportStatus::Running, 0)]).unwrap();
    assert_eq!(db.surplus_exports(2, "").unwrap(), ["exp-2", "exp-4"]);
}

#[test]
fn a_target_is_remembered_for_each_of_the_last_200_sessions() {
    let place = Place::new();
    let mut db = place.open().db;
    let remember = |session: i64, target: &str, at| Change::RememberTarget {
        session: format!("m{session}"),
        target_dir: target.to_owned(),
        at,
    };
    let changes: Vec<_> = (0..201).map(|n| remember(n, "/a", n)).collect();
    db.commit(&changes).unwrap();
    db.commit(&[remember(7, "/b", 300)]).unwrap();
    let remembered = db.remembered_targets().unwrap();
    assert_eq!((remembered.len(), remembered.get("m0")), (200, None));
    assert_eq!((remembered["m7"].as_str(), remembered["m200"].as_str()), ("/b", "/a"));
}

#[test]
fn a_list_reads_no_more_records_than_a_line_can_hold() {
    let place = Place::new();
    let mut db = place.open().db;
    let mut long = record("a", "", 0, 200);
    long.items.iter_mut().for_each(|item| item.src = "s".repeat(4000));
    for n in 0..20 {
        long.id = format!("exp-{n}");
        db.write(|database| insert(database, &long)).unwrap();
    }
    let found = db.exports(&ExportPage::all()).unwrap();
    let ids: Vec<_> = found.exports.iter().map(|export| export.id.as_str()).collect();
    // 6 of them make more than 4 MiB.
    assert_eq!(ids, ["exp-19", "exp-18", "exp-17", "exp-16", "exp-15", "exp-14"]);
    assert!(found.truncated);
    let one = ExportPage { export: Some("exp-0".to_owned()), ..ExportPage::all() };
    assert!(!db.exports(&one).unwrap().truncated);
}

#[test]
fn a_record_that_cannot_be_read_costs_that_record() {
    let edits = [
        "UPDATE exports SET label = CAST(x'ff' AS TEXT) WHERE id = 'exp-2'",
        "UPDATE export_items SET src = CAST(x'ff' AS TEXT) WHERE export = 2 AND position = 1",
    ];
    for edit in edits {
        let place = Place::new();
        let mut db = place.open().db;
        ["exp-1", "exp-2", "exp-3"].iter().for_each(|id| add(&mut db, "a", id, 2));
        drop(db);
        place.edit(edit);
        let mut db = place.open().db;
        let found = db.exports(&ExportPage::all()).unwrap();
        let ids: Vec<_> = found.exports.iter().map(|export| export.id.as_str()).collect();
        assert_eq!((ids, found.truncated), (vec!["exp-3", "exp-1"], true), "{edit}");
        let one = ExportPage { export: Some("exp-2".to_owned()), ..ExportPage::all() };
        assert!(matches!(db.exports(&one), Err(Error::Database(_))), "{edit}");
    }
}
