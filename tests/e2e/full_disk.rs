//! A disk that is full to its last byte: that of the store, or that of the workspace. They need root for small
//! filesystems of their own.

use std::path::{Path, PathBuf};

use cofferdam_protocol::ckpt::{WsCkptErrorCode as Code, WsCkptRequest, WsCkptResponse};
use cofferdam_tests::mount::{Mount, lacking};
use cofferdam_tests::project::noise;
use cofferdam_tests::site::{Daemon, Site};
use cofferdam_tests::tree::Tree;
use cofferdam_tests::wire::ask;
use cofferdam_tests::{files, skip, user};

use crate::site;

/// A filesystem of about 24 MiB at this place.
type MakeDisk = fn(&Site, &str) -> Mount;

const DISKS: &[(&str, MakeDisk)] = &[
    ("tmpfs", |site, name| Mount::tmpfs(&site.path(name), 24 << 10)),
    ("ext4", |site, name| Mount::ext4(&site.path(name), 24)),
];

/// What must be answered whatever the disk.
#[track_caller]
fn reading_works(daemon: &Daemon, ws: &Path, ids: &[&str]) {
    assert_eq!(daemon.ids(ws), ids);
    assert!(matches!(daemon.call(&ask::status(ws)), WsCkptResponse::StatusOk { .. }));
    assert!(matches!(daemon.call(&WsCkptRequest::Config), WsCkptResponse::ConfigOk { .. }));
    assert!(matches!(daemon.call(&WsCkptRequest::HealthAdvisory), WsCkptResponse::HealthAdvisoryOk { .. }));
}

/// A daemon whose store lies on such a disk, and a workspace elsewhere with the snapshot `one`.
fn store_on(make_disk: MakeDisk) -> (Site, Mount, PathBuf, Daemon) {
    let mut site = site();
    let disk = make_disk(&site, "disk");
    site.set_state(disk.path().join("state"));
    let ws = site.workspace("project");
    let daemon = site.start();
    daemon.checkpoint(&ws, "one");
    (site, disk, ws, daemon)
}

#[track_caller]
fn is_full(daemon: &Daemon, request: &WsCkptRequest) {
    let (code, message) = daemon.refused(request);
    assert_eq!(code, Code::DiskSpaceInsufficient, "{request:?}: {message}");
    assert!(message.contains("insufficient"), "{message}");
}

#[test]
fn a_store_on_a_full_disk_refuses_and_loses_nothing() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    for (kind, make_disk) in DISKS {
        let (site, disk, ws, daemon) = store_on(*make_disk);
        files::write(ws.join("file"), "work of today\n");
        files::write(ws.join("big"), noise(3 << 20));
        let tree = Tree::read(&ws);

        disk.fill();
        is_full(&daemon, &ask::checkpoint(&ws, "two"));
        is_full(&daemon, &ask::rollback(&ws, "one"));
        tree.assert_same(&Tree::read(&ws), &format!("{kind}: after what was refused"));
        reading_works(&daemon, &ws, &["one"]);

        daemon.kill();
        let daemon = site.start();
        reading_works(&daemon, &ws, &["one"]);
        is_full(&daemon, &ask::checkpoint(&ws, "two"));
        tree.assert_same(&Tree::read(&ws), &format!("{kind}: after a restart on the full disk"));

        disk.free();
        daemon.checkpoint(&ws, "two");
        daemon.rollback(&ws, "one");
        assert_eq!(files::read(ws.join("file")), b"content\n", "{kind}");
        daemon.rollback(&ws, "two");
        tree.assert_same(&Tree::read(&ws), &format!("{kind}: the snapshot taken once there was space"));
        assert_eq!(site.check(), 2, "{kind}");
        daemon.stop();
    }
}

#[test]
fn on_a_full_disk_delete_cleanup_and_recover_work() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    for (kind, make_disk) in DISKS {
        for restarted in [false, true] {
            let (site, disk, ws, mut daemon) = store_on(*make_disk);
            for id in ["two", "three", "four"] {
                files::write(ws.join("file"), id);
                daemon.checkpoint(&ws, id);
            }
            let other = site.workspace("other");
            daemon.checkpoint(&other, "one");
            disk.fill();
            if restarted {
                daemon.kill();
                daemon = site.start();
            }
            let target = "two".to_owned();
            assert_eq!(
                daemon.call(&ask::delete(&ws, "two", false)),
                WsCkptResponse::DeleteOk { target },
                "{kind}"
            );
            let cleaned = daemon.call(&ask::cleanup(&ws, Some(1)));
            assert!(matches!(cleaned, WsCkptResponse::CleanupOk { .. }), "{kind}: {cleaned:?}");
            reading_works(&daemon, &ws, &["four"]);
            let forgotten = daemon.call(&ask::recover(&other));
            assert!(matches!(forgotten, WsCkptResponse::RecoverOk { .. }), "{kind}: {forgotten:?}");
            disk.free();
            assert_eq!(site.check(), 1, "{kind}");
            daemon.stop();
        }
    }
}

