//! What is committed is there, all of it or nothing.

use cofferdam_protocol::pod::{Config, TaskStatus};

use super::*;

#[test]
fn what_is_committed_is_loaded_again_also_after_a_restart() {
    let place = Place::new();
    let mut db = place.open().db;
    let mut first = task(1, "a", TaskStatus::Completed);
    db.commit(&[put(&first), put(&task(2, "b", TaskStatus::Failed)), audit("a", NOW, "completed")]).unwrap();
    first.summary.label = "other".to_owned();
    db.commit(&[put(&first), Change::DeleteTask(id("b"))]).unwrap();
    let loaded = db.load().unwrap();
    assert_eq!(loaded.tasks, [first]);
    assert_eq!((loaded.next_row, &loaded.config), (2, &Config::default()));
    assert!(db.exports(&crate::pod::ExportPage::all()).unwrap().is_empty());
    assert!(db.legacy_log("a").unwrap().is_empty());
    db.close().unwrap();
    assert_eq!(place.open().loaded, loaded);
}
