//! The same promises on every filesystem: those people have, and an overlay as in a container.

use std::path::{Path, PathBuf};
use std::process::Command;

use cofferdam_protocol::ckpt::WsCkptErrorCode as Code;
use cofferdam_tests::mount::{Mount, kernel_has};
use cofferdam_tests::project::{self, UNTOUCHED};
use cofferdam_tests::site::{Site, run};
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
    on("ext4", |at| Mount::ext4(at, 64));
}

#[test]
fn a_project_comes_back_on_xfs() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    if !kernel_has("xfs") {
        skip!("this kernel has no xfs");
    }
    on("xfs", Mount::xfs);
}

#[test]
fn a_project_comes_back_on_btrfs() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    if !kernel_has("btrfs") {
        skip!("this kernel has no btrfs");
    }
    on("btrfs", Mount::btrfs);
}

#[test]
fn a_project_in_the_lower_layer_of_an_overlay_comes_back() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    if !kernel_has("overlay") {
        skip!("this kernel has no overlay");
    }
    let site = site();
    let lower = site.directory("lower");
    project::make(&lower.join("project"));
    let overlay = Mount::overlay(&lower, &site.path("merged"));
    keeps_its_promises(&site, &overlay.path().join("project"));
}

#[test]
fn a_nested_subvolume_is_part_of_the_tree() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    if !kernel_has("btrfs") {
        skip!("this kernel has no btrfs");
    }
    let site = site();
    let disk = Mount::btrfs(&site.path("disk"));
    let ws = disk.path().join("project");
    let sub: PathBuf = ws.join("sub");
    files::write(ws.join("file"), "one");
    let made = Command::new("btrfs").args(["-q", "subvolume", "create"]).arg(&sub).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    files::write(sub.join("inside"), "one");
    files::write(sub.join("dir/deeper"), "one");
    let before = Tree::read(&ws);
    let daemon = site.start();
    daemon.checkpoint(&ws, "one");
    files::write(sub.join("inside"), "two");
    files::write(sub.join("new"), "two");
    files::remove(sub.join("dir"));
    files::write(ws.join("file"), "two");
    daemon.rollback(&ws, "one");
    before.assert_same(&Tree::read(&ws), "after the rollback");
    assert_eq!(site.check(), 1);
    daemon.stop();
}

#[test]
fn a_workspace_may_be_a_mount_itself() {
    if !user::is_root() {
        skip!("needs root to mount");
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