#[test]
fn a_daemon_starts_where_not_even_a_name_can_be_made_and_removes_snapshots() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    if let Some(why) = lacking("xfs") {
        skip!("{why}");
    }
    // An xfs without a free block takes no new name, not even that of a socket.
    let (site, disk, ws, daemon) = store_on(|site, name| Mount::xfs(&site.path(name)));
    files::write(ws.join("file"), "two");
    daemon.checkpoint(&ws, "two");
    disk.fill();
    daemon.kill();
    assert!(std::fs::write(disk.path().join("name"), "").is_err(), "the disk is not full");
    let daemon = site.start();
    reading_works(&daemon, &ws, &["one", "two"]);
    let target = "one".to_owned();
    assert_eq!(daemon.call(&ask::delete(&ws, "one", false)), WsCkptResponse::DeleteOk { target });
    disk.free();
    assert_eq!(site.check(), 1);
    daemon.stop();
}

#[test]
fn a_checkpoint_that_does_not_fit_leaves_the_store_as_it_was() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    for (kind, make_disk) in DISKS {
        let (site, _disk, ws, daemon) = store_on(*make_disk);
        // More than the whole disk: it runs full while the pack is written.
        files::write(ws.join("huge"), noise(40 << 20));
        is_full(&daemon, &ask::checkpoint(&ws, "two"));
        reading_works(&daemon, &ws, &["one"]);
        let packs = std::fs::read_dir(site.state().join("ckpt/packs")).unwrap().count();
        assert_eq!(packs, 1, "{kind}: the half-written pack is gone");
        // The space it took is free again, with no restart.
        files::write(ws.join("huge"), noise(10 << 20));
        daemon.checkpoint(&ws, "two");
        assert_eq!(site.check(), 2, "{kind}");
        daemon.stop();
    }
}

#[test]
fn a_rollback_that_does_not_fit_into_the_workspace_is_refused_before_it_begins() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    for (kind, make_disk) in DISKS {
        let site = site();
        let disk = make_disk(&site, "disk");
        let ws = disk.path().join("project");
        files::write(ws.join("file"), "content\n");
        files::write(ws.join("big"), noise(4 << 20));
        let original = Tree::read(&ws);
        let daemon = site.start();
        daemon.checkpoint(&ws, "one");
        files::remove(ws.join("big"));
        files::write(ws.join("file"), "work of today\n");
        let tree = Tree::read(&ws);

        disk.fill();
        is_full(&daemon, &ask::rollback(&ws, "one"));
        tree.assert_same(&Tree::read(&ws), &format!("{kind}: after what was refused"));
        // A checkpoint writes nothing there.
        daemon.checkpoint(&ws, "two");
        daemon.kill();
        let daemon = site.start();
        reading_works(&daemon, &ws, &["one", "two"]);
        tree.assert_same(&Tree::read(&ws), &format!("{kind}: after a restart"));

        disk.free();
        daemon.rollback(&ws, "one");
        original.assert_same(&Tree::read(&ws), &format!("{kind}: once there was space"));
        assert_eq!(site.check(), 2, "{kind}");
        daemon.stop();
    }
}

#[test]
fn a_rollback_that_frees_what_it_needs_still_wants_the_space_first() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    let site = site();
    let disk = Mount::tmpfs(&site.path("disk"), 8 << 10);
    let ws = disk.path().join("project");
    files::write(ws.join("a"), noise(5 << 20));
    let daemon = site.start();
    daemon.checkpoint(&ws, "one");
    // Old and new do not fit side by side; nothing may be given up to make room.
    files::write(ws.join("a"), noise((5 << 20) + 1));
    let tree = Tree::read(&ws);
    is_full(&daemon, &ask::rollback(&ws, "one"));
    tree.assert_same(&Tree::read(&ws), "after what was refused");
    daemon.stop();
}

#[test]
fn a_disk_that_is_full_from_the_start_is_a_clear_error() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    let mut site = site();
    let disk = Mount::tmpfs(&site.path("disk"), 256);
    disk.fill();
    site.set_state(disk.path().join("state"));
    let ran = cofferdam_tests::site::run(&mut site.serve());
    assert_eq!(ran.code, 1, "{ran:?}");
    let last = ran.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("Error: no space left"), "{}", ran.stderr);
    disk.free();
    let daemon = site.start();
    daemon.stop();
}
