//! The same promises on every filesystem: those people have, and an overlay as in a container.

use std::path::Path;
use std::process::Command;

use cofferdam_protocol::ckpt::WsCkptErrorCode as Code;
use cofferdam_tests::mount::{Mount, lacking};
use cofferdam_tests::project::{self, UNTOUCHED};
use cofferdam_tests::site::{Site, run};
use cofferdam_tests::stamps::Stamps;
use cofferdam_tests::tree::Tree;
use cofferdam_tests::wire::ask;
use cofferdam_tests::{files, skip, user};

use crate::site;

/// A checkpoint, a bad day, the way back, undo, and a rollback killed in its middle, of a project at `ws`.
fn keeps_its_promises(site: &Site, ws: &Path) {
    let before = Tree::read(ws);
    let daemon = site.start();
    daemon.checkpoint(ws, "one");
    before.assert_same(&Tree::read(ws), "after the checkpoint");
    project::break_it(ws);
    let broken = Tree::read(ws);
    daemon.rollback(ws, "one");
    let after = Tree::read(ws);
    before.assert_same(&after, "after the rollback");
    before.assert_same_inodes(&after, UNTOUCHED.iter().map(|path| path.as_bytes()), "what was not touched");
    let undone = run(&mut site.ws_ckpt(&["undo", "-w", ws.to_str().unwrap()]));
    assert_eq!(undone.code, 0, "{undone:?}");
    broken.assert_same(&Tree::read(ws), "after undo");
    daemon.kill();
    for step in ["rollback.staged", "rollback.switching#6", "rollback.switched"] {
        site.start_with_fault(&format!("{step}=kill")).call_to_death(&ask::rollback(ws, "one"));
        let daemon = site.start();
        let now = Tree::read(ws);
        if !broken.differences(&now).is_empty() {
            before.assert_same(&now, &format!("killed at {step}: neither the old tree nor the new one"));
            let undone = run(&mut site.ws_ckpt(&["undo", "-w", ws.to_str().unwrap()]));
            assert_eq!(undone.code, 0, "{step}: {undone:?}");
            broken.assert_same(&Tree::read(ws), &format!("{step}: undo after the restart"));
        }
        daemon.stop();
    }
    let daemon = site.start();
    daemon.rollback(ws, "one");
    before.assert_same(&Tree::read(ws), "in the end");
    assert_eq!(site.check(), 1);
    daemon.stop();
}

fn on(filesystem: &str, mount: impl FnOnce(&Path) -> Mount) {
    let site = site();
    let disk = mount(&site.path("disk"));
    let ws = disk.path().join("project");
    project::make(&ws);
    keeps_its_promises(&site, &ws);
    // The store's own files as well as the workspace.
    let mut site = site;
    site.set_state(disk.path().join("state"));
    let ws = disk.path().join("another");
    project::make(&ws);
    let daemon = site.start();
    daemon.checkpoint(&ws, "one");
    daemon.kill();
    assert_eq!(site.check(), 1, "a store on {filesystem}");
    drop(disk);
}

#[test]
fn a_project_comes_back_on_tmpfs() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    on("tmpfs", |at| Mount::tmpfs(at, 64 << 10));
}

#[test]
fn a_project_comes_back_on_ext4() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    if let Some(why) = lacking("ext4") {
        skip!("{why}");
    }
    on("ext4", |at| Mount::ext4(at, 64));
}

#[test]
fn a_project_comes_back_on_xfs() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    if let Some(why) = lacking("xfs") {
        skip!("{why}");
    }
    on("xfs", Mount::xfs);
}

#[test]
fn a_project_comes_back_on_btrfs() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    if let Some(why) = lacking("btrfs") {
        skip!("{why}");
    }
    on("btrfs", Mount::btrfs);
}

#[test]
fn a_project_in_the_lower_layer_of_an_overlay_comes_back() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    if let Some(why) = lacking("overlay") {
        skip!("{why}");
    }
    let site = site();
    let lower = site.directory("lower");
    project::make(&lower.join("project"));
    let overlay = Mount::overlay(&lower, &site.path("merged"));
    keeps_its_promises(&site, &overlay.path().join("project"));
}

/// Runs `btrfs` quietly.
fn btrfs(arguments: &[&str], last: &Path) {
    let done = Command::new("btrfs").arg("-q").args(arguments).arg(last).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn nested_subvolumes_are_part_of_the_tree() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    if let Some(why) = lacking("btrfs") {
        skip!("{why}");
    }
    let site = site();
    let disk = Mount::btrfs(&site.path("disk"));
    let ws = disk.path().join("project");
    files::write(ws.join("file"), "one");
    for name in ["changed", "changed/inner", "removed", "becomes a file", "kept", "snapshot of"] {
        btrfs(&["subvolume", "create"], &ws.join(name));
        files::write(ws.join(name).join("inside"), "one");
        files::write(ws.join(name).join("dir/deeper"), "one");
    }
    files::mkdir(ws.join("becomes a subvolume"));
    files::write(ws.join("linked"), "one");
    let before = Tree::read(&ws);
    let daemon = site.start();
    daemon.checkpoint(&ws, "one");
    for name in ["changed", "changed/inner"] {
        files::write(ws.join(name).join("inside"), "two");
        files::write(ws.join(name).join("new"), "two");
        files::remove(ws.join(name).join("dir"));
    }
    files::write(ws.join("file"), "two");
    btrfs(&["subvolume", "delete"], &ws.join("removed"));
    btrfs(&["subvolume", "delete"], &ws.join("becomes a file"));
    files::write(ws.join("becomes a file"), "two");
    files::remove(ws.join("becomes a subvolume"));
    for name in ["becomes a subvolume", "new", "new/in it"] {
        btrfs(&["subvolume", "create"], &ws.join(name));
        files::write(ws.join(name).join("inside"), "two");
    }
    let of = ws.join("snapshot of");
    btrfs(&["subvolume", "snapshot", of.to_str().unwrap()], &ws.join("snapshot"));
    let changed = Tree::read(&ws);
    daemon.rollback(&ws, "one");
    before.assert_same(&Tree::read(&ws), "after the rollback");
    let undone = run(&mut site.ws_ckpt(&["undo", "-w", ws.to_str().unwrap()]));
    assert_eq!(undone.code, 0, "{undone:?}");
    changed.assert_same(&Tree::read(&ws), "after undo");
    assert_eq!(site.check(), 1);
    daemon.stop();
}

