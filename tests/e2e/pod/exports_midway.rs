//! Exports in their midst: what goes on meanwhile, and what is left when the sidecar ends there.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_tests::mount::Mount;
use cofferdam_tests::pod::{PodSite, Sidecar, held, is_event, reserve, turn, with};
use cofferdam_tests::tree::Tree;
use cofferdam_tests::{files, skip, user};
use serde_json::{Value, json};

use super::exports::{create, each, export, exported, records, undo, with_files};
use super::site;

/// Twice what it promises, for a machine that is busy.
const SOON: Duration = Duration::from_secs(4);

#[test]
fn while_much_is_exported_holders_are_heard_time_goes_on_and_progress_is_told_if_asked_for() {
    let mut site = site();
    site.set("COFFERDAM_TIME_SCALE", 100);
    let mut pod = site.spawn();
    pod.ok("initialize", with(&site.initialize(), json!({"features": ["export.progress", "more"]})));
    pod.configure(json!({"sandboxRoot": site.root(), "timeoutMs": 30_000}));
    pod.finish("a");
    let dir = site.root().join("a");
    files::mkdir(dir.join("d"));
    for n in 0..8 {
        files::write(dir.join(format!("d/{n}")), vec![n; 24 << 20]);
    }
    let params = with(&reserve("b"), json!({"timeoutMs": 30_000}));
    let id = pod.send("export.create", export(&site, &["d"], json!({"mode": "move"})));
    pod.ok("task.reserve", params);
    pod.ok("task.turnStarted", turn("b", 1));
    pod.ok("task.heartbeat", held("b"));
    for (code, method, params) in [
        ("TASK_BUSY", "task.reattach", json!({"taskId": "a", "leaseId": "N"})),
        ("TASK_BUSY", "task.turnStarted", turn("a", 2)),
        ("TASK_BUSY", "task.cleanupFiles", json!({"taskId": "a"})),
    ] {
        pod.refused(code, method, params);
    }
    let running = loop {
        match records(&mut pod) {
            none if none.is_empty() => {}
            running => break running,
        }
    };
    assert_eq!(running[0]["status"], "running");
    pod.refused("UNDO_CONFLICT", "export.undo", exported(&running[0]));
    pod.refused("TASK_BUSY", "export.deleteRecord", exported(&running[0]));
    let progress = pod.event("export.progress");
    assert_eq!((&progress["taskId"], &progress["exportId"]), (&json!("a"), &running[0]["id"]));
    pod.event_of("deadline.expired", "b");
    let answer = pod.answer(&id);
    assert_eq!(answer["result"]["export"]["status"], "completed", "{answer}");
    pod.ok("task.reattach", json!({"taskId": "a", "leaseId": "L"}));
}

#[test]
fn progress_is_not_told_to_a_host_that_did_not_ask() {
    let site = site();
    let (mut pod, _) = with_files(&site, &[("f", "f")]);
    create(&mut pod, export(&site, &["f"], json!({})));
    assert!(!pod.heard().iter().any(|line| is_event(line, "export.progress")));
}

#[test]
fn an_export_that_was_asked_for_before_the_end_of_input_is_made() {
    let site = site();
    let (mut pod, _) = with_files(&site, &[("f", "f")]);
    let id = pod.send("export.create", export(&site, &["f"], json!({})));
    pod.end();
    assert_eq!(pod.answer(&id)["result"]["export"]["status"], "completed");
    assert_eq!(pod.wait().0, 0);
}

#[test]
fn the_end_of_input_does_not_wait_for_a_long_export_and_the_next_start_says_what_was_done() {
    let site = site();
    let (mut pod, dir) = with_files(&site, &[]);
    files::mkdir(dir.join("d"));
    for n in 0..40 {
        files::write(dir.join(format!("d/{n}")), vec![n; 24 << 20]);
    }
    pod.send("export.create", export(&site, &["d"], json!({})));
    while records(&mut pod).is_empty() {}
    pod.end();
    assert!(pod.ends_within(SOON));
    assert_eq!(pod.wait().0, 0);
    let mut pod = site.start();
    let export = records(&mut pod)[0].clone();
    // On a machine that is fast enough it was finished.
    let whole = each(&export, "status").iter().all(|status| *status == "OK");
    assert!(export["status"] == "interrupted" || (whole && export["status"] == "completed"), "{export}");
    let arrived = each(&export, "status").iter().filter(|status| **status == "OK").count();
    let there = site.outside().join("d");
    assert_eq!(if there.exists() { files::names(there).len() } else { 0 }, arrived);
    if arrived > 0 {
        assert_eq!(undo(&mut pod, &export)["conflicts"], json!([]));
    }
    assert_eq!(files::names(site.outside()), [""; 0]);
}

/// More files than an export writes in a batch.
const EXPORTED: usize = 1010;
/// More files than an undo takes back in one.
const UNDONE: usize = 300;

/// Directories with so many files to export, and with files in their way.
fn filled(site: &PodSite, count: usize) -> (PathBuf, Tree, Tree) {
    let (pod, dir) = with_files(site, &[]);
    pod.shutdown();
    let outside = site.outside();
    files::mkdir(dir.join("d"));
    files::mkdir(outside.join("d"));
    (0..count).for_each(|n| files::write(dir.join(format!("d/{n}")), format!("new {n}")));
    (0..count).step_by(3).for_each(|n| files::write(outside.join(format!("d/{n}")), format!("old {n}")));
    let (made, target) = (Tree::read(&dir), Tree::read(&outside));
    (dir, made, target)
}

