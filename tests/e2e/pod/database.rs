//! The database: whose it is, what becomes of one that cannot be used, and that what was answered is what is stored.

use std::fs::File;
use std::os::unix::fs::FileExt;

use cofferdam_tests::mount::Mount;
use cofferdam_tests::pod::{PodSite, Sidecar, ended, held, reserve, turn, with};
use cofferdam_tests::project::noise;
use cofferdam_tests::{files, skip, user};
use rustix::fs::FlockOperation;
use serde_json::json;

use super::{site, site_of_ordinary_user};

/// A place whose database was left in good order, with a task `a` that ended.
fn used(site: PodSite) -> PodSite {
    let mut pod = site.start_rooted();
    pod.finish("a");
    pod.shutdown();
    site
}

/// `initialize` fails with that code and leaves the database's bytes alone; the process lives and says why.
#[track_caller]
fn is_refused(site: &PodSite, code: &str, what: &str) -> Sidecar {
    let before = files::read(site.db());
    let mut pod = site.spawn();
    let error = pod.refused(code, "initialize", site.initialize());
    assert!(files::read(site.db()) == before, "{what}: the file is changed");
    assert_eq!(pod.ok("health", json!({}))["initialized"], false, "{what}");
    let diagnostics = pod.ok("diagnostics.get", json!({}))["diagnostics"].clone();
    let told = diagnostics.as_array().unwrap().iter().any(|it| it["level"] == "error");
    assert!(told, "{what}: {error}: {diagnostics}");
    pod.refused("CORE_UNAVAILABLE", "task.list", json!({}));
    pod
}

#[test]
fn a_newer_database_is_left_to_the_newer_program() {
    let site = used(site());
    // Where SQLite keeps a database's own version number.
    let version = |number: u32| {
        File::options().write(true).open(site.db()).unwrap().write_all_at(&number.to_be_bytes(), 60).unwrap();
    };
    version(2);
    let mut pod = is_refused(&site, "SCHEMA_MISMATCH", "version 2");
    let error = pod.refused("SCHEMA_MISMATCH", "initialize", site.initialize());
    assert_eq!(error["data"], json!({"expected": 1, "actual": 2}));
    // Once it is ours again the same process can use it.
    version(1);
    pod.ok("initialize", site.initialize());
    assert_eq!(pod.status("a"), "completed");
}

#[test]
fn what_is_no_database_is_not_touched() {
    let site = site();
    for (what, bytes) in [
        ("random bytes", noise(100_000)),
        ("a text", b"These are my notes.\n".to_vec()),
        ("one byte", vec![0]),
        ("half a header", b"SQLite format 3\0\x10\x00".to_vec()),
        ("a header and nothing else", [&b"SQLite format 3\0"[..], &noise(84)].concat()),
    ] {
        files::write(site.db(), bytes);
        is_refused(&site, "DB_ERROR", what);
    }
}

#[test]
fn a_damaged_database_is_not_touched() {
    let site = used(site());
    let whole = files::read(site.db());
    let mut scribbled = whole.clone();
    scribbled[8192..].fill(0xa5);
    for (what, bytes) in [("cut off", whole[..whole.len() / 2].to_vec()), ("overwritten", scribbled)] {
        files::write(site.db(), bytes);
        is_refused(&site, "DB_ERROR", what);
    }
    files::write(site.db(), whole);
    assert_eq!(site.start().status("a"), "completed");
}

#[test]
fn another_programs_database_is_not_touched() {
    let other = crate::site();
    other.start().stop();
    let site = site();
    files::write(site.db(), files::read(other.state().join("ckpt/catalog.sqlite3")));
    is_refused(&site, "DB_ERROR", "the checkpoint engine's catalog");
}

