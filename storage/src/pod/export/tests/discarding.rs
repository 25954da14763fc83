//! Removing what was kept for an undo.

use std::sync::Arc;

use super::faults::{DiesAt, Meddles};
use super::*;

/// An export whose undo has left newer work of the user's among the backups, in the place of `x`'s.
fn with_newer_work() -> Lab {
    let mut lab = Lab::new();
    lab.task(&[("x", "new"), ("y", "new")]);
    lab.target(&[("x", "old"), ("y", "old")]);
    lab.copy(&["x"], ConflictMode::Overwrite);
    let meddles = Meddles(0, lab.at("target/x"), 0.into());
    lab.undo_on(&Disk::with_faults(Arc::new(meddles)), true).unwrap();
    assert_eq!(files::read(lab.at("target/.isolation-pod-undo/exp-1/x")), b"newer");
    lab
}

#[test]
fn newer_work_among_the_backups_keeps_a_record_until_it_is_put_back() {
    let mut lab = with_newer_work();
    let error = check_discard(&lab.kept()).unwrap_err();
    assert!(matches!(error, Error::UndoConflict { reason: "NEWER_WORK", .. }), "{error:?}");
    assert!(error.to_string().contains("/.isolation-pod-undo/exp-1/x"), "{error}");
    lab.undo();
    check_discard(&lab.kept()).unwrap();
    discard(&Disk::default(), &lab.kept()).unwrap();
    assert_eq!(lab.texts(), pairs(&[("/x", "newer"), ("/y", "old")]));
}

#[test]
fn a_record_that_goes_by_itself_spares_newer_work_and_says_so() {
    let lab = with_newer_work();
    files::write(lab.at("target/.isolation-pod-undo/exp-1/sub/mine"), "mine");
    let error = discard(&Disk::default(), &lab.kept()).unwrap_err();
    assert!(error.to_string().contains("newer"), "{error}");
    let expected = [
        ("/.isolation-pod-undo/exp-1/sub/mine", "mine"),
        ("/.isolation-pod-undo/exp-1/x", "newer"),
        ("/x", "old"),
        ("/y", "old"),
    ];
    assert_eq!(lab.texts(), pairs(&expected));
}

#[test]
fn what_an_undo_put_aside_keeps_a_record_until_it_is_finished() {
    let mut lab = Lab::new();
    lab.task(&[("out/x", "new")]);
    lab.copy(&["out"], ConflictMode::Overwrite);
    lab.undo_on(&Disk::with_faults(Arc::new(DiesAt("undo.replaced", false.into()))), true).unwrap_err();
    let aside = files::names(lab.at("target/out"));
    assert!(aside.len() == 1 && aside[0].ends_with(".old"), "{aside:?}");
    let error = check_discard(&lab.kept()).unwrap_err();
    assert!(matches!(error, Error::UndoConflict { reason: "UNDO_UNFINISHED", .. }), "{error:?}");
    let error = discard(&Disk::default(), &lab.kept()).unwrap_err();
    assert!(error.to_string().contains(&aside[0]), "{error}");
    assert_eq!(files::names(lab.at("target/out")), aside, "one that goes by itself leaves it");
    assert!(lab.undo().conflicts.is_empty());
    check_discard(&lab.kept()).unwrap();
    assert_eq!(files::names(lab.at("target")), [""; 0]);
}

#[test]
fn what_is_not_newer_work_goes() {
    let edit: [fn(&Path); 3] = [
        |_| {},
        // As a tool does that puts backups elsewhere and back.
        |backup| {
            let content = files::read(backup);
            files::remove(backup);
            files::write(backup, content);
        },
        // An undo has put the exported file there, and failed to remove it.
        |backup| files::write(backup, "new"),
    ];
    for edit in edit {
        let mut lab = Lab::new();
        lab.task(&[("x", "new"), ("out/y", "new")]);
        lab.target(&[("x", "old"), ("out/y", "old")]);
        let record = lab.copy(&["x", "out"], ConflictMode::Overwrite);
        edit(Path::new(&record.items[0].backup_path));
        check_discard(&lab.kept()).unwrap();
        discard(&Disk::default(), &lab.kept()).unwrap();
        assert_eq!(lab.texts(), pairs(&[("/out/y", "new"), ("/x", "new")]));
    }
}

#[test]
fn an_edited_backup_and_links_among_them_are_newer_work() {
    let edit: [fn(&Path); 3] = [
        |backup| files::write(backup, "edited"),
        |backup| {
            files::remove(backup);
            files::symlink("/etc/passwd", backup);
        },
        |backup| files::write(backup.with_file_name("mine"), "mine"),
    ];
    for edit in edit {
        let mut lab = Lab::new();
        lab.task(&[("x", "new")]);
        lab.target(&[("x", "old")]);
        let record = lab.copy(&["x"], ConflictMode::Overwrite);
        edit(Path::new(&record.items[0].backup_path));
        let before = lab.tree("target");
        check_discard(&lab.kept()).unwrap_err();
        assert_eq!(lab.tree("target"), before);
        discard(&Disk::default(), &lab.kept()).unwrap_err();
    }
}
