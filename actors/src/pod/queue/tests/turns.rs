//! Turns: what they are counted by, and what their ends mean.

use cofferdam_protocol::pod::{TaskStatus, TaskTurnEnded, TaskTurnStarted};
use serde_json::{Value, json};

use super::{Code, Pod, START, code};
use crate::pod::messages::Deadline;

fn started(pod: &mut Pod, turn: u64) -> (TaskStatus, i64) {
    let task = pod.held::<TaskTurnStarted>("a", json!({"turn": turn})).unwrap().task;
    (task.status, task.turns)
}

fn ended(pod: &mut Pod, turn: u64, reason: &str) -> (TaskStatus, i64) {
    let task = pod.held::<TaskTurnEnded>("a", json!({"turn": turn, "reason": reason})).unwrap().task;
    (task.status, task.turns)
}

#[test]
fn a_reason_maps_to_the_status_that_the_contract_says() {
    use TaskStatus::{Cancelled, Completed, Failed, Interrupted, Timeout};
    let check = |more: Value, status: TaskStatus, explained: bool| {
        let mut pod = Pod::with_task(TaskStatus::Starting);
        pod.ended("a", more);
        let task = pod.task("a");
        assert_eq!((task.status, !task.error.is_empty()), (status, explained), "{task:?}");
        assert_eq!((task.ended_at, task.turn_deadline), (START, 0));
        pod.told().contains(&"warning a".to_owned())
    };
    for (reason, status) in [
        ("completed", Completed),
        ("max-tokens", Completed),
        ("forked", Completed),
        ("aborted", Cancelled),
        ("error", Failed),
        ("blocked", Failed),
        ("interrupted", Interrupted),
    ] {
        assert!(!check(json!({"reason": reason}), status, status == Failed), "{reason}");
        assert!(!check(json!({"reason": reason, "timedOut": true}), Timeout, true), "{reason}");
    }
    assert!(check(json!({"reason": "weird"}), Failed, true), "an unknown reason is worth a warning");
    assert!(!check(json!({"timedOut": true}), Timeout, true));
}

#[test]
fn an_end_without_a_reason_must_be_a_timeout() {
    let mut pod = Pod::with_task(TaskStatus::Running);
    assert_eq!(code(pod.held::<TaskTurnEnded>("a", json!({"turn": 1}))), Code::BadRequest);
}

#[test]
fn a_turn_that_is_started_twice_counts_once_and_has_one_deadline() {
    let mut pod = Pod::with_task(TaskStatus::Starting);
    assert_eq!(started(&mut pod, 1), (TaskStatus::Running, 1));
    assert_eq!(pod.timed(), ["a Turn(1) 600s"]);
    let deadline = pod.task("a").turn_deadline;
    assert_eq!(deadline, START + 600_000);
    pod.at += 5;
    pod.forget();
    assert_eq!(started(&mut pod, 1), (TaskStatus::Running, 1));
    assert_eq!(pod.task("a").turn_deadline, deadline);
    assert!(pod.told().is_empty() && pod.timed().is_empty());
}

#[test]
fn the_end_of_an_older_turn_changes_nothing() {
    let mut pod = Pod::with_task(TaskStatus::Completed);
    assert_eq!(started(&mut pod, 2), (TaskStatus::Running, 2));
    pod.forget();
    let late = json!({"turn": 1, "reason": "completed", "lastText": "old"});
    let task = pod.held::<TaskTurnEnded>("a", late).unwrap().task;
    assert_eq!((task.status, task.last_text.as_str()), (TaskStatus::Running, ""));
    assert!(pod.told().is_empty());
    assert_eq!(ended(&mut pod, 2, "completed"), (TaskStatus::Completed, 2));
}

#[test]
fn the_end_of_a_turn_whose_start_was_missed_settles_it_and_counts_it() {
    let mut pod = Pod::with_task(TaskStatus::Running);
    assert_eq!(ended(&mut pod, 2, "completed"), (TaskStatus::Completed, 2));
    let mut pod = Pod::with_task(TaskStatus::Starting);
    assert_eq!(ended(&mut pod, 7, "error"), (TaskStatus::Failed, 1));
}

#[test]
fn the_first_end_counts_and_a_later_one_brings_only_its_text() {
    let mut pod = Pod::with_task(TaskStatus::Running);
    pod.expire("a", Deadline::Turn(1));
    pod.expire("a", Deadline::Grace(1));
    let late = json!({"turn": 1, "reason": "completed", "lastText": "done"});
    let task = pod.held::<TaskTurnEnded>("a", late).unwrap().task;
    assert_eq!((task.status, task.last_text.as_str()), (TaskStatus::Timeout, "done"));
}

#[test]
fn an_end_after_the_deadline_was_told_is_a_timeout() {
    let mut pod = Pod::with_task(TaskStatus::Running);
    pod.expire("a", Deadline::Turn(1));
    assert_eq!(ended(&mut pod, 1, "completed"), (TaskStatus::Timeout, 1));
    // The next turn has a deadline of its own.
    assert_eq!(started(&mut pod, 2), (TaskStatus::Running, 2));
    assert_eq!(ended(&mut pod, 2, "completed"), (TaskStatus::Completed, 2));
}

#[test]
fn a_follow_up_takes_a_slot_that_is_not_there_and_nothing_starts_until_one_is() {
    let mut pod = Pod::new(1);
    pod.reserve("a");
    pod.ended("a", json!({"reason": "error"}));
    pod.reserve("b");
    pod.reserve("c");
    pod.forget();
    assert_eq!(started(&mut pod, 2), (TaskStatus::Running, 2));
    assert_eq!(pod.task("a").error, "", "what went wrong in an earlier turn is past");
    assert_eq!(pod.queue.active(), 2);
    pod.forget();
    pod.ended("b", json!({"reason": "completed"}));
    assert!(!pod.told().contains(&"dispatch c".to_owned()));
    assert_eq!(ended(&mut pod, 2, "completed").0, TaskStatus::Completed);
    assert_eq!(pod.told(), ["a completed", "c starting", "dispatch c"]);
}

#[test]
fn a_last_text_is_cut_and_told_apart_from_other_changes() {
    let mut pod = Pod::with_task(TaskStatus::Running);
    let text = json!({"text": "é".repeat(5000)});
    let task = pod.held::<cofferdam_protocol::pod::TaskSetLastText>("a", text).unwrap().task;
    assert_eq!(task.last_text, "é".repeat(4000));
    assert!(pod.told().is_empty(), "the actor tells it at its own pace");
}
