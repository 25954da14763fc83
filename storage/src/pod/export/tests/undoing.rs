//! Undoing.

use super::*;

#[test]
fn undo_removes_what_was_exported_with_the_directories_made_for_it() {
    let mut lab = Lab::new();
    lab.task(&[("out/a/b/x", "x"), ("out/y", "y")]);
    lab.target(&[("out/theirs", "theirs")]);
    files::set_mtime(lab.at("target/out"), 1000, 1);
    files::set_mtime(lab.at("target"), 2000, 2);
    let before = lab.tree("target");
    let record = lab.copy(&["out"], ConflictMode::Overwrite);
    let undone = lab.undo();
    let exported: Vec<&str> = record.items.iter().rev().map(|item| item.dst.as_str()).collect();
    assert_eq!(undone.removed, exported, "last first");
    assert_eq!(lab.tree("target"), before, "times of directories too");
}

#[test]
fn a_target_that_the_export_made_goes_and_the_directories_above_it_too() {
    let mut lab = Lab::new();
    lab.task(&[("x", "x")]);
    let before = lab.tree("target");
    let request = ExportRequest { target_dir: lab.at("target/new/deep"), ..lab.request(&["x"]) };
    lab.run(request);
    assert_eq!(lab.texts(), pairs(&[("/new/deep/x", "x")]));
    lab.undo();
    assert_eq!(lab.tree("target"), before);
}

#[test]
fn a_directory_that_somebody_changed_since_keeps_its_time() {
    let mut lab = Lab::new();
    lab.task(&[("x", "x")]);
    files::set_mtime(lab.at("target"), 1000, 0);
    lab.copy(&["x"], ConflictMode::Overwrite);
    files::set_mtime(lab.at("target"), 5000, 0);
    lab.undo();
    assert_ne!(lab.tree("target")[""].mtime, (1000, 0));
}

#[test]
fn what_was_changed_since_is_left_alone_and_can_be_tried_again() {
    let mut lab = Lab::new();
    lab.task(&[("a", "new"), ("b", "new"), ("c", "new")]);
    lab.target(&[("a", "old"), ("b", "old")]);
    let before = lab.tree("target");
    lab.copy(&["a", "b", "c"], ConflictMode::Overwrite);
    files::write(lab.at("target/a"), "edited");
    files::remove(lab.at("target/c"));
    let undone = lab.undo();
    assert_eq!(statuses(&undone.export), [Status::UndoConflict, Status::Undo, Status::UndoConflict]);
    assert_eq!(undone.conflicts.len(), 2);
    assert_eq!(files::read(lab.at("target/a")), b"edited");
    assert_eq!(files::read(lab.at("target/.isolation-pod-undo/exp-1/a")), b"old", "its backup stays");

    files::write(lab.at("target/a"), "new");
    files::write(lab.at("target/c"), "new");
    let undone = lab.undo();
    assert_eq!(statuses(&undone.export), [Status::Undo; 3]);
    let contents = |tree: Tree| tree.into_iter().map(|(path, node)| (path, node.content)).collect::<Vec<_>>();
    assert_eq!(contents(lab.tree("target")), contents(before));
    assert!(matches!(lab.undo_on(&Disk::default(), true), Err(Error::UndoConflict { reason: "UNDONE", .. })));
}

#[test]
fn a_file_that_somebody_is_writing_stays() {
    let mut lab = Lab::new();
    lab.task(&[("x", "new")]);
    lab.target(&[("x", "old")]);
    lab.copy(&["x"], ConflictMode::Overwrite);
    let open = std::fs::File::options().append(true).open(lab.at("target/x")).unwrap();
    if crate::sys::is_overlay(&open).unwrap() {
        return cofferdam_tests::skipped(format_args!("an overlay filesystem says nothing of writers"));
    }
    let undone = lab.undo();
    assert_eq!(statuses(&undone.export), [Status::UndoConflict]);
    assert_eq!(files::read(lab.at("target/x")), b"new");
    drop(open);
    assert!(lab.undo().conflicts.is_empty());
    assert_eq!(lab.texts(), pairs(&[("/x", "old")]));
}

#[test]
fn without_a_good_backup_the_exported_file_stays() {
    for spoil in [
        (|backup: &Path| files::remove(backup)) as fn(&Path),
        |backup| files::write(backup, "spoiled"),
        |backup| {
            files::remove(backup);
            files::symlink("/etc/passwd", backup);
        },
    ] {
        let mut lab = Lab::new();
        lab.task(&[("x", "new")]);
        lab.target(&[("x", "old")]);
        let record = lab.copy(&["x"], ConflictMode::Overwrite);
        spoil(Path::new(&record.items[0].backup_path));
        for verify in [true, false] {
            let undone = lab.undo_on(&Disk::default(), verify).unwrap();
            assert_eq!(statuses(&undone.export), [Status::UndoConflict]);
            assert_eq!(files::read(lab.at("target/x")), b"new");
        }
    }
}

#[test]
fn unverified_an_edited_file_is_removed_too() {
    let mut lab = Lab::new();
    lab.task(&[("x", "new"), ("y", "new")]);
    lab.target(&[("x", "old")]);
    lab.copy(&["x", "y"], ConflictMode::Overwrite);
    files::write(lab.at("target/x"), "edited");
    files::write(lab.at("target/y"), "edited");
    let undone = lab.undo_on(&Disk::default(), false).unwrap();
    assert!(undone.conflicts.is_empty(), "{:?}", undone.conflicts);
    assert_eq!(lab.texts(), pairs(&[("/x", "old")]));
}

