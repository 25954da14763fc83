//! The tree comes back exactly, and nothing else is touched.

use std::os::unix::fs::MetadataExt;

use cofferdam_tests::files;
use cofferdam_tests::tree::Tree;

use super::*;

/// A small project at rest: everything has a time in the past.
fn project(lab: &Lab) {
    for n in 0..20 {
        files::write(lab.at(&format!("src/module{n}.rs")), format!("fn f{n}() {{}}"));
    }
    files::write(lab.at("docs/guide/one.md"), "one");
    files::write(lab.at("docs/guide/two.md"), "two");
    files::mkdir(lab.at("empty"));
    files::symlink("src/module0.rs", lab.at("link"));
    files::write(lab.at("bin/run"), "#!/bin/sh");
    files::chmod(lab.at("bin/run"), 0o755);
    rest(&lab.ws(), 1_600_000_000);
}

/// Gives everything a time in the past, directories last.
pub(super) fn rest(dir: &Path, secs: i64) {
    for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            rest(&entry.path(), secs + 1);
        } else {
            files::set_mtime(entry.path(), secs, 123_456_789);
        }
    }
    files::set_mtime(dir, secs, 987_654_321);
}

#[test]
fn a_broken_project_comes_back_exactly() {
    let lab = Lab::new();
    project(&lab);
    let (before, target) = (lab.tree(), lab.capture());
    files::write(lab.at("src/module3.rs"), "broken");
    files::remove(lab.at("src/module4.rs"));
    files::write(lab.at("src/new/deep/file"), "new");
    files::remove(lab.at("docs"));
    files::write(lab.at("docs"), "now a file");
    files::remove(lab.at("empty"));
    files::remove(lab.at("link"));
    files::symlink("elsewhere", lab.at("link"));
    files::chmod(lab.at("bin/run"), 0o644);
    let done = lab.roll_back(&target);
    before.assert_same(&lab.tree(), "rolled back");
    assert_eq!(done.warnings, []);
    // module3, module4, src/new with two in it, docs with three in it, empty, link, bin/run.
    assert_eq!(done.changed, 12);
}

#[test]
fn what_the_trees_agree_in_keeps_inode_and_times() {
    let lab = Lab::new();
    project(&lab);
    let (before, target) = (lab.tree(), lab.capture());
    let ctime =
        |path: &str| std::fs::symlink_metadata(lab.at(path)).map(|m| (m.ctime(), m.ctime_nsec())).unwrap();
    let untouched = ctime("src/module7.rs");
    files::write(lab.at("src/module3.rs"), "broken");
    lab.roll_back(&target);
    let after = lab.tree();
    before.assert_same(&after, "rolled back");
    let changed = &b"src/module3.rs"[..];
    before.assert_same_inodes(&after, before.paths().filter(|path| *path != changed), "rolled back");
    assert_eq!(ctime("src/module7.rs"), untouched);
}

#[test]
fn nothing_is_touched_if_nothing_differs() {
    let lab = Lab::new();
    project(&lab);
    let target = lab.capture();
    let counting = std::sync::Arc::new(faults::Faults::never());
    let (result, late) = lab.attempt(&Disk::with_faults(counting.clone()), &target);
    assert_eq!(result.unwrap(), RolledBack::default());
    assert_eq!(late.settled, Some(Outcome::TakenBack), "there is nothing to undo");
    assert_eq!(counting.seen(), 0);
}

#[test]
fn a_rollback_can_be_taken_back_and_that_again() {
    let lab = Lab::new();
    project(&lab);
    let (old, old_tree) = (lab.capture(), lab.tree());
    files::write(lab.at("src/module1.rs"), "other");
    files::remove(lab.at("docs/guide"));
    files::write(lab.at("new/file"), "new");
    let (new, new_tree) = (lab.capture(), lab.tree());
    lab.roll_back(&old);
    old_tree.assert_same(&lab.tree(), "rolled back");
    lab.roll_back(&new);
    new_tree.assert_same(&lab.tree(), "undone");
    lab.roll_back(&old);
    old_tree.assert_same(&lab.tree(), "redone");
}

#[test]
fn a_process_inside_keeps_its_working_directory() {
    let lab = Lab::new();
    project(&lab);
    let target = lab.capture();
    let (root, sub) = (lab.root(), std::fs::File::open(lab.at("src")).unwrap());
    files::write(lab.at("src/module1.rs"), "other");
    files::write(lab.at("extra"), "other");
    lab.roll_back(&target);
    let ino = |fd: &dyn AsFd| crate::fs::stat_fd(fd.as_fd()).unwrap().ino;
    assert_eq!(ino(&root), std::fs::metadata(lab.ws()).unwrap().ino());
    assert_eq!(ino(&sub), std::fs::metadata(lab.at("src")).unwrap().ino());
}

#[test]
fn a_file_with_other_metadata_only_keeps_its_inode() {
    let lab = Lab::new();
    project(&lab);
    let (before, target) = (lab.tree(), lab.capture());
    files::chmod(lab.at("bin/run"), 0o600);
    files::set_mtime(lab.at("src/module2.rs"), 1_700_000_000, 5);
    files::set_mtime(lab.at("link"), 1_700_000_000, 5);
    files::chmod(lab.at("docs"), 0o700);
    let done = lab.roll_back(&target);
    assert_eq!(done.changed, 4);
    let after = lab.tree();
    before.assert_same(&after, "rolled back");
    before.assert_same_inodes(&after, before.paths(), "rolled back");
}

