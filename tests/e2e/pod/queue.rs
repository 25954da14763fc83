//! Slots and the queue: who gets one, who waits, in which order, and what the host is told of it.

use std::time::Instant;

use cofferdam_tests::pod::{Sidecar, ended, held, is_event, reserve, told, turn};
use serde_json::{Value, json};

use super::site;

/// Everything the request led to, its answer first, as short texts.
#[track_caller]
fn leads_to(pod: &mut Sidecar, method: &str, params: Value) -> Vec<String> {
    pod.heard();
    let id = pod.send(method, params);
    let lines = pod.heard();
    let answer = lines[0].clone();
    assert!(answer.get("result").is_some(), "{method}: {answer}");
    assert_eq!(answer["id"], id, "{method}: the answer comes first");
    told(&lines[1..])
}

/// The queue as its places say, which must be 1, 2, 3 and so on.
#[track_caller]
fn waiting(pod: &mut Sidecar) -> Vec<String> {
    let mut places: Vec<_> = pod
        .tasks()
        .into_iter()
        .filter(|task| task["status"] == "queued")
        .map(|task| (task["queuedPosition"].as_u64().unwrap(), task["id"].as_str().unwrap().to_owned()))
        .collect();
    places.sort();
    for (at, (place, task)) in places.iter().enumerate() {
        assert_eq!(*place, at as u64 + 1, "{task}");
    }
    places.into_iter().map(|(_, task)| task).collect()
}

#[test]
fn who_finds_no_slot_waits_behind_those_who_came_before() {
    let site = site();
    let mut pod = one_runs_and_two_wait(&site);
    assert_eq!(waiting(&mut pod), ["b", "c"]);
}

#[test]
fn a_queued_task_says_so() {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 1}));
    assert_eq!(pod.reserve("a")["startNow"], true);
    let b = pod.reserve("b");
    assert_eq!(b["startNow"], false);
    assert_eq!(b["queuedPosition"], 1);
    assert_eq!(b["policy"], json!(null));
    assert_eq!(b["task"]["status"], "queued");
    assert_eq!(b["task"]["queuedPosition"], 1);
    assert!(b["task"]["queuedAt"].as_i64().unwrap() > 0);
    assert_eq!(pod.reserve("c")["queuedPosition"], 2);
    assert_eq!(site.in_root(), ["a", "b", "c"]);
}

/// `a` runs in the only slot, `b` and `c` wait.
fn one_runs_and_two_wait(site: &cofferdam_tests::pod::PodSite) -> Sidecar {
    let mut pod = site.start_with(json!({"maxConcurrent": 1}));
    pod.run("a");
    pod.reserve("b");
    pod.reserve("c");
    pod
}

#[test]
fn a_turn_that_ends_is_answered_then_told_then_the_next_is_dispatched() {
    let site = site();
    let mut pod = one_runs_and_two_wait(&site);
    pod.heard();
    let id = pod.send("task.turnEnded", ended("a", 1, "completed"));
    let lines = pod.heard();
    let texts = told(&lines);
    let first = [format!("answer {id}"), "changed a completed".to_owned()];
    assert_eq!(texts[..2], first);
    // Those who moved come in any order, before the dispatch.
    let mut moved = texts[2..texts.len() - 1].to_vec();
    moved.sort();
    assert_eq!(moved, ["changed b starting", "changed c queued"]);
    assert_eq!(texts.last().unwrap(), "dispatch b");
    for line in lines.iter().filter(|line| is_event(line, "task.changed")) {
        let params = &line["params"];
        assert_eq!(params["status"], params["task"]["status"]);
        assert_eq!(params["taskId"], params["task"]["id"]);
        if params["taskId"] == "c" {
            assert_eq!(params["task"]["queuedPosition"], 1);
        }
    }
    assert_eq!(lines[0]["result"]["task"], lines[1]["params"]["task"]);
    let dispatch = &lines.last().unwrap()["params"];
    assert_eq!(dispatch, &json!({"kind": "queue.dispatch", "taskId": "b"}));
    // What the host then does.
    let policy = pod.ok("sandbox.prepare", json!({"taskId": "b"}))["policy"].clone();
    assert!(policy["taskDir"].as_str().unwrap().ends_with("/b"));
    assert_eq!(leads_to(&mut pod, "task.markStarting", held("b")), Vec::<String>::new());
    assert_eq!(leads_to(&mut pod, "task.markRunning", held("b")), ["changed b running"]);
    assert_eq!(leads_to(&mut pod, "task.turnStarted", turn("b", 1)), ["changed b running"]);
}

#[test]
fn a_queued_task_that_is_cancelled_moves_up_those_behind_it() {
    let site = site();
    let mut pod = one_runs_and_two_wait(&site);
    let events = leads_to(&mut pod, "task.cancel", json!({"taskId": "b"}));
    assert_eq!(events, ["changed b cancelled", "changed c queued"]);
    let b = pod.task("b");
    assert_eq!(b["queuedPosition"], 0);
    assert!(b["endedAt"].as_i64().unwrap() > 0);
    assert_eq!(waiting(&mut pod), ["c"]);
}

#[test]
fn a_queued_task_can_be_deleted() {
    let site = site();
    let mut pod = one_runs_and_two_wait(&site);
    assert_eq!(pod.ok("task.delete", json!({"taskId": "b"})), json!({"ok": true, "taskId": "b"}));
    pod.refused("TASK_NOT_FOUND", "task.get", json!({"taskId": "b"}));
    assert_eq!(waiting(&mut pod), ["c"]);
    let events = leads_to(&mut pod, "task.turnEnded", ended("a", 1, "completed"));
    assert_eq!(events, ["changed a completed", "changed c starting", "dispatch c"]);
    // The id is free.
    assert_eq!(pod.reserve("b")["queuedPosition"], 1);
}

