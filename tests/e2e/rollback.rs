//! A checkpoint, a bad day, and the way back: the tree is exactly what it was, and what was not touched stays
//! untouched.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use cofferdam_tests::files;
use cofferdam_tests::process::working_directory;
use cofferdam_tests::project::{self, UNTOUCHED};
use cofferdam_tests::site::{Site, run};
use cofferdam_tests::tree::Tree;

use crate::{site, site_of_ordinary_user};

#[track_caller]
fn undo(site: &Site, ws: &Path) {
    let ran = run(&mut site.ws_ckpt(&["undo", "-w", ws.to_str().unwrap()]));
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn a_project_comes_back_equal_and_what_was_not_touched_keeps_its_inodes() {
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    project::make(&ws);
    let before = Tree::read(&ws);
    daemon.checkpoint(&ws, "one");
    project::break_it(&ws);
    let broken = Tree::read(&ws);
    daemon.rollback(&ws, "one");
    let after = Tree::read(&ws);
    before.assert_same(&after, "after the rollback");
    before.assert_same_inodes(&after, UNTOUCHED.iter().map(|path| path.as_bytes()), "what was not touched");
    before.assert_same_inodes(&after, [b"".as_slice()], "the root");
    undo(&site, &ws);
    broken.assert_same(&Tree::read(&ws), "after undo");
    undo(&site, &ws);
    before.assert_same(&Tree::read(&ws), "after undo of the undo");
    assert_eq!(daemon.ids(&ws), ["one"], "no safety snapshot is listed");
    assert_eq!(site.check(), 1);
}

#[test]
fn an_ordinary_user_gets_the_same() {
    let site = site_of_ordinary_user();
    let daemon = site.start();
    let ws = site.path("project");
    project::make(&ws);
    site.hand_over(&ws);
    let before = Tree::read(&ws);
    daemon.checkpoint(&ws, "one");
    project::break_it(&ws);
    site.hand_over(&ws);
    daemon.rollback(&ws, "one");
    before.assert_same(&Tree::read(&ws), "after the rollback");
    assert_eq!(site.check(), 1);
}

#[test]
fn this_repository_with_its_git_directory_and_part_of_target_comes_back_equal() {
    let site = site();
    let daemon = site.start();
    let ws = site.path("repository");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for part in ["protocol", "storage", "actors", "web", "bin", "tests", ".git"] {
        // In a linked working tree `.git` is a file.
        if from.join(part).is_dir() {
            files::copy_tree(&from.join(part), &ws.join(part), Some(32 << 20));
        }
    }
    for part in ["debug/.fingerprint", "debug/build", "debug/deps"] {
        files::copy_tree(&from.join("target").join(part), &ws.join("target").join(part), Some(16 << 20));
    }
    let before = Tree::read(&ws);
    assert!(before.len() > 100, "only {} files were copied", before.len());
    daemon.checkpoint(&ws, "one");
    before.assert_same(&Tree::read(&ws), "after the checkpoint");

    // A day's work: a build swept away, sources edited, a branch switched.
    files::remove(ws.join("target/debug/build"));
    files::remove(ws.join("storage/src"));
    files::append(ws.join("bin/src/lib.rs"), "\n// an edit\n");
    files::rename(ws.join("protocol/src"), ws.join("protocol/sources"));
    files::write(ws.join("storage/src/lib.rs"), "//! All new.\n");
    files::remove(ws.join(".git"));
    let broken = Tree::read(&ws);
    daemon.rollback(&ws, "one");
    let after = Tree::read(&ws);
    before.assert_same(&after, "after the rollback");
    let untouched =
        before.paths().filter(|path| path.starts_with(b"tests/") || path.starts_with(b"target/debug/deps"));
    before.assert_same_inodes(&after, untouched, "what was not touched");
    undo(&site, &ws);
    broken.assert_same(&Tree::read(&ws), "after undo");
    assert_eq!(site.check(), 1);
}

/// A program that sits in `dir` until it is killed.
struct Sitter(Child);

impl Sitter {
    fn new(site: &Site, dir: &Path) -> Self {
        let mut command = site.command("cat");
        Self(command.current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    fn sits_in(&self) -> PathBuf {
        working_directory(self.0.id())
    }
}

impl Drop for Sitter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_inside_keeps_its_working_directory() {
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    project::make(&ws);
    let (inside, changed) = (ws.join("src"), ws.join("src/module1"));
    daemon.checkpoint(&ws, "one");
    let sitters = [&ws, &inside, &changed].map(|dir| Sitter::new(&site, dir));
    project::break_it(&ws);
    for _ in 0..2 {
        daemon.rollback(&ws, "one");
        for (sitter, dir) in sitters.iter().zip([&ws, &inside, &changed]) {
            assert_eq!(sitter.sits_in(), *dir, "its directory is still there, under its name");
            let seen = std::fs::metadata(format!("/proc/{}/cwd", sitter.0.id())).unwrap();
            let named = std::fs::metadata(dir).unwrap();
            assert_eq!((seen.dev(), seen.ino()), (named.dev(), named.ino()));
        }
        undo(&site, &ws);
    }
}

#[test]
fn a_file_held_open_is_not_written_to_by_a_rollback() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    files::write(ws.join("file"), "work of today\n");
    let open = std::fs::File::open(ws.join("file")).unwrap();
    daemon.rollback(&ws, "one");
    // Who has it open still reads what it was; the name stands for the snapshot's file.
    assert_eq!(std::io::read_to_string(open).unwrap(), "work of today\n");
    assert_eq!(files::read(ws.join("file")), b"content\n");
}

#[test]
fn a_rollback_writes_through_no_link() {
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    files::write(ws.join("a"), "mine");
    files::write(ws.join("dir/f"), "mine");
    files::write(ws.join("dir/g"), "mine");
    let outside = site.directory("outside");
    files::write(outside.join("target"), "somebody else's");
    files::write(outside.join("dir/f"), "somebody else's");
    let before = Tree::read(&ws);
    daemon.checkpoint(&ws, "one");
    files::remove(ws.join("a"));
    files::symlink(outside.join("target"), ws.join("a"));
    files::remove(ws.join("dir"));
    files::symlink(outside.join("dir"), ws.join("dir"));
    let theirs = Tree::read(&outside);
    let broken = Tree::read(&ws);
    daemon.rollback(&ws, "one");
    before.assert_same(&Tree::read(&ws), "after the rollback");
    theirs.assert_same(&Tree::read(&outside), "what the links led to");
    undo(&site, &ws);
    broken.assert_same(&Tree::read(&ws), "after undo");
    theirs.assert_same(&Tree::read(&outside), "what the links led to, after undo");
}

#[test]
fn a_rollback_to_where_the_tree_is_changes_nothing() {
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    project::make(&ws);
    daemon.checkpoint(&ws, "one");
    let before = Tree::read(&ws);
    daemon.rollback(&ws, "one");
    let after = Tree::read(&ws);
    before.assert_same(&after, "after the rollback");
    before.assert_same_inodes(&after, before.paths(), "after the rollback");
}

#[test]
fn three_thousand_files_of_which_one_was_changed_keep_their_inodes_and_times() {
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    for n in 0..3_000 {
        // One flat directory, as package managers make them, beside a tree.
        let name = if n % 2 == 0 { format!("flat/{n}") } else { format!("deep/{}/{}/{n}", n % 7, n % 31) };
        let path = ws.join(name);
        if n < 2 * 7 * 31 {
            files::write(&path, n.to_string());
        } else {
            std::fs::write(&path, n.to_string()).unwrap();
        }
    }
    let before = Tree::read(&ws);
    daemon.checkpoint(&ws, "one");
    files::write(ws.join("flat/1500"), "changed");
    daemon.rollback(&ws, "one");
    let after = Tree::read(&ws);
    before.assert_same(&after, "after the rollback");
    let others = before.paths().filter(|path| *path != b"flat/1500");
    before.assert_same_inodes(&after, others, "the 2 999 others");
}

#[test]
fn snapshots_newer_than_the_one_gone_back_to_stay() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    for n in 0..4 {
        files::write(ws.join("file"), n.to_string());
        daemon.checkpoint(&ws, &format!("v{n}"));
    }
    for n in [0, 3, 1, 2] {
        daemon.rollback(&ws, &format!("v{n}"));
        assert_eq!(files::read(ws.join("file")), n.to_string().into_bytes());
    }
    assert_eq!(daemon.ids(&ws), ["v0", "v1", "v2", "v3"]);
}

#[test]
fn there_is_nothing_to_undo_before_a_rollback() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    let ran = run(&mut site.ws_ckpt(&["undo", "-w", ws.to_str().unwrap()]));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("nothing to undo"), "{ran:?}");
    assert_eq!(files::read(ws.join("file")), b"content\n");
}

