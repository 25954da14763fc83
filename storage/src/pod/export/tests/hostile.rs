//! What a sandbox may hold to do harm.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[test]
fn links_special_files_and_strange_names_are_skipped_and_said() {
    use std::os::unix::ffi::OsStrExt;
    let mut lab = Lab::new();
    lab.task(&[("out/x", "x"), ("out/new\nline \\", "y")]);
    files::symlink("/etc/passwd", lab.at("root/task/out/link"));
    files::symlink("/etc", lab.at("root/task/out/dirlink"));
    files::symlink("x", lab.at("root/task/selected"));
    files::fifo(lab.at("root/task/out/fifo"));
    files::socket(lab.at("root/task/out/socket"));
    files::write(lab.at("root/task/out").join(std::ffi::OsStr::from_bytes(b"\xff")), "z");
    let record = lab.copy(&["out", "selected"], ConflictMode::Overwrite);
    assert_eq!(record.status, ExportStatus::Completed);
    let skipped = record.items.iter().filter(|item| item.status == Status::Skip);
    assert!(skipped.clone().all(|item| !item.message.is_empty()));
    assert_eq!(skipped.count(), 6);
    assert_eq!(lab.texts(), pairs(&[("/out/new\nline \\", "y"), ("/out/x", "x")]));
}

#[test]
fn nothing_lands_among_the_backups() {
    let mut lab = Lab::new();
    lab.task(&[(".isolation-pod-undo/exp-1/x", "evil"), ("x", "new"), (".Isolation-Pod-Undo/y", "evil")]);
    lab.task(&[("sub/.isolation-pod-undo/exp-0/x", "evil")]);
    lab.target(&[("x", "old"), ("sub/.isolation-pod-undo/exp-0/x", "another's")]);
    let record = lab.copy(&["."], ConflictMode::Overwrite);
    assert_eq!(statuses(&record), [Status::Skip, Status::Skip, Status::Skip, Status::Ok]);
    let expected = [
        ("/.isolation-pod-undo/exp-1/x", "old"),
        ("/sub/.isolation-pod-undo/exp-0/x", "another's"),
        ("/x", "new"),
    ];
    assert_eq!(lab.texts(), pairs(&expected));
}

#[test]
fn a_target_above_the_root_gets_files_but_none_in_the_sandbox() {
    let mut lab = Lab::new();
    lab.task(&[("root/task/evil", "evil"), ("root/top", "evil"), ("fine", "fine")]);
    files::symlink("root", lab.at("by-link"));
    lab.task(&[("by-link/evil", "evil")]);
    let before = lab.tree("root");
    let request = ExportRequest { target_dir: lab.dir.path().to_owned(), ..lab.request(&["."]) };
    let record = lab.run(request);
    assert_eq!(statuses(&record), [Status::Fail, Status::Ok, Status::Fail, Status::Fail]);
    assert_eq!(lab.tree("root"), before);
    assert_eq!(files::read(lab.at("fine")), b"fine");
}

#[test]
fn another_mount_of_the_sandbox_is_the_sandbox() {
    if !cofferdam_tests::user::is_root() {
        return cofferdam_tests::skipped(format_args!("mounting needs root"));
    }
    let mut lab = Lab::new();
    lab.task(&[("x", "x")]);
    files::mkdir(lab.at("mnt"));
    let _mount = cofferdam_tests::mount::Mount::bind(&lab.at("root"), &lab.at("mnt"));
    for target in ["mnt", "mnt/task/deep"] {
        let request = ExportRequest { target_dir: lab.at(target), ..lab.request(&["x"]) };
        let error = lab.run_on(&Disk::default(), request).unwrap_err();
        assert!(matches!(error, Error::TargetInsideSandbox(_)), "{error:?}");
    }
}

#[test]
fn what_is_mounted_in_the_sandbox_is_not_exported() {
    if !cofferdam_tests::user::is_root() {
        return cofferdam_tests::skipped(format_args!("mounting needs root"));
    }
    let mut lab = Lab::new();
    lab.task(&[("out/x", "x")]);
    files::write(lab.at("secret/s"), "secret");
    files::mkdir(lab.at("root/task/out/mnt"));
    let _mount = cofferdam_tests::mount::Mount::bind(&lab.at("secret"), &lab.at("root/task/out/mnt"));
    let request = ExportRequest { mode: ExportMode::Move, ..lab.request(&["out"]) };
    let record = lab.run(request);
    assert_eq!(statuses(&record), [Status::Skip, Status::Ok]);
    assert_eq!(lab.texts(), pairs(&[("/out/x", "x")]));
    assert_eq!(files::read(lab.at("secret/s")), b"secret");
}

#[test]
fn nothing_is_exported_to_where_the_program_keeps_its_own_files() {
    for (target, below) in [("", "state/"), ("by-link", "state/"), ("", "state/run/")] {
        let mut lab = Lab::new();
        files::write(lab.at("state/run/daemon.lock"), "held");
        files::symlink(".", lab.at("by-link"));
        lab.task(&[(&format!("{below}daemon.lock"), "exported"), ("fine", "exported")]);
        let before = lab.tree("state");
        let record = lab.run(ExportRequest { target_dir: lab.at(target), ..lab.request(&["."]) });
        for item in &record.items {
            let expected = if item.dst.ends_with("/fine") { Status::Ok } else { Status::Fail };
            assert_eq!(item.status, expected, "{item:?}");
        }
        assert_eq!(lab.tree("state"), before);
        for inside in ["state", "state/run", "state/run/new/er", "by-link/state"] {
            let request = ExportRequest { target_dir: lab.at(inside), ..lab.request(&["fine"]) };
            let refused = lab.run_on(&Disk::default(), request).unwrap_err();
            assert!(refused.to_string().contains("its own files"), "{inside}: {refused}");
        }
    }
}