#[test]
fn what_cannot_be_a_file_is_no_database() {
    let site = site();
    files::mkdir(site.path("dir.db"));
    files::fifo(site.path("fifo.db"));
    files::write(site.path("file"), "");
    for path in ["dir.db", "fifo.db", "file/pod.db"] {
        let mut pod = site.spawn();
        pod.refused("DB_ERROR", "initialize", with(&site.initialize(), json!({"dbPath": site.path(path)})));
        pod.ok("initialize", site.initialize());
    }
}

#[test]
fn a_database_that_may_not_be_written_to_is_refused() {
    let site = used(site_of_ordinary_user());
    for (path, mode) in [("db/pod.db", 0o400), ("db/pod.db", 0o000), ("db", 0o500), ("db", 0o000)] {
        let before = files::read(site.db());
        let mode_before = if path == "db" { 0o700 } else { 0o600 };
        files::chmod(site.path(path), mode);
        let mut pod = site.spawn();
        // A directory in which nothing can be made may still hold everything that is needed.
        let answer = pod.request("initialize", site.initialize());
        let refused = answer.get("result").is_none();
        if refused {
            assert_eq!(answer["error"]["code"], "DB_ERROR", "{path} {mode:o}: {answer}");
        } else {
            assert_eq!((path, mode), ("db", 0o500), "{answer}");
        }
        drop(pod);
        files::chmod(site.path(path), mode_before);
        assert!(!refused || files::read(site.db()) == before, "{path} {mode:o}");
        assert_eq!(site.start().status("a"), "completed", "{path} {mode:o}");
    }
}

#[test]
fn two_sidecars_do_not_share_a_database_and_the_first_goes_on_undisturbed() {
    let site = site();
    let mut first = site.start_rooted();
    first.run("a");
    let mut second = site.spawn();
    for _ in 0..2 {
        let error = second.refused("DB_ERROR", "initialize", site.initialize());
        assert_eq!(error["data"]["reason"], "LOCKED", "{error}");
    }
    first.ok("task.heartbeat", held("a"));
    assert_eq!(first.status("a"), "running");
    // The system gives the lock back, however its holder went.
    first.kill();
    let result = second.ok("initialize", site.initialize());
    assert_eq!(result["tasks"][0]["status"], "interrupted");
}

#[test]
fn a_database_that_another_process_locks_is_refused_until_it_is_free() {
    let site = used(site());
    let file = File::options().read(true).write(true).open(site.db()).unwrap();
    rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    let mut pod = site.spawn();
    pod.refused("DB_ERROR", "initialize", site.initialize());
    drop(file);
    pod.ok("initialize", site.initialize());
    assert_eq!(pod.status("a"), "completed");
}

#[test]
fn the_database_and_what_lies_beside_it_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let site = site();
    let db = site.path("new/pod.db");
    let mut pod = site.spawn();
    pod.ok("initialize", with(&site.initialize(), json!({"dbPath": db})));
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&site.path("new")), 0o700);
    for name in files::names(site.path("new")) {
        assert_eq!(mode(&site.path("new").join(&name)) & 0o077, 0, "{name}");
    }
}

#[test]
fn what_was_answered_survives_a_kill() {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 8}));
    pod.finish("a");
    let check = json!({"mode": "read-only", "root": "", "probe": "denied", "fsDenied": true, "at": 1});
    pod.run("b");
    pod.ok("task.setSandboxCheck", with(&held("b"), json!({"check": check})));
    pod.ok("task.setAvailableTools", with(&held("b"), json!({"tools": ["read", "字"]})));
    pod.ok("task.setLastText", with(&held("b"), json!({"text": "last\u{0}text"})));
    pod.ok("task.turnEnded", ended("b", 1, "error"));
    pod.run("c");
    pod.ok("task.turnStarted", turn("c", 2));
    pod.ok("task.turnEnded", ended("c", 2, "interrupted"));
    pod.run("d");
    pod.ok("task.delete", json!({"taskId": "a"}));
    let before = pod.tasks();
    pod.kill();
    let after = site.start().tasks();
    assert_eq!(after[1..], before[1..]);
    assert_eq!(super::differing(&before[0], &after[0]), ["endedAt", "error", "status", "turnDeadline"]);
}