#[test]
fn a_rollback_that_changed_nothing_is_not_what_undo_takes_back() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    files::write(ws.join("file"), "work of today\n");
    daemon.rollback(&ws, "one");
    daemon.rollback(&ws, "one");
    undo(&site, &ws);
    assert_eq!(files::read(ws.join("file")), b"work of today\n");
}

#[test]
fn undo_outlives_the_daemon() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    files::write(ws.join("file"), "work of today\n");
    let broken = Tree::read(&ws);
    daemon.rollback(&ws, "one");
    daemon.kill();
    let daemon = site.start();
    undo(&site, &ws);
    broken.assert_same(&Tree::read(&ws), "after undo");
    // Work done since is what the next undo brings back.
    files::write(ws.join("later"), "l");
    daemon.rollback(&ws, "one");
    undo(&site, &ws);
    assert_eq!(files::read(ws.join("later")), b"l");
}

#[test]
fn a_sealed_directory_of_ones_own_is_opened_for_the_time_being_only() {
    let site = site_of_ordinary_user();
    let daemon = site.start();
    let ws = site.path("project");
    files::write(ws.join("sealed/deeper/file"), "one");
    files::write(ws.join("sealed/gone"), "one");
    site.hand_over(&ws);
    for dir in ["sealed/deeper", "sealed"] {
        files::set_mtime(ws.join(dir), 1_500_000_000, 123_456_789);
        files::chmod(ws.join(dir), 0o555);
    }
    let before = Tree::read(&ws);
    daemon.checkpoint(&ws, "one");
    for dir in ["sealed", "sealed/deeper"] {
        files::chmod(ws.join(dir), 0o755);
    }
    files::write(ws.join("sealed/deeper/file"), "two");
    files::remove(ws.join("sealed/gone"));
    files::write(ws.join("sealed/new"), "two");
    site.hand_over(&ws);
    for dir in ["sealed/deeper", "sealed"] {
        files::chmod(ws.join(dir), 0o555);
    }
    daemon.rollback(&ws, "one");
    before.assert_same(&Tree::read(&ws), "after the rollback");
}
