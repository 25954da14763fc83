//! Files in the way.

use super::*;

#[test]
fn skip_keeps_what_is_there_and_says_so() {
    let mut lab = Lab::new();
    lab.task(&[("x", "new"), ("y", "new")]);
    lab.target(&[("x", "old")]);
    let record = lab.copy(&["x", "y"], ConflictMode::Skip);
    assert_eq!(statuses(&record), [Status::Skip, Status::Ok]);
    assert_eq!(record.status, ExportStatus::Completed);
    assert!(!record.items[0].message.is_empty() && record.items[0].hash.is_empty());
    assert_eq!(lab.texts(), pairs(&[("/x", "old"), ("/y", "new")]));
}

#[test]
fn rename_takes_the_first_free_name() {
    let mut lab = Lab::new();
    lab.task(&[("x.txt", "new"), ("a.tar.gz", "new"), (".env", "new")]);
    lab.target(&[("x.txt", "old"), ("x-1.txt", "old"), ("a.tar.gz", "old"), (".env", "old")]);
    files::symlink("nowhere", lab.at("target/x-2.txt"));
    let record = lab.copy(&["x.txt", "a.tar.gz", ".env"], ConflictMode::Rename);
    let names: Vec<_> = record.items.iter().map(|item| item.dst.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["x-3.txt", "a.tar-1.gz", ".env-1"]);
    assert!(record.items.iter().all(|item| item.status == Status::Ok && !item.existed));
    let tree = lab.tree("target");
    assert_eq!(tree["/x-3.txt"].content.as_deref(), Some(&b"new"[..]));
    assert_eq!(tree["/x.txt"].content.as_deref(), Some(&b"old"[..]));
}

#[test]
fn overwrite_keeps_the_very_file_and_undo_puts_it_back() {
    let mut lab = Lab::new();
    lab.task(&[("out/x", "new")]);
    lab.target(&[("out/x", "old")]);
    let inode = std::fs::metadata(lab.at("target/out/x")).unwrap().ino();
    let before = lab.tree("target");
    let record = lab.copy(&["out"], ConflictMode::Overwrite);
    let item = &record.items[0];
    assert!(item.existed && item.status == Status::Ok);
    let backup = lab.at("target/.isolation-pod-undo/exp-1/out/x");
    assert_eq!(Path::new(&item.backup_path), backup);
    assert_eq!(files::read(&backup), b"old");
    assert_eq!(files::read(lab.at("target/out/x")), b"new");
    assert_eq!(std::fs::metadata(&backup).unwrap().ino(), inode);
    let undone = lab.undo();
    assert_eq!(undone.restored, [item.dst.as_str()]);
    assert!(undone.removed.is_empty() && undone.conflicts.is_empty());
    assert_eq!((undone.export.undone_at, statuses(&undone.export)), (2, vec![Status::Undo]));
    assert_eq!(lab.tree("target"), before);
    assert_eq!(std::fs::metadata(lab.at("target/out/x")).unwrap().ino(), inode);
}

#[test]
fn what_others_could_change_is_kept_as_a_copy() {
    let mut lab = Lab::new();
    lab.task(&[("linked", "new"), ("open", "new")]);
    lab.target(&[("linked", "old"), ("open", "old")]);
    files::hard_link(lab.at("target/linked"), lab.at("other"));
    let writer = std::fs::File::options().append(true).open(lab.at("target/open")).unwrap();
    lab.copy(&["linked", "open"], ConflictMode::Overwrite);
    std::io::Write::write_all(&mut &writer, b" and more").unwrap();
    files::append(lab.at("other"), " and more");
    assert_eq!(files::read(lab.at("target/.isolation-pod-undo/exp-1/open")), b"old");
    lab.undo();
    assert_eq!(lab.texts(), pairs(&[("/linked", "old"), ("/open", "old")]));
    assert_eq!(files::read(lab.at("other")), b"old and more");
}