#[test]
fn a_read_only_subvolume_in_the_way_is_named_and_one_that_is_not_keeps_nothing_back() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    if let Some(why) = lacking("btrfs") {
        skip!("{why}");
    }
    let site = site();
    let disk = Mount::btrfs(&site.path("disk"));
    let ws = disk.path().join("project");
    btrfs(&["subvolume", "create"], &{
        files::mkdir(&ws);
        ws.join("of")
    });
    files::write(ws.join("of/dir/file"), "one");
    files::write(ws.join("file"), "one");
    let set_read_only = |on: bool| {
        let of = ws.join("of");
        let on = if on { "true" } else { "false" };
        let done = Command::new("btrfs").args(["property", "set"]).arg(of).args(["ro", on]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    let snapshot = |to: &str| {
        let of = ws.join("of");
        btrfs(&["subvolume", "snapshot", "-r", of.to_str().unwrap()], &ws.join(to));
    };
    snapshot("kept");
    let before = Tree::read(&ws);
    let daemon = site.start();
    daemon.checkpoint(&ws, "one");
    files::write(ws.join("file"), "two");
    let refused = |named: &str| {
        let stamps = Stamps::read(&ws);
        let (code, message) = daemon.refused(&ask::rollback(&ws, "one"));
        stamps.assert_same(&Stamps::read(&ws), "after what was refused");
        assert_eq!(code, Code::IoError, "{message}");
        assert!(message.contains(&format!("{named}: ")) && message.contains("read-only"), "{message}");
    };
    for at in ["new", "goes/deep/new"] {
        files::mkdir(ws.join(at).parent().unwrap());
        snapshot(at);
        refused(at);
        btrfs(&["subvolume", "delete"], &ws.join(at));
    }
    // One that was written to, and then sealed.
    type Change = fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("of/dir", |of| files::set_mtime(of.join("dir"), 1_500_000_000, 1)),
        ("of/dir/file", |of| files::chmod(of.join("dir/file"), 0o600)),
        ("of/dir", |of| files::remove(of.join("dir/file"))),
        ("of", |of| files::write(of.join("new"), "two")),
    ];
    for (named, change) in changes {
        change(&ws.join("of"));
        set_read_only(true);
        refused(named);
        set_read_only(false);
        daemon.rollback(&ws, "one");
        files::write(ws.join("file"), "two");
    }
    daemon.rollback(&ws, "one");
    before.assert_same(&Tree::read(&ws), "after the rollback");
    daemon.stop();
}

#[test]
fn a_workspace_may_be_a_mount_itself() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    if let Some(why) = lacking("ext4") {
        skip!("{why}");
    }
    let site = site();
    let disk = Mount::ext4(&site.path("volume"), 32);
    let ws = disk.path();
    files::write(ws.join("dir/file"), "one");
    files::write(ws.join("gone"), "one");
    let before = Tree::read(ws);
    let daemon = site.start();
    daemon.checkpoint(ws, "one");
    files::write(ws.join("dir/file"), "two");
    files::remove(ws.join("gone"));
    files::write(ws.join("new"), "two");
    daemon.rollback(ws, "one");
    before.assert_same(&Tree::read(ws), "after the rollback");
    daemon.stop();
}

#[test]
fn what_is_mounted_read_only_can_be_kept_but_not_given_back() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    let site = site();
    let ws = site.workspace("project");
    let daemon = site.start();
    daemon.checkpoint(&ws, "one");
    files::write(ws.join("file"), "two");
    // The same directory under the same path, and nothing may be written through it.
    let mount = Mount::bind(&ws, &ws);
    mount.make_read_only();
    let id = daemon.init(&ws);
    daemon.checkpoint(&id, "two");
    let before = Tree::read(&ws);
    let (code, message) = daemon.refused(&ask::rollback(&id, "one"));
    assert_eq!(code, Code::IoError, "{message}");
    assert!(message.to_lowercase().contains("read-only"), "{message}");
    before.assert_same(&Tree::read(&ws), "after what was refused");
    drop(mount);
    let daemon = {
        daemon.stop();
        site.start()
    };
    daemon.rollback(&ws, "one");
    assert_eq!(files::read(ws.join("file")), b"content\n");
    daemon.rollback(&ws, "two");
    assert_eq!(files::read(ws.join("file")), b"two");
}
