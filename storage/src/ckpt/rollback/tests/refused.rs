//! What cannot be carried out completely is not begun, and every reason is named.

use std::process::Command;

use cofferdam_tests::mount::Mount;
use cofferdam_tests::user::is_root;
use cofferdam_tests::{files, skip};

use super::*;

#[test]
fn content_that_is_gone_from_the_store_is_missed_before_anything_is_touched() {
    let lab = Lab::new();
    files::write(lab.at("dir/here"), "here");
    files::write(lab.at("dir/lost"), "lost");
    let target = lab.capture();
    files::remove(lab.at("dir"));
    files::write(lab.at("extra"), "x");
    lab.objects.lose(&format::ObjectId::of(format::ObjectKind::Data, b"lost"));
    let before = lab.tree();
    let (result, late) = lab.attempt(&Disk::default(), &target);
    assert!(matches!(&result, Err(Error::Corrupt(what)) if what.contains("dir/lost")), "{result:?}");
    assert_eq!(late.settled, None);
    before.assert_same(&lab.tree(), "refused");
    lab.assert_nothing_left();
}

#[test]
fn immutable_and_append_only_files_are_all_named() {
    let lab = Lab::new();
    files::write(lab.at("replaced"), "target");
    files::write(lab.at("locked/file"), "target");
    let (before, target) = (lab.tree(), lab.capture());
    files::write(lab.at("replaced"), "live");
    files::write(lab.at("locked/file"), "live");
    files::write(lab.at("gone/deep/file"), "live");
    files::write(lab.at("log"), "live");
    let flag = |flag: &str, path: &str| {
        Command::new("chattr").arg(flag).arg(lab.at(path)).output().is_ok_and(|done| done.status.success())
    };
    if !flag("+i", "replaced") {
        skip!("this user or this filesystem cannot make a file immutable");
    }
    assert!(flag("+i", "locked") && flag("+i", "gone/deep/file") && flag("+a", "log"));
    let refused = lab.refuse(&target);
    let paths: Vec<&str> = refused.iter().map(|(path, _)| path.as_str()).collect();
    for path in ["replaced", "locked", "gone/deep/file"] {
        assert!(flag("-i", path));
    }
    assert!(flag("-a", "log"));
    assert_eq!(paths, ["gone/deep/file", "locked", "log", "replaced"]);
    assert!(refused.iter().all(|(_, why)| why.contains("chattr")), "{refused:?}");
    lab.roll_back(&target);
    assert_eq!(before.differences(&lab.tree()), [""; 0]);
}

#[test]
fn a_mount_in_the_way_is_named_and_left_alone() {
    if !is_root() {
        skip!("only root mounts");
    }
    let lab = Lab::new();
    files::write(lab.at("file"), "target");
    let target = lab.capture();
    files::write(lab.at("file"), "live");
    let elsewhere = lab.dir.path().join("elsewhere");
    files::write(elsewhere.join("precious"), "x");
    files::mkdir(lab.at("build/cache"));
    {
        let mount = Mount::bind(&elsewhere, &lab.at("build/cache"));
        let refused = lab.refuse(&target);
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert_eq!(refused[0].0, "build/cache");
        assert_eq!(files::read(mount.path().join("precious")), b"x");
    }
    lab.roll_back(&target);
    assert!(!lab.at("build").exists());
    assert_eq!(files::read(elsewhere.join("precious")), b"x");
}

#[test]
fn a_mount_that_appears_in_the_last_moment_is_neither_moved_nor_emptied() {
    if !is_root() {
        skip!("only root mounts");
    }
    // In a directory that was captured, and in one that appears with it.
    for place in ["build/cache", "build/made/cache"] {
        let lab = Lab::new();
        let target = lab.capture();
        files::mkdir(lab.at("build/cache"));
        let elsewhere = lab.dir.path().join("elsewhere");
        files::write(elsewhere.join("precious"), "x");
        let mount = std::sync::Arc::new(std::sync::Mutex::new(None));
        let (at, from, keep) = (lab.at(place), elsewhere.clone(), mount.clone());
        let act = move |_| {
            *keep.lock().unwrap() = Some(Mount::bind(&from, &at));
            Ok(())
        };
        let (result, late) = lab.attempt(&at_step("rollback.switch-journaled", act), &target);
        assert!(result.is_err(), "{result:?}");
        assert_eq!(late.settled, Some(Outcome::TakenBack));
        assert_eq!(files::read(lab.at(place).join("precious")), b"x");
        drop(mount.lock().unwrap().take());
        assert_eq!(files::read(elsewhere.join("precious")), b"x");
        lab.assert_nothing_left();
    }
}

#[test]
fn a_mount_the_snapshot_had_is_left_as_it_is_now() {
    if !is_root() {
        skip!("only root mounts");
    }
    let lab = Lab::new();
    let elsewhere = lab.dir.path().join("elsewhere");
    files::write(elsewhere.join("precious"), "x");
    files::write(lab.at("file"), "target");
    let target = {
        let _mount = Mount::bind(&elsewhere, &lab.at("mnt"));
        lab.capture()
    };
    files::write(lab.at("file"), "live");
    files::write(lab.at("mnt/under"), "live");
    let done = lab.roll_back(&target);
    assert_eq!(files::read(lab.at("file")), b"target");
    assert_eq!(files::read(lab.at("mnt/under")), b"live");
    let warned: Vec<_> = done.warnings.iter().map(|w| (w.path.to_string(), w.kind)).collect();
    assert_eq!(warned, [("mnt".to_owned(), WarningKind::MountPoint)]);
}

#[test]
fn a_full_disk_is_told_apart_and_nothing_is_touched() {
    if !is_root() {
        skip!("only root mounts");
    }
    let mut lab = Lab::new();
    let small = Mount::tmpfs(&lab.dir.path().join("small"), 2048);
    files::mkdir(small.path().join("ws"));
    let (target_lab, objects) = (Lab::new(), std::mem::take(&mut lab.objects));
    lab.objects = objects;
    let source = target_lab.ws();
    files::write(source.join("big"), vec![1; 3 << 20]);
    let target = lab.capture_at(&source);
    std::fs::remove_dir(lab.ws()).unwrap();
    let _ws = Mount::bind(&small.path().join("ws"), &lab.ws());
    files::write(lab.at("file"), "live");
    let before = lab.tree();
    let (result, _) = lab.attempt(&Disk::default(), &target);
    assert!(matches!(&result, Err(Error::NoSpace { .. })), "{result:?}");
    before.assert_same(&lab.tree(), "refused");
    lab.assert_nothing_left();
}

#[test]
fn the_staging_directory_takes_nobody_elses_name() {
    let lab = Lab::new();
    files::write(lab.at("file"), "target");
    let target = lab.capture();
    files::write(lab.at("file"), "live");
    let name = format!(".cofferdam-{:032x}", 0);
    files::write(lab.at(&name).join("mine"), "x");
    let refused = lab.refuse(&target);
    assert_eq!(refused[0].0, name);
}