#[test]
fn the_sidecars_own_files_are_not_replaced_and_no_name_beside_them_is_taken() {
    for (target, below) in [("data", ""), ("", "data/"), ("by-link", "")] {
        let mut lab = Lab::new();
        files::write(lab.at("data/pod.db"), "live");
        files::symlink("data", lab.at("by-link"));
        let evil = [
            "pod.db",
            "pod.db-wal",
            "pod.db.lock",
            "Pod.DB-journal",
            "core.log",
            "core.log.1",
            "pod.db-shm/x",
        ];
        let fine = ["pod.dbx", "my-core.log", "core.log.old", "sub/pod.db"];
        for name in evil.iter().chain(&fine) {
            lab.task(&[(&format!("{below}{name}"), "exported")]);
        }
        let before = lab.tree("data");
        for conflict in [ConflictMode::Overwrite, ConflictMode::Skip] {
            let request = ExportRequest { target_dir: lab.at(target), conflict, ..lab.request(&["."]) };
            let record = lab.run(request);
            for item in &record.items {
                let is_evil = evil
                    .iter()
                    .any(|name| item.dst.ends_with(&format!("/{name}")) && !item.dst.contains("/sub/"));
                let expected = if is_evil { Status::Fail } else { Status::Ok };
                assert_eq!(item.status, expected, "{item:?}");
            }
            assert_eq!(record.status, ExportStatus::Failed);
            assert!(lab.undo().conflicts.is_empty());
        }
        assert_eq!(lab.tree("data"), before);
    }
}

/// Whatever an agent exchanges meanwhile, nothing from outside is read, and nothing outside is written.
#[test]
fn a_sandbox_that_changes_while_it_is_exported_leads_nowhere() {
    let mut lab = Lab::new();
    for n in 0..4 {
        lab.task(&[(&format!("out/d{n}/file"), "inside"), (&format!("out/d{n}/sub/file"), "inside")]);
        files::write(lab.at(&format!("outside/d{n}/file")), "secret");
        files::write(lab.at(&format!("outside/d{n}/sub/file")), "secret");
    }
    let outside = lab.tree("outside");
    let (task, away) = (lab.at("root/task/out"), lab.at("outside"));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in (0..4).cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let (dir, outside) = (task.join(format!("d{n}")), away.join(format!("d{n}")));
                // Never through a link that was left in the place of a directory: it is not the agent that is tried.
                match n % 2 {
                    0 => swap(&outside, &task.join("link"), &dir),
                    _ => swap(&outside.join("file"), &dir.join("file-link"), &dir.join("file")),
                }
            }
        });
        for round in 0..300 {
            let mode = if round > 200 { ExportMode::Move } else { ExportMode::Copy };
            let request = ExportRequest { mode, id: format!("exp-{round}"), ..lab.request(&["out"]) };
            if lab.run_on(&Disk::default(), request).is_ok() {
                for (path, node) in lab.tree("target") {
                    assert_ne!(node.content.as_deref(), Some(&b"secret"[..]), "{path}");
                }
                drop(lab.undo_on(&Disk::default(), true));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(lab.tree("outside"), outside);
}

#[test]
fn a_target_that_changes_while_it_is_written_leads_nowhere_either() {
    let mut lab = Lab::new();
    lab.task(&[("out/a/file", "new"), ("out/b/file", "new")]);
    lab.target(&[("out/a/file", "old"), ("out/b/kept", "kept")]);
    for dir in ["a", "b"] {
        files::write(lab.at("outside").join(dir).join("file"), "outside");
    }
    let outside = lab.tree("outside");
    let (target, away) = (lab.at("target"), lab.at("outside"));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for dir in ["a", "b"].into_iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                swap(&away.join(dir), &target.join("link"), &target.join("out").join(dir));
            }
        });
        for round in 0..300 {
            let request = ExportRequest { id: format!("exp-{round}"), ..lab.request(&["out"]) };
            let record = lab.run(request);
            if record.items.iter().any(|item| item.status == Status::Ok) {
                drop(lab.undo_on(&Disk::default(), true));
            }
            discard(&Disk::default(), &lab.kept()).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(lab.tree("outside"), outside);
    let kept = files::read(target.join("out/b/kept"));
    assert_eq!(kept, b"kept");
}

/// Has a link in the place of something for a moment. Either may be gone by then.
#[allow(clippy::disallowed_methods, reason = "an agent does what it likes")]
fn swap(outside: &Path, link: &Path, inside: &Path) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let _ = std::os::unix::fs::symlink(outside, link);
    if renameat_with(CWD, link, CWD, inside, RenameFlags::EXCHANGE).is_ok() {
        std::thread::yield_now();
        let _ = renameat_with(CWD, link, CWD, inside, RenameFlags::EXCHANGE);
    }
    let _ = std::fs::remove_file(link);
}