#[test]
fn a_queue_that_exists_takes_new_tasks_though_queueing_is_switched_off() {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 1}));
    pod.run("a");
    pod.reserve("b");
    pod.configure(json!({"queueEnabled": false}));
    let c = pod.reserve("c");
    assert_eq!(c["startNow"], false);
    assert_eq!(c["queuedPosition"], 2);
    // Once nobody waits there is no queue to join.
    for task in ["b", "c"] {
        pod.ok("task.cancel", json!({"taskId": task}));
    }
    pod.refused("TASK_BUSY", "task.reserve", reserve("d"));
}

#[test]
fn more_slots_are_given_at_once_to_those_who_wait() {
    let site = site();
    let mut pod = one_runs_and_two_wait(&site);
    pod.reserve("d");
    let events = leads_to(&mut pod, "config.set", json!({"patch": {"maxConcurrent": 3}}));
    let dispatched: Vec<_> = events.iter().filter(|event| event.starts_with("dispatch")).collect();
    assert_eq!(dispatched, ["dispatch b", "dispatch c"]);
    for (task, status) in [("a", "running"), ("b", "starting"), ("c", "starting"), ("d", "queued")] {
        assert_eq!(pod.status(task), status);
    }
    assert_eq!(waiting(&mut pod), ["d"]);
}

#[test]
fn fewer_slots_stop_nothing_and_start_nothing() {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 3}));
    for task in ["a", "b", "c"] {
        pod.run(task);
    }
    pod.reserve("d");
    let none = Vec::<String>::new();
    assert_eq!(leads_to(&mut pod, "config.set", json!({"patch": {"maxConcurrent": 1}})), none);
    for task in ["a", "b"] {
        let events = leads_to(&mut pod, "task.turnEnded", ended(task, 1, "completed"));
        assert_eq!(events, [format!("changed {task} completed")]);
    }
    let events = leads_to(&mut pod, "task.turnEnded", ended("c", 1, "completed"));
    assert_eq!(events, ["changed c completed", "changed d starting", "dispatch d"]);
}

#[test]
fn a_follow_up_may_exceed_the_limit_and_keeps_others_waiting() {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 1}));
    pod.finish("a");
    pod.run("b");
    pod.reserve("c");
    assert_eq!(leads_to(&mut pod, "task.turnStarted", turn("a", 2)), ["changed a running"]);
    assert_eq!(pod.ok("diagnostics.get", json!({}))["queue"], json!({"length": 1, "running": 2, "max": 1}));
    // The first that ends brings the count to the limit, not below it.
    let events = leads_to(&mut pod, "task.turnEnded", ended("b", 1, "completed"));
    assert_eq!(events, ["changed b completed"]);
    let events = leads_to(&mut pod, "task.turnEnded", ended("a", 2, "completed"));
    assert_eq!(events, ["changed a completed", "changed c starting", "dispatch c"]);
}

#[test]
fn every_way_to_end_frees_the_slot() {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 1}));
    pod.run("t0");
    let ways: [(&str, Value); 5] = [
        ("task.turnEnded", json!({"turn": 1, "reason": "error"})),
        ("task.setError", json!({"code": "X", "message": "boom"})),
        (
            "task.setSandboxCheck",
            json!({"check": {"mode": "workspace-write", "root": "", "probe": "allowed", "fsDenied": false, "note": "", "at": 1}}),
        ),
        ("task.turnEnded", json!({"turn": 1, "reason": "aborted", "timedOut": true})),
        ("task.bulkCleanup", json!({"statuses": ["running"]})),
    ];
    for (i, (method, params)) in ways.into_iter().enumerate() {
        let next = format!("t{}", i + 1);
        pod.reserve(&next);
        let params = cofferdam_tests::pod::with(&held(&format!("t{i}")), params);
        let events = leads_to(&mut pod, method, params);
        assert_eq!(events.last().unwrap(), &format!("dispatch {next}"), "{method}: {events:?}");
        pod.ok("task.markRunning", held(&next));
        pod.ok("task.turnStarted", turn(&next, 1));
    }
}

#[test]
fn a_thousand_wait_in_order_and_are_dispatched_in_order() {
    const MANY: usize = 1000;
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 1, "maxTasks": 5000}));
    let begun = Instant::now();
    let ids: Vec<_> = (0..MANY).map(|i| pod.send("task.reserve", reserve(&format!("t{i}")))).collect();
    for (i, id) in ids.iter().enumerate() {
        assert_eq!(pod.answer(id)["result"]["queuedPosition"], i);
    }
    let average = begun.elapsed().as_millis() as f64 / MANY as f64;
    assert!(average < 20.0, "{average} ms a request");
    pod.heard();
    // Cancelling from the middle and the end shortens the queue; what is left keeps its order.
    for i in (20..MANY).rev() {
        pod.send("task.delete", json!({"taskId": format!("t{i}")}));
    }
    pod.heard();
    for i in 0..19 {
        pod.ok("task.setError", cofferdam_tests::pod::with(&held(&format!("t{i}")), json!({"message": "x"})));
        assert_eq!(pod.event("queue.dispatch")["taskId"], format!("t{}", i + 1));
    }
    assert_eq!(waiting(&mut pod), Vec::<String>::new());
}
