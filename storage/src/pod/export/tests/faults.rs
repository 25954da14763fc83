//! Every operation of an export and of an undo fails once, and is the last of its process once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::io::Errno;

use super::*;
use crate::disk::testing::Faults;
use crate::disk::{FaultHook, Op};

const OLD: [(&str, &str); 4] = [("same", "same"), ("plain", "old"), ("linked", "old"), ("out/deep/y", "old")];
const NEW: [(&str, &str); 6] = [
    ("same", "same"),
    ("plain", "new"),
    ("linked", "new"),
    ("out/deep/y", "new"),
    ("out/made/z", "z"),
    ("free", "free"),
];

fn scene() -> Lab {
    let lab = Lab::new();
    lab.task(&NEW);
    lab.target(&OLD);
    files::hard_link(lab.at("target/linked"), lab.at("other"));
    lab
}

fn request(lab: &Lab, mode: ExportMode) -> ExportRequest {
    ExportRequest { mode, ..lab.request(&["same", "plain", "linked", "out", "free"]) }
}

/// Refuses some kinds of operations as filesystems do that do not know them.
#[derive(Debug)]
struct Lacks(&'static [Op], Errno);

impl FaultHook for Lacks {
    fn before(&self, op: Op) -> io::Result<()> {
        if self.0.contains(&op) { Err(self.1.into()) } else { Ok(()) }
    }

    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_filesystem_needs_neither_links_nor_exchanges_nor_directories_that_can_be_synced() {
    let table: [(&[Op], Errno); 5] = [
        (&[Op::Exchange], Errno::INVAL),
        (&[Op::Link], Errno::PERM),
        (&[Op::Link, Op::Exchange], Errno::OPNOTSUPP),
        (&[Op::Link], Errno::XDEV),
        (&[Op::Fsync], Errno::INVAL),
    ];
    for (ops, errno) in table {
        let disk = Disk::with_faults(Arc::new(Lacks(ops, errno)));
        let mut lab = scene();
        let request = request(&lab, ExportMode::Move);
        let before = lab.tree("target");
        let record = lab.run_on(&disk, request).unwrap();
        assert_eq!(record.status, ExportStatus::Completed, "{ops:?}");
        assert_truthful(&lab, &format!("without {ops:?}"));
        let undone = lab.undo_on(&disk, true).unwrap();
        assert!(undone.conflicts.is_empty(), "{ops:?}: {:?}", undone.conflicts);
        assert_eq!(lab.tree("target"), before, "{ops:?}");
    }
}

#[test]
fn a_filesystem_that_holds_neither_modes_nor_times_is_written_to() {
    let disk = Disk::with_faults(Arc::new(Lacks(&[Op::SetMeta, Op::Link], Errno::PERM)));
    let mut lab = scene();
    let before = visible(&lab);
    let request = request(&lab, ExportMode::Copy);
    let record = lab.run_on(&disk, request).unwrap();
    assert_eq!(record.status, ExportStatus::Completed);
    assert_eq!(lab.undo_on(&disk, true).unwrap().conflicts.len(), 0);
    assert_eq!(visible(&lab), before);
}

/// Everything fails from a named step on, as for a process that dies there.
#[derive(Debug)]
pub(super) struct DiesAt(pub &'static str, pub AtomicBool);

impl FaultHook for DiesAt {
    fn before(&self, _: Op) -> io::Result<()> {
        if self.1.load(Ordering::Relaxed) { Err(Errno::IO.into()) } else { Ok(()) }
    }

    fn step(&self, name: &str) -> io::Result<()> {
        self.1.fetch_or(name == self.0, Ordering::Relaxed);
        self.before(Op::Commit)
    }
}

#[test]
fn what_somebody_does_between_a_crash_and_the_next_start_is_kept() {
    let mut lab = Lab::new();
    let new = ["edited", "removed", "replaced", "untouched"].map(|name| (name, "new"));
    lab.task(&new);
    lab.target(&new.map(|(name, _)| (name, "old")));
    let disk = Disk::with_faults(Arc::new(DiesAt("export.renamed", false.into())));
    let request = lab.request(&["edited", "removed", "replaced", "untouched"]);
    lab.run_on(&disk, request).unwrap_err();
    files::write(lab.at("target/edited"), "newer");
    files::remove(lab.at("target/removed"));
    files::remove(lab.at("target/replaced"));
    files::write(lab.at("target/replaced"), "newer");
    lab.reconcile();
    let record = lab.store.record.clone().unwrap();
    assert_eq!(record.status, ExportStatus::Interrupted);
    assert_eq!(statuses(&record), [Status::Fail, Status::Fail, Status::Fail, Status::Ok]);
    for at in [0, 2] {
        assert_eq!(files::read(&record.items[at].backup_path), b"old", "{:?}", record.items[at]);
    }
    assert_eq!(files::read(lab.at("target/removed")), b"old", "what was there before is there again");
    lab.undo();
    let expected = [("/edited", "newer"), ("/removed", "old"), ("/replaced", "newer"), ("/untouched", "old")];
    assert_eq!(visible(&lab), pairs(&expected));
    discard(&Disk::default(), &lab.kept()).unwrap();
    assert_eq!(lab.texts(), pairs(&expected));
}

/// Somebody saves newer work just before an exchange; those before it are refused, and the one after it fails.
#[derive(Debug)]
pub(super) struct Meddles(pub u64, pub PathBuf, pub AtomicU64);

impl FaultHook for Meddles {
    fn before(&self, op: Op) -> io::Result<()> {
        if op != Op::Exchange {
            return Ok(());
        }
        match self.2.fetch_add(1, Ordering::Relaxed).cmp(&self.0) {
            std::cmp::Ordering::Less => Err(Errno::XDEV.into()),
            std::cmp::Ordering::Equal => {
                files::write(&self.1, "newer");
                Ok(())
            }
            std::cmp::Ordering::Greater => Err(Errno::IO.into()),
        }
    }

    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn newer_work_that_an_undo_took_by_mistake_is_given_back_by_the_next() {
    for refused in [0, 1] {
        let mut lab = Lab::new();
        lab.task(&[("x", "new")]);
        lab.target(&[("x", "old")]);
        lab.copy(&["x"], ConflictMode::Overwrite);
        let meddles = Meddles(refused, lab.at("target/x"), 0.into());
        let undone = lab.undo_on(&Disk::with_faults(Arc::new(meddles)), true).unwrap();
        assert_eq!(undone.conflicts.len(), 1, "{refused}");
        for _ in 0..2 {
            assert_eq!(lab.undo().conflicts.len(), 1, "{refused}");
            let expected = [("/.isolation-pod-undo/exp-1/x", "old"), ("/x", "newer")];
            assert_eq!(lab.texts(), pairs(&expected), "{refused}");
        }
    }
}

#[test]
fn a_filesystem_without_exclusive_renames_overwrites_nothing_either() {
    let disk = Disk::with_faults(Arc::new(Lacks(&[Op::Rename], Errno::INVAL)));
    let mut lab = scene();
    let request = ExportRequest { conflict: ConflictMode::Rename, ..lab.request(&["."]) };
    let before = lab.tree("target");
    let record = lab.run_on(&disk, request).unwrap();
    assert_eq!(record.status, ExportStatus::Completed);
    for (path, text) in OLD {
        assert_eq!(files::read(lab.at("target").join(path)), text.as_bytes());
    }
    assert_eq!(lab.undo_on(&disk, true).unwrap().conflicts.len(), 0);
    assert_eq!(lab.tree("target"), before);
}

/// Contents without the export's own directory.
pub(super) fn visible(lab: &Lab) -> Vec<(String, String)> {
    let mut texts = lab.texts();
    texts.retain(|(path, _)| !path.starts_with("/.isolation-pod-undo/"));
    texts
}

/// A copy in the target that did not get into its place.
pub(super) fn temporary(lab: &Lab) -> Option<String> {
    let mut paths = lab.texts().into_iter().map(|(path, _)| path);
    paths.find(|path| path.contains("/.isolation-pod-") && path.ends_with(".new"))
}

/// What the target holds is what the record says.
#[track_caller]
fn assert_truthful(lab: &Lab, what: &str) {
    let Some(record) = &lab.store.record else {
        assert_eq!(lab.texts().len(), OLD.len(), "{what}: nothing was written");
        return;
    };
    for item in &record.items {
        let name = item.dst.strip_prefix(&format!("{}/", lab.at("target").display())).unwrap();
        let old = OLD.iter().find(|(path, _)| *path == name).map(|(_, text)| (*text).to_owned());
        let new = NEW.iter().find(|(path, _)| *path == name).map(|(_, text)| (*text).to_owned());
        let found = std::fs::read_to_string(&item.dst).ok();
        let expected = match item.status {
            Status::Ok | Status::UndoConflict => &new,
            _ => &old,
        };
        assert_eq!(&found, expected, "{what}: {item:?}");
        if item.status == Status::Ok && old.is_some() {
            let backup = std::fs::read_to_string(&item.backup_path).ok();
            assert_eq!(backup, old, "{what}: {item:?}");
        }
        if item.status != Status::Ok {
            assert!(std::fs::read_to_string(&item.src).ok() == new, "{what}: the source is there: {item:?}");
        }
    }
}

/// After an undo nothing is left of the export.
#[track_caller]
fn assert_undone(lab: &mut Lab, what: &str) {
    let has_record = lab.store.record.is_some();
    if has_record {
        match lab.undo_on(&Disk::default(), true) {
            Ok(undone) => assert!(undone.conflicts.is_empty(), "{what}: {:?}", undone.conflicts),
            Err(Error::UndoConflict { reason: "UNDONE", .. }) => {}
            Err(error) => panic!("{what}: {error}"),
        }
    }
    let mut old = pairs(&OLD.map(|(path, text)| (path, text)));
    old.iter_mut().for_each(|(path, _)| path.insert(0, '/'));
    old.sort();
    assert_eq!(visible(lab), old, "{what}");
    for (path, text) in NEW {
        assert_eq!(files::read(lab.at("root/task").join(path)), text.as_bytes(), "{what}: {path}");
    }
    assert_eq!(files::read(lab.at("other")), b"old", "{what}");
}

#[test]
fn whichever_operation_of_an_export_fails_the_record_is_true_and_can_be_undone() {
    for mode in [ExportMode::Copy, ExportMode::Move] {
        for errno in [Errno::NOSPC, Errno::IO] {
            for nth in 0.. {
                let what = format!("{mode:?}, {errno} at {nth}");
                let mut lab = scene();
                let hook = Faults::new(nth, errno, false);
                let request = request(&lab, mode);
                let result = lab.run_on(&Disk::with_faults(hook.clone()), request);
                let before = lab.store.record.clone();
                lab.reconcile();
                assert!(
                    result.is_err() || lab.store.record == before,
                    "{what}: a start changes no record that is true"
                );
                assert_eq!(temporary(&lab), None, "{what}");
                assert_truthful(&lab, &what);
                assert_undone(&mut lab, &what);
                if !hook.happened() {
                    assert!(nth > 60, "{nth} operations");
                    break;
                }
            }
        }
    }
}

#[test]
fn wherever_the_process_dies_exporting_what_was_done_is_known_and_can_be_undone() {
    for mode in [ExportMode::Copy, ExportMode::Move] {
        for nth in 0.. {
            let what = format!("{mode:?}, dead at {nth}");
            let mut lab = scene();
            let hook = Faults::new(nth, Errno::IO, true);
            let request = request(&lab, mode);
            let result = lab.run_on(&Disk::with_faults(hook.clone()), request);
            assert_eq!(result.is_err(), hook.happened(), "{what}");
            lab.reconcile();
            assert_eq!(temporary(&lab), None, "{what}");
            assert_truthful(&lab, &what);
            assert_undone(&mut lab, &what);
            let left = lab.tree("target").into_keys().find(|path| path.contains(".isolation-pod"));
            assert_eq!(left, None, "{what}");
            if !hook.happened() {
                break;
            }
        }
    }
}

#[test]
fn whichever_operation_of_an_undo_fails_nothing_is_lost_and_it_can_be_tried_again() {
    for mode in [ExportMode::Copy, ExportMode::Move] {
        for dies in [false, true] {
            for nth in 0.. {
                let what = format!("{mode:?}, undo fails at {nth}, dies: {dies}");
                let mut lab = scene();
                let request = request(&lab, mode);
                lab.run(request);
                let hook = Faults::new(nth, Errno::IO, dies);
                drop(lab.undo_on(&Disk::with_faults(hook.clone()), true));
                for (path, _) in OLD {
                    let found = files::read(lab.at("target").join(path));
                    assert!(!found.is_empty(), "{what}: {path} is never gone");
                }
                assert_undone(&mut lab, &what);
                if !hook.happened() {
                    break;
                }
            }
        }
    }
}
