//! What comes with time: deadlines, leases that go stale, tasks that nothing moves. The sidecar's clock runs faster here.

use cofferdam_tests::pod::{PodSite, Sidecar, ended, held, told, turn, with};
use serde_json::{Value, json};

use super::site;

/// How many seconds the sidecar counts in one.
const SCALE: u32 = 50;

fn fast_site() -> PodSite {
    let mut site = site();
    site.set("COFFERDAM_TIME_SCALE", SCALE);
    site
}

/// A sidecar whose tasks have the shortest time for a turn there is, in one slot.
fn start(site: &PodSite) -> Sidecar {
    site.start_with(json!({"timeoutMs": 30_000, "maxConcurrent": 1}))
}

/// Reserves and starts a task whose turns may take as little as they can.
#[track_caller]
fn run_briefly(pod: &mut Sidecar, task: &str) {
    let params = with(&cofferdam_tests::pod::reserve(task), json!({"timeoutMs": 30_000}));
    assert_eq!(pod.ok("task.reserve", params)["startNow"], true);
    pod.ok("task.turnStarted", turn(task, 1));
}

/// Reads events until that one; returns their short texts, which end with it.
#[track_caller]
fn until(pod: &mut Sidecar, last: &str) -> Vec<String> {
    let mut texts = Vec::new();
    while texts.last().is_none_or(|text| text != last) {
        texts.extend(told(&[pod.line().unwrap()]));
    }
    texts
}

#[test]
fn a_turn_out_of_time_is_announced_once_and_ended_after_the_grace() {
    let site = fast_site();
    let mut pod = start(&site);
    run_briefly(&mut pod, "a");
    pod.reserve("b");
    pod.heard();
    let events = until(&mut pod, "dispatch b");
    assert_eq!(events, ["expired a 1", "changed a timeout", "changed b starting", "dispatch b"]);
    let task = pod.task("a");
    assert_eq!(task["turnDeadline"], 0);
    assert!(task["endedAt"].as_i64().unwrap() > 0);
    // What comes too late changes no status, and says the last word.
    let late = with(&ended("a", 1, "completed"), json!({"lastText": "last words"}));
    let task = pod.ok("task.turnEnded", late)["task"].clone();
    assert_eq!(task["status"], "timeout");
    assert_eq!(task["lastText"], "last words");
    // The task can be gone on with.
    assert_eq!(pod.ok("task.turnStarted", turn("a", 2))["task"]["status"], "running");
}

#[test]
fn a_host_that_settles_within_the_grace_ends_the_turn_itself_and_it_is_a_timeout() {
    let site = fast_site();
    let mut pod = start(&site);
    for (task, reason) in [("a", "completed"), ("b", "aborted"), ("c", "error")] {
        run_briefly(&mut pod, task);
        assert_eq!(
            pod.event("deadline.expired"),
            json!({"kind": "deadline.expired", "taskId": task, "turn": 1})
        );
        let settled = pod.ok("task.turnEnded", ended(task, 1, reason))["task"].clone();
        assert_eq!(settled["status"], "timeout", "{reason}");
    }
}

#[test]
fn a_turn_that_ended_or_a_newer_one_is_not_expired_by_an_old_deadline() {
    let site = fast_site();
    let mut pod = start(&site);
    run_briefly(&mut pod, "a");
    pod.complete("a");
    pod.ok("task.turnStarted", turn("a", 2));
    let expired = pod.event("deadline.expired");
    assert_eq!(expired["turn"], 2, "the first turn had ended");
}

#[test]
fn a_lease_that_is_not_heard_of_for_30_seconds_can_be_taken_over() {
    let site = fast_site();
    let mut pod = site.start_rooted();
    pod.run("a");
    let mut code = pod.request("task.reattach", json!({"taskId": "a", "leaseId": "N"}));
    while let Some(left) = code["error"]["data"]["retryAfterMs"].as_u64() {
        assert!(left <= 30_000, "{code}");
        code = pod.request("task.reattach", json!({"taskId": "a", "leaseId": "N"}));
    }
    assert_eq!(code["result"]["task"]["status"], "starting", "{code}");
    pod.refused("STALE_LEASE", "task.heartbeat", held("a"));
    pod.ok("task.heartbeat", json!({"taskId": "a", "leaseId": "N"}));
}

#[test]
fn a_reattached_task_without_a_turn_falls_back_and_frees_its_slot() {
    let site = fast_site();
    let mut pod = start(&site);
    pod.finish("a");
    let before = pod.task("a");
    assert_eq!(pod.ok("task.reattach", held("a"))["task"]["status"], "starting");
    assert_eq!(pod.reserve("c")["queuedPosition"], 1);
    pod.heard();
    assert_eq!(until(&mut pod, "dispatch c"), ["changed a completed", "changed c starting", "dispatch c"]);
    assert_eq!(pod.task("a"), before);
    // The lease is kept: a follow-up is still possible.
    assert_eq!(pod.ok("task.turnStarted", turn("a", 2))["task"]["status"], "running");
}

#[test]
fn a_dispatched_task_whose_host_is_silent_is_given_up() {
    let site = fast_site();
    let mut pod = start(&site);
    pod.run("a");
    pod.reserve("b");
    pod.reserve("c");
    pod.complete("a");
    pod.heard();
    let events = until(&mut pod, "dispatch c");
    assert_eq!(events, ["changed b interrupted", "changed c starting", "dispatch c"]);
    let error = pod.task("b")["error"].as_str().unwrap().to_owned();
    assert!(error.contains("lease"), "{error}");
}

#[test]
fn a_cancelled_turn_that_nobody_settles_is_cancelled_after_30_seconds() {
    let site = fast_site();
    let mut pod = start(&site);
    pod.run("a");
    pod.reserve("b");
    pod.ok("task.cancel", json!({"taskId": "a"}));
    pod.heard();
    assert_eq!(until(&mut pod, "dispatch b"), ["changed a cancelled", "changed b starting", "dispatch b"]);
    assert_eq!(pod.task("a")["turnDeadline"], 0);
}

#[test]
fn what_time_did_is_durable() {
    let site = fast_site();
    let mut pod = start(&site);
    run_briefly(&mut pod, "a");
    pod.becomes("a", "timeout");
    let task: Value = pod.task("a");
    pod.kill();
    assert_eq!(site.start().task("a"), task);
}