#[test]
fn on_a_full_disk_a_change_is_refused_and_did_not_happen() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    let site = site();
    let disk = Mount::tmpfs(&site.path("db"), 2 << 10);
    let mut pod = site.start_with(json!({"maxConcurrent": 2}));
    pod.run("a");
    pod.reserve("b");
    let (tasks, config) = (pod.tasks(), pod.ok("config.get", json!({})));
    disk.fill();
    // Whatever room the log has left is used up first.
    let mut refused = 0;
    for i in 0..200 {
        let params = with(&reserve(&format!("x{i}")), json!({"description": "x".repeat(60_000)}));
        let answer = pod.request("task.reserve", params);
        if answer.get("error").is_some() {
            assert_eq!(answer["error"]["code"], "DB_ERROR", "{answer}");
            // It is taken back while the next request waits.
            pod.ok("config.get", json!({}));
            assert!(!site.root().join(format!("x{i}")).exists(), "its directory");
            refused += 1;
        }
        if refused == 3 {
            break;
        }
    }
    assert_eq!(refused, 3, "the disk is full");
    for task in pod.tasks() {
        if task["id"].as_str().unwrap().starts_with('x') {
            pod.request("task.delete", json!({"taskId": task["id"]}));
        }
    }
    // Reads go on, and what could not be stored is not shown.
    let ours = |pod: &mut Sidecar| {
        let all = pod.tasks().into_iter();
        all.filter(|task| !task["id"].as_str().unwrap().starts_with('x')).collect::<Vec<_>>()
    };
    assert_eq!(ours(&mut pod), tasks);
    assert_eq!(pod.ok("config.get", json!({})), config);
    disk.free();
    pod.ok("task.heartbeat", held("a"));
    let ended = pod.complete("a");
    let shown = pod.tasks();
    pod.kill();
    let mut pod = site.start();
    assert_eq!(pod.task("a"), ended);
    assert_eq!(pod.tasks().len(), shown.len(), "memory and database agree");
    drop(pod);
}

#[test]
fn whichever_operation_on_the_disk_fails_memory_and_database_agree() {
    for error in ["enospc", "eio"] {
        for nth in 1.. {
            let mut site = site();
            site.set("COFFERDAM_FAULT", format!("op#{nth}={error}"));
            let mut pod = site.spawn();
            let mut failed = 0;
            let mut attempt = |pod: &mut Sidecar, method: &str, params: serde_json::Value| {
                let answer = pod.request(method, params.clone());
                if let Some(refusal) = answer.get("error") {
                    let code = refusal["code"].as_str().unwrap();
                    assert!(["DB_ERROR", "BAD_ROOT"].contains(&code), "{nth} {method}: {answer}");
                    failed += 1;
                    // It was a single failure.
                    pod.ok(method, params);
                }
            };
            attempt(&mut pod, "initialize", site.initialize());
            pod.ok("config.set", json!({"patch": {"sandboxRoot": site.root()}}));
            attempt(&mut pod, "task.reserve", with(&reserve("a"), json!({"subdir": "x/y"})));
            attempt(&mut pod, "task.turnStarted", turn("a", 1));
            attempt(&mut pod, "task.turnEnded", ended("a", 1, "completed"));
            let task = pod.task("a");
            pod.kill();
            let mut again = Sidecar::spawn(site.command().env_remove("COFFERDAM_FAULT"));
            again.ok("initialize", site.initialize());
            assert_eq!(again.task("a"), task, "{nth}");
            assert_eq!(site.in_root(), ["x"], "{nth}");
            if failed == 0 {
                assert!(nth > 3, "no operation was counted");
                break;
            }
            assert_eq!(failed, 1, "{nth}");
        }
    }
}