#[test]
fn the_root_gets_its_own_mode_and_times_back() {
    let lab = Lab::new();
    project(&lab);
    files::chmod(lab.ws(), 0o750);
    files::set_mtime(lab.ws(), 1_500_000_000, 1);
    let (before, target) = (lab.tree(), lab.capture());
    files::chmod(lab.ws(), 0o700);
    files::write(lab.at("new"), "");
    lab.roll_back(&target);
    before.assert_same(&lab.tree(), "rolled back");
}

#[test]
fn directories_that_forbid_writing_get_their_modes_and_times_back() {
    let lab = Lab::new();
    project(&lab);
    let forbid = |path: &str, mode| files::chmod(lab.at(path), mode);
    forbid("src", 0o555);
    forbid("docs/guide", 0o555);
    forbid("docs", 0o500);
    files::chmod(lab.ws(), 0o555);
    let (before, target) = (lab.tree(), lab.capture());
    files::chmod(lab.ws(), 0o755);
    forbid("docs", 0o755);
    forbid("src", 0o755);
    files::remove(lab.at("docs"));
    files::remove(lab.at("src/module1.rs"));
    files::write(lab.at("src/locked/in"), "x");
    files::write(lab.at("empty/now/not"), "x");
    forbid("empty/now", 0o555);
    forbid("src/locked", 0o555);
    forbid("src", 0o555);
    files::chmod(lab.ws(), 0o555);
    let live = lab.tree();
    let undo = lab.capture();
    lab.roll_back(&target);
    before.assert_same(&lab.tree(), "rolled back");
    lab.roll_back(&undo);
    live.assert_same(&lab.tree(), "undone");
    // Or an ordinary user could not remove it.
    files::chmod(lab.ws(), 0o755);
}

#[test]
fn holes_stay_holes_and_big_files_whole() {
    let lab = Lab::new();
    let block = vec![7; 64 * 1024];
    files::sparse(lab.at("sparse"), 1 << 26, &[(1 << 20, &block), (1 << 25, b"end")]);
    files::sparse(lab.at("hollow"), 1 << 40, &[]);
    let big: Vec<u8> = (0..5_000_000u32).flat_map(|n| n.to_le_bytes()).collect();
    files::write(lab.at("big"), &big);
    let read = || Tree::read_without(&lab.ws(), &["hollow"]);
    let (before, target) = (read(), lab.capture());
    for name in ["sparse", "hollow", "big"] {
        files::remove(lab.at(name));
    }
    lab.roll_back(&target);
    before.assert_same(&read(), "rolled back");
    let hollow = std::fs::metadata(lab.at("hollow")).unwrap();
    assert_eq!((hollow.len(), hollow.blocks()), (1 << 40, 0));
}

#[test]
fn names_are_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let lab = Lab::new();
    let long = vec![b'n'; 255];
    let names: [&[u8]; 5] = [b"\xffs", b"new\nline", b"-rf", b" ", &long];
    let at = |dir: &str, name: &[u8]| lab.at(dir).join(std::ffi::OsStr::from_bytes(name));
    for name in names {
        files::write(at("dir", name), name);
        files::write(at("gone", name), name);
    }
    let (before, target) = (lab.tree(), lab.capture());
    files::remove(lab.at("gone"));
    for name in names {
        files::write(at("dir", name), "other");
        files::write(at("more", name), name);
    }
    lab.roll_back(&target);
    before.assert_same(&lab.tree(), "rolled back");
}

#[test]
fn a_tree_deeper_than_any_path_comes_and_goes() {
    let lab = Lab::new();
    let target = lab.capture();
    let name = "d".repeat(200);
    let mut dir: OwnedFd = std::fs::File::open(lab.ws()).unwrap().into();
    for _ in 0..60 {
        rustix::fs::mkdirat(&dir, &name, rustix::fs::Mode::RWXU).unwrap();
        dir = crate::fs::open_for_reading(&dir, &name).unwrap();
    }
    drop(dir);
    let undo = lab.capture();
    assert_eq!(lab.roll_back(&target).changed, 60);
    assert!(std::fs::read_dir(lab.ws()).unwrap().next().is_none());
    assert_eq!(lab.roll_back(&undo).changed, 60);
    assert_eq!(lab.capture(), undo);
    lab.roll_back(&target);
}

#[test]
fn a_changed_file_costs_a_dozen_syncs_whatever_the_tree() {
    let lab = Lab::new();
    project(&lab);
    let target = lab.capture();
    files::write(lab.at("docs/guide/one.md"), "changed");
    let counting = std::sync::Arc::new(faults::Faults::never());
    lab.attempt(&Disk::with_faults(counting.clone()), &target).0.unwrap();
    // Three of the journal and two of its directory; the new file, the staging directory twice and its name twice; the
    // changed directory and the root.
    assert_eq!((counting.count(Op::Fsync), counting.count(Op::Syncfs)), (12, 0));
}

#[test]
fn many_changed_files_are_made_durable_all_at_once() {
    let lab = Lab::new();
    (0..100).for_each(|n| files::write(lab.at(&format!("{n}")), "target"));
    let target = lab.capture();
    (0..100).for_each(|n| files::write(lab.at(&format!("{n}")), "live"));
    let counting = std::sync::Arc::new(faults::Faults::never());
    lab.attempt(&Disk::with_faults(counting.clone()), &target).0.unwrap();
    assert_eq!((counting.count(Op::Fsync), counting.count(Op::Syncfs)), (8, 1));
}
