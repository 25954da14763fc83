//! Who holds a task: nobody else can change it, and who lost it cannot either.

use cofferdam_tests::pod::{Sidecar, ended, held, reserve, told, turn, with};
use serde_json::{Value, json};

use super::{differing, one_of_each, site};

/// Every method that needs a lease, with the rest of its params.
fn guarded() -> Vec<(&'static str, Value)> {
    let check =
        json!({"mode": "workspace-write", "root": "", "probe": "allowed", "fsDenied": false, "at": 1});
    vec![
        ("task.markStarting", json!({})),
        ("task.markRunning", json!({})),
        ("task.turnStarted", json!({"turn": 2})),
        ("task.turnEnded", json!({"turn": 1, "reason": "completed"})),
        ("task.setLastText", json!({"text": "x"})),
        ("task.setSandboxCheck", json!({"check": check})),
        ("task.setAvailableTools", json!({"tools": ["x"]})),
        ("task.setError", json!({"code": "X", "message": "x"})),
        ("task.heartbeat", json!({})),
    ]
}

fn by(task: &str, lease: &str, more: Value) -> Value {
    with(&json!({"taskId": task, "leaseId": lease}), more)
}

/// Every guarded method is refused with that code for that task and lease, and nothing changes.
#[track_caller]
fn all_are_refused(pod: &mut Sidecar, code: &str, task: &str, lease: &str) {
    let before = pod.tasks();
    pod.heard();
    for (method, params) in guarded() {
        pod.refused(code, method, by(task, lease, params));
    }
    assert_eq!(pod.tasks(), before);
    assert_eq!(told(&pod.heard()), Vec::<String>::new());
}

#[test]
fn another_lease_changes_nothing_in_any_status() {
    let site = site();
    let mut pod = one_of_each(&site);
    for task in ["ended", "running", "starting", "queued"] {
        for lease in ["Z", "l", "L "] {
            all_are_refused(&mut pod, "STALE_LEASE", task, lease);
        }
    }
    pod.ok("task.heartbeat", held("running"));
}

#[test]
fn an_unknown_task_is_not_found_by_any_method() {
    let site = site();
    let mut pod = site.start_rooted();
    all_are_refused(&mut pod, "TASK_NOT_FOUND", "none", "L");
    for method in ["task.get", "task.delete", "task.cancel", "sandbox.prepare", "task.legacyLog"] {
        for task in ["none", "", "../x", &"x".repeat(1000)] {
            pod.refused("TASK_NOT_FOUND", method, json!({"taskId": task}));
        }
    }
    pod.refused("TASK_NOT_FOUND", "task.reattach", held("none"));
}

#[test]
fn after_a_restart_a_task_is_taken_up_again_as_it_was() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.finish("a");
    pod.run("b");
    pod.kill();
    let mut pod = site.start();
    for task in ["a", "b"] {
        let before = pod.task(task);
        pod.heard();
        let again = pod.ok("task.reattach", json!({"taskId": task, "leaseId": "N"}))["task"].clone();
        assert_eq!(again["status"], "starting");
        assert_eq!(differing(&before, &again), ["status"]);
        assert_eq!(told(&pod.heard()), [format!("changed {task} starting")]);
        all_are_refused(&mut pod, "STALE_LEASE", task, "L");
        let turns = before["turns"].as_i64().unwrap();
        let task = pod.ok("task.turnStarted", by(task, "N", json!({"turn": 2})))["task"].clone();
        assert_eq!(task["status"], "running");
        assert_eq!(task["turns"], turns + 1);
    }
}

#[test]
fn while_its_holder_is_heard_of_nobody_else_gets_a_task() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.run("running");
    pod.finish("ended");
    let before = pod.tasks();
    for task in ["running", "ended"] {
        let error = pod.refused("TASK_BUSY", "task.reattach", json!({"taskId": task, "leaseId": "N"}));
        let left = error["data"]["retryAfterMs"].as_u64().unwrap();
        assert!((20_000..=30_000).contains(&left), "{error}");
    }
    assert_eq!(pod.tasks(), before);
    assert_eq!(pod.ok("task.reattach", held("ended"))["task"]["status"], "starting");
    pod.ok("task.reattach", held("running"));
    pod.ok("task.heartbeat", held("running"));
}

#[test]
fn a_heartbeat_answers_the_task_and_tells_nobody() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.run("a");
    pod.heard();
    let task = pod.task("a");
    assert_eq!(pod.ok("task.heartbeat", held("a")), json!({"ok": true, "task": task}));
    assert_eq!(told(&pod.heard()), Vec::<String>::new());
}

#[test]
fn a_deleted_task_takes_its_lease_with_it() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.finish("a");
    pod.ok("task.delete", json!({"taskId": "a"}));
    all_are_refused(&mut pod, "TASK_NOT_FOUND", "a", "L");
    pod.ok("task.reserve", with(&reserve("a"), json!({"leaseId": "M"})));
    all_are_refused(&mut pod, "STALE_LEASE", "a", "L");
    pod.ok("task.markRunning", by("a", "M", json!({})));
}

#[test]
fn a_refused_reserve_takes_no_lease() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.run("a");
    pod.refused("TASK_BUSY", "task.reserve", with(&reserve("a"), json!({"leaseId": "Z"})));
    all_are_refused(&mut pod, "STALE_LEASE", "a", "Z");
    pod.ok("task.turnEnded", ended("a", 1, "completed"));
    pod.ok("task.turnStarted", turn("a", 2));
}