#[test]
fn two_files_of_one_export_with_the_same_name_do_not_destroy_each_other() {
    for (conflict, expected) in [
        (ConflictMode::Overwrite, [("/x-1.txt", "b"), ("/x.txt", "a")].as_slice()),
        (ConflictMode::Rename, &[("/x-1.txt", "b"), ("/x.txt", "a")]),
        (ConflictMode::Skip, &[("/x.txt", "a")]),
    ] {
        let mut lab = Lab::new();
        lab.task(&[("a/x.txt", "a"), ("b/x.txt", "b")]);
        let record = lab.copy(&["a/x.txt", "b/x.txt"], conflict);
        assert_eq!(lab.texts(), pairs(expected), "{conflict:?}");
        assert_eq!(record.status, ExportStatus::Completed);
        assert!(!record.items[1].message.is_empty());
    }
}

#[test]
fn a_directory_a_link_or_a_special_file_is_never_overwritten() {
    let mut lab = Lab::new();
    lab.task(&[("dir", "new"), ("link", "new"), ("fifo", "new"), ("sub/x", "new"), ("below/x", "new")]);
    files::mkdir(lab.at("target/dir"));
    files::mkdir(lab.at("elsewhere"));
    lab.target(&[("below", "a file"), ("victim", "old")]);
    files::symlink("victim", lab.at("target/link"));
    files::fifo(lab.at("target/fifo"));
    files::symlink(lab.at("elsewhere"), lab.at("target/sub"));
    let record = lab.copy(&["dir", "link", "fifo", "sub", "below"], ConflictMode::Overwrite);
    assert_eq!(statuses(&record), [Status::Fail; 5]);
    assert_eq!(record.status, ExportStatus::Failed);
    assert!(record.items.iter().all(|item| !item.message.is_empty() && !item.existed));
    assert_eq!(lab.texts(), pairs(&[("/below", "a file"), ("/victim", "old")]));
    assert_eq!(files::names(lab.at("elsewhere")), [""; 0]);
    let record = lab.copy(&["dir"], ConflictMode::Rename);
    assert_eq!(statuses(&record), [Status::Fail], "in every mode");
}

#[test]
fn a_target_that_is_the_source_by_another_name_loses_nothing() {
    for mode in [ExportMode::Copy, ExportMode::Move] {
        let mut lab = Lab::new();
        lab.task(&[("x", "text")]);
        files::hard_link(lab.at("root/task/x"), lab.at("target/x"));
        let request = ExportRequest { mode, ..lab.request(&["x"]) };
        lab.run(request);
        assert_eq!(files::read(lab.at("target/x")), b"text");
        let undone = lab.undo();
        assert!(undone.conflicts.is_empty(), "{:?}", undone.conflicts);
        assert_eq!(files::read(lab.at("target/x")), b"text");
        assert_eq!(files::read(lab.at("root/task/x")), b"text");
    }
}

#[test]
fn where_nothing_can_be_written_each_file_says_so_and_nothing_is_lost() {
    if !cofferdam_tests::user::is_root() {
        return cofferdam_tests::skipped(format_args!("acting as somebody else needs root"));
    }
    let mut lab = Lab::new();
    lab.task(&[("x", "new"), ("y", "new")]);
    lab.target(&[("x", "old")]);
    files::chmod(lab.dir.path(), 0o755);
    cofferdam_tests::user::give_all(lab.at("root"), cofferdam_tests::user::NOBODY);
    let (task, target) = (lab.tree("root"), lab.tree("target"));
    let request = ExportRequest { mode: ExportMode::Move, ..lab.request(&["x", "y"]) };
    let record = cofferdam_tests::user::as_user(cofferdam_tests::user::NOBODY, || lab.run(request));
    assert_eq!(statuses(&record), [Status::Fail; 2]);
    assert_eq!((lab.tree("root"), lab.tree("target")), (task, target));
}