#[test]
fn an_undone_move_is_back_with_its_directories() {
    let mut lab = Lab::new();
    lab.task(&[("out/a/x", "x"), ("out/y", "y"), ("z", "z")]);
    lab.target(&[("out/y", "old")]);
    files::mkdir(lab.at("root/task/out/empty"));
    files::chmod(lab.at("root/task/out/a"), 0o710);
    files::set_mtime(lab.at("root/task/out/a"), 1000, 5);
    files::set_mtime(lab.at("root/task/out"), 2000, 5);
    let (task, target) = (lab.tree("root"), lab.tree("target"));
    let request = ExportRequest { mode: ExportMode::Move, ..lab.request(&["out", "z"]) };
    lab.run(request);
    assert_eq!(files::names(lab.at("root/task")), [""; 0]);
    let undone = lab.undo();
    assert!(undone.conflicts.is_empty(), "{:?}", undone.conflicts);
    assert_eq!(lab.tree("root"), task);
    assert_eq!(lab.tree("target"), target);
}

#[test]
fn a_move_is_undone_into_free_paths_only() {
    let mut lab = Lab::new();
    lab.task(&[("x", "moved")]);
    let request = ExportRequest { mode: ExportMode::Move, ..lab.request(&["x"]) };
    lab.run(request.clone());
    lab.task(&[("x", "newer")]);
    let undone = lab.undo();
    assert_eq!(statuses(&undone.export), [Status::UndoConflict]);
    assert_eq!(undone.export.undone_at, 0);
    assert_eq!(files::read(lab.at("target/x")), b"moved");
    assert_eq!(files::read(lab.at("root/task/x")), b"newer");

    files::remove(lab.at("root/task"));
    assert_eq!(statuses(&lab.undo().export), [Status::UndoConflict], "the task's directory is gone");
    files::symlink(lab.at("target"), lab.at("root/task"));
    assert_eq!(statuses(&lab.undo().export), [Status::UndoConflict], "a link is no directory");
    assert_eq!(lab.texts(), pairs(&[("/x", "moved")]));
    files::remove(lab.at("root/task"));
    files::mkdir(lab.at("root/task"));
    assert_eq!(statuses(&lab.undo().export), [Status::Undo]);
    assert_eq!(files::read(lab.at("root/task/x")), b"moved");
}

#[test]
fn a_record_without_anything_to_undo_says_so() {
    let mut lab = Lab::new();
    lab.task(&[("x", "new")]);
    lab.target(&[("x", "old")]);
    let mut record = lab.copy(&["x"], ConflictMode::Skip);
    let undone = lab.undo();
    assert!(undone.removed.is_empty() && undone.restored.is_empty() && undone.conflicts.is_empty());
    record.status = ExportStatus::Running;
    lab.store.record = Some(record);
    assert!(matches!(
        lab.undo_on(&Disk::default(), true),
        Err(Error::UndoConflict { reason: "RUNNING", .. })
    ));
}

#[test]
fn of_an_older_version_files_are_removed_and_nothing_else() {
    let mut lab = Lab::new();
    lab.target(&[("file", "x"), ("dir/later", "work"), ("moved", "x")]);
    let item = |dst: String| ExportItem {
        status: Status::Ok,
        src: String::new(),
        dst,
        bytes: 0,
        hash: String::new(),
        existed: false,
        backup_path: String::new(),
        message: String::new(),
    };
    let below = |path: &str| lab.at("target").join(path).to_str().unwrap().to_owned();
    let outside = lab.at("root/task").to_str().unwrap().to_owned();
    let items = [below("file"), below("dir"), r"E:\work\x".to_owned(), outside];
    let mut record = lab.run_legacy(items.map(item).to_vec(), ExportMode::Copy);
    let undone = undo(&Disk::default(), record.clone(), "", true, 2, &mut lab.store).unwrap();
    let conflict = Status::UndoConflict;
    assert_eq!(statuses(&undone.export), [Status::Undo, conflict, conflict, conflict]);
    record.items = vec![item(lab.at("target/moved").to_str().unwrap().to_owned())];
    record.mode = ExportMode::Move;
    lab.store.record = Some(record.clone());
    let undone = undo(&Disk::default(), record, "", true, 2, &mut lab.store).unwrap();
    assert_eq!(statuses(&undone.export), [conflict]);
    assert_eq!(lab.texts(), pairs(&[("/dir/later", "work"), ("/moved", "x")]));
}

impl Lab {
    /// Keeps a record as it is after a migration.
    fn run_legacy(&mut self, items: Vec<ExportItem>, mode: ExportMode) -> ExportRecord {
        let record = ExportRecord {
            id: "old/1".to_owned(),
            task_id: "task".to_owned(),
            label: String::new(),
            at: 1,
            target_dir: self.at("target").to_str().unwrap().to_owned(),
            mode,
            conflict: ConflictMode::Overwrite,
            status: ExportStatus::Completed,
            undone_at: 0,
            legacy: true,
            items,
            items_total: None,
            items_truncated: false,
        };
        self.store.record = Some(record.clone());
        record
    }
}