/// All is as it was, but for the times of directories, which a sidecar that dies cannot put back.
#[track_caller]
fn same_files(before: &Tree, dir: &Path, what: &str) {
    let mut differing = before.differences(&Tree::read(dir));
    differing.retain(|one| !["d: mtime", "the root: mtime"].iter().any(|time| one.starts_with(time)));
    assert_eq!(differing, [""; 0], "{what}");
}

/// Sends a request in the midst of which the sidecar dies.
fn die(mut pod: Sidecar, method: &str, params: Value) {
    pod.send(method, params);
    while pod.line().is_some() {}
    assert_eq!(pod.wait().0, -9);
}

#[test]
fn wherever_an_export_is_killed_nothing_is_lost_and_what_was_done_can_be_undone() {
    for step in [
        "planned",
        "copied",
        "copied#2",
        "kept",
        "kept#2",
        "intended",
        "intended#2",
        "renamed",
        "renamed#2",
        "done",
        "done#2",
    ] {
        for mode in ["copy", "move"] {
            let (site, what) = (site(), format!("{mode} killed at {step}"));
            let count = if step.ends_with("#2") { EXPORTED } else { 30 };
            let (dir, made, target) = filled(&site, count);
            let pod = site.start_with_fault(&format!("export.{step}=kill"));
            die(pod, "export.create", export(&site, &["d"], json!({"mode": mode})));
            let mut pod = site.start();
            let record = records(&mut pod)[0].clone();
            assert_eq!(record["status"], "interrupted", "{what}");
            let all = json!({"exportId": record["id"], "itemLimit": 5000});
            let all = pod.ok("export.list", all)["exports"][0].clone();
            let mut arrived: Vec<_> = Vec::new();
            for item in all["items"].as_array().unwrap().iter().filter(|item| item["status"] == "OK") {
                let dst = Path::new(item["dst"].as_str().unwrap());
                assert_eq!(item["hash"], blake3::hash(&files::read(dst)).to_hex().as_str(), "{what}");
                arrived.push(dst.to_owned());
            }
            for name in files::names(site.outside().join("d")) {
                let path = site.outside().join("d").join(&name);
                let number: usize = name.parse().unwrap_or_else(|_| panic!("{what}: {name} is left"));
                let was_there = number.is_multiple_of(3);
                let expected = if arrived.contains(&path) { "new" } else { "old" };
                assert!(was_there || expected == "new", "{what}: {name} is there");
                assert_eq!(files::read(&path), format!("{expected} {number}").as_bytes(), "{what}");
            }
            if !arrived.is_empty() {
                assert_eq!(undo(&mut pod, &record)["conflicts"], json!([]), "{what}");
            }
            same_files(&target, &site.outside(), &what);
            same_files(&made, &dir, &what);
        }
    }
}

#[test]
fn a_start_while_the_targets_drive_is_away_costs_no_undo() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    let site = site();
    let (dir, made, _) = filled(&site, EXPORTED);
    files::write(site.path("drive/d/0"), "old 0");
    let drive = Tree::read(&site.path("drive"));
    let plugged_in = || Mount::bind(&site.path("drive"), &site.outside());
    for step in ["copied", "renamed", "renamed#2"] {
        let mount = plugged_in();
        let pod = site.start_with_fault(&format!("export.{step}=kill"));
        die(pod, "export.create", export(&site, &["d"], json!({"mode": "move"})));
        drop(mount);
        let before = Tree::read(&site.outside());
        let mut pod = site.start();
        let record = records(&mut pod)[0].clone();
        assert_eq!(record["status"], "interrupted", "{step}");
        assert_ne!(undo(&mut pod, &record)["conflicts"], json!([]), "{step}");
        before.assert_same(&Tree::read(&site.outside()), "the mount point");
        let _mount = plugged_in();
        match pod.request("export.undo", exported(&record)) {
            undone if step == "copied" => assert_eq!(undone["result"]["removed"], json!([]), "{undone}"),
            undone => assert_eq!(undone["result"]["conflicts"], json!([]), "{step}"),
        }
        pod.ok("export.deleteRecord", exported(&record));
        same_files(&drive, &site.path("drive"), step);
        same_files(&made, &dir, step);
        pod.shutdown();
    }
}

#[test]
fn wherever_an_undo_is_killed_it_can_be_finished() {
    for step in ["begun", "returned", "replaced", "removed", "removed#2", "saved", "saved#2"] {
        for mode in ["copy", "move"] {
            let (site, what) = (site(), format!("{mode} killed at {step}"));
            let (dir, made, target) = filled(&site, UNDONE);
            let mut pod = site.start();
            let record = create(&mut pod, export(&site, &["d"], json!({"mode": mode})));
            assert_eq!(record["status"], "completed", "{what}");
            pod.shutdown();
            let pod = site.start_with_fault(&format!("undo.{step}=kill"));
            die(pod, "export.undo", exported(&record));
            let mut pod = site.start();
            let again = pod.request("export.undo", exported(&record));
            // The last step is behind all of it.
            assert!(
                again["result"]["conflicts"] == json!([]) || again["error"]["code"] == "UNDO_CONFLICT",
                "{what}: {again}"
            );
            same_files(&target, &site.outside(), &what);
            same_files(&made, &dir, &what);
        }
    }
}
