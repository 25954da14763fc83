//! A target on a drive that is not there for a while: its mount point is another directory, or there is none.

use std::sync::Arc;

use super::faults::{DiesAt, temporary, visible};
use super::*;

/// An export of `x`, which replaces a file, and `y` that died at a step.
fn died_at(step: &'static str) -> Lab {
    let mut lab = Lab::new();
    lab.task(&[("x", "new"), ("y", "new")]);
    lab.target(&[("x", "old")]);
    let request = lab.request(&["x", "y"]);
    lab.run_on(&Disk::with_faults(Arc::new(DiesAt(step, false.into()))), request).unwrap_err();
    lab
}

impl Lab {
    fn unplug(&self, leaves_a_mount_point: bool) {
        files::rename(self.at("target"), self.at("drive"));
        if leaves_a_mount_point {
            files::mkdir(self.at("target"));
        }
    }

    fn plug_in(&self) {
        if self.at("target").exists() {
            assert_eq!(files::names(self.at("target")), [""; 0], "nothing is done where the drive is not");
            files::remove(self.at("target"));
        }
        files::rename(self.at("drive"), self.at("target"));
    }
}

#[test]
fn what_became_of_its_files_is_found_out_when_it_is_back() {
    for step in ["export.copied", "export.kept", "export.intended", "export.renamed"] {
        for leaves_a_mount_point in [true, false] {
            let what = format!("{step}, {leaves_a_mount_point}");
            let mut lab = died_at(step);
            lab.unplug(leaves_a_mount_point);
            for _ in 0..2 {
                lab.reconcile();
                assert_eq!(lab.store.record.as_ref().unwrap().status, ExportStatus::Interrupted, "{what}");
                assert!(!is_settled(&lab.kept()), "{what}");
                assert_eq!(lab.undo().conflicts.len(), 2, "{what}");
            }
            lab.plug_in();
            lab.reconcile();
            assert!(is_settled(&lab.kept()), "{what}");
            let done = if step == "export.renamed" { Status::Ok } else { Status::Fail };
            assert_eq!(statuses(lab.store.record.as_ref().unwrap()), [done, done], "{what}");
            assert_eq!(temporary(&lab), None, "{what}");
            assert!(lab.undo().conflicts.is_empty(), "{what}");
            assert_eq!(visible(&lab), pairs(&[("/x", "old")]), "{what}");
        }
    }
}

#[test]
fn an_undo_that_was_begun_is_not_taken_for_done_while_it_is_away() {
    for step in ["undo.begun", "undo.replaced"] {
        for leaves_a_mount_point in [true, false] {
            let mut lab = Lab::new();
            lab.task(&[("x", "new"), ("y", "new"), ("made/z", "new")]);
            lab.target(&[("x", "old")]);
            let before = lab.tree("target").into_keys().collect::<Vec<_>>();
            lab.copy(&["x", "y", "made"], ConflictMode::Overwrite);
            lab.undo_on(&Disk::with_faults(Arc::new(DiesAt(step, false.into()))), true).unwrap_err();
            lab.unplug(leaves_a_mount_point);
            assert_eq!(lab.undo().conflicts.len(), 3);
            lab.plug_in();
            assert!(lab.undo().conflicts.is_empty(), "{step}");
            assert_eq!(lab.tree("target").into_keys().collect::<Vec<_>>(), before, "{step}");
            assert_eq!(lab.texts(), pairs(&[("/x", "old")]), "{step}");
        }
    }
}

#[test]
fn a_copy_of_the_target_in_its_place_is_undone_by_what_it_holds() {
    let mut lab = Lab::new();
    lab.task(&[("x", "new"), ("y", "new")]);
    lab.target(&[("x", "old")]);
    lab.copy(&["x", "y"], ConflictMode::Overwrite);
    files::copy_tree(&lab.at("target"), &lab.at("copy"), None);
    files::remove(lab.at("target"));
    files::rename(lab.at("copy"), lab.at("target"));
    assert!(lab.undo().conflicts.is_empty());
    assert_eq!(visible(&lab), pairs(&[("/x", "old")]));
}
