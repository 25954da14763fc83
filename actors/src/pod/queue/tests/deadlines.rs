//! What happens when time is up, and that what is not so any more changes nothing.

use std::time::Duration;

use cofferdam_protocol::pod::{
    TaskCancel, TaskMarkRunning, TaskReattach, TaskStatus, TaskTurnEnded, TaskTurnStarted,
};
use serde_json::json;

use super::{Code, Pod, code};
use crate::pod::messages::Deadline;

#[test]
fn a_deadline_is_told_once_and_ends_the_turn_when_the_grace_is_over() {
    let mut pod = Pod::new(1);
    pod.reserve("a");
    pod.running("a");
    pod.reserve("b");
    pod.forget();
    pod.expire("a", Deadline::Turn(1));
    assert_eq!(pod.told(), ["expired a 1"]);
    assert_eq!(pod.timed(), ["a Grace(1) 10s"]);
    pod.expire("a", Deadline::Turn(1));
    assert!(pod.told().is_empty() && pod.timed().is_empty());
    pod.expire("a", Deadline::Grace(1));
    assert_eq!(pod.told(), ["a timeout", "b starting", "dispatch b"]);
    assert_eq!(pod.timed(), ["a none", "b Heartbeat 60s"]);
}

#[test]
fn deadlines_of_another_turn_change_nothing() {
    let mut pod = Pod::with_task(TaskStatus::Running);
    pod.expire("a", Deadline::Turn(2));
    pod.expire("a", Deadline::Grace(1));
    pod.expire("a", Deadline::FirstTurn);
    pod.expire("a", Deadline::Cancellation);
    pod.expire_unheard("a", Deadline::Heartbeat, None);
    pod.expire("gone", Deadline::Turn(1));
    assert!(pod.told().is_empty() && pod.timed().is_empty());
    assert_eq!(pod.task("a").status, TaskStatus::Running);
}

#[test]
fn what_is_cancelled_while_it_waits_ends_at_once() {
    let mut pod = Pod::new(1);
    for task in ["a", "b", "c"] {
        pod.reserve(task);
    }
    pod.forget();
    let task = pod.ask::<TaskCancel>(json!({"taskId": "b"})).unwrap().task;
    assert_eq!((task.status, task.queued_position), (TaskStatus::Cancelled, 0));
    assert_eq!(pod.told(), ["b cancelled", "c queued 1"]);
}

#[test]
fn an_active_task_has_30_s_to_be_settled_after_it_was_cancelled() {
    let mut pod = Pod::with_task(TaskStatus::Running);
    for _ in 0..2 {
        let task = pod.ask::<TaskCancel>(json!({"taskId": "a"})).unwrap().task;
        assert_eq!(task.status, TaskStatus::Running);
    }
    assert_eq!(pod.timed(), ["a Cancellation 30s"]);
    assert_eq!(pod.audit, ["a cancel requested"]);
    pod.expire("a", Deadline::Cancellation);
    assert_eq!(pod.told(), ["a cancelled"]);
}

#[test]
fn an_end_of_its_own_comes_before_a_cancellation() {
    let mut pod = Pod::with_task(TaskStatus::Running);
    pod.ask::<TaskCancel>(json!({"taskId": "a"})).unwrap();
    pod.held::<TaskTurnEnded>("a", json!({"turn": 1, "reason": "completed"})).unwrap();
    pod.held::<TaskTurnStarted>("a", json!({"turn": 2})).unwrap();
    pod.expire("a", Deadline::Cancellation);
    assert_eq!(pod.task("a").status, TaskStatus::Running);
}

#[test]
fn a_reattached_task_without_a_turn_falls_back_and_frees_its_slot() {
    let mut pod = Pod::new(1);
    pod.reserve("a");
    pod.ended("a", json!({"reason": "error"}));
    let before = pod.task("a");
    pod.at += 1000;
    pod.forget();
    let task = pod.held::<TaskReattach>("a", json!({})).unwrap().task;
    assert_eq!(task.status, TaskStatus::Starting);
    assert_eq!(
        (task.ended_at, task.turns, &task.error, task.created_at),
        (before.ended_at, before.turns, &before.error, before.created_at)
    );
    assert_eq!(pod.timed(), ["a Heartbeat 60s", "a FirstTurn 60s"]);
    assert_eq!(pod.reserve("c").queued_position, 1);
    pod.held::<TaskMarkRunning>("a", json!({})).unwrap();
    pod.forget();
    pod.expire_unheard("a", Deadline::Heartbeat, None);
    assert!(pod.told().is_empty(), "it has a deadline of its own");
    pod.expire("a", Deadline::FirstTurn);
    assert_eq!(pod.told(), ["a failed", "c starting", "dispatch c"]);
    assert_eq!(pod.task("a"), before);
    pod.held::<TaskTurnStarted>("a", json!({"turn": 2})).unwrap();
}

#[test]
fn a_reattached_task_that_is_cancelled_is_at_once_what_it_was() {
    let mut pod = Pod::with_task(TaskStatus::Completed);
    let before = pod.task("a");
    pod.held::<TaskReattach>("a", json!({})).unwrap();
    pod.at += 1000;
    let task = pod.ask::<TaskCancel>(json!({"taskId": "a"})).unwrap().task;
    assert_eq!(task, before);
    pod.expire("a", Deadline::FirstTurn);
    assert_eq!(pod.task("a"), before);
    pod.held::<TaskTurnStarted>("a", json!({"turn": 2})).unwrap();
}

#[test]
fn a_turn_keeps_a_reattached_task_in_its_slot() {
    let mut pod = Pod::with_task(TaskStatus::Completed);
    pod.held::<TaskReattach>("a", json!({})).unwrap();
    pod.held::<TaskTurnStarted>("a", json!({"turn": 2})).unwrap();
    pod.expire("a", Deadline::FirstTurn);
    assert_eq!(pod.task("a").status, TaskStatus::Running);
}

#[test]
fn a_task_is_taken_over_only_from_a_holder_that_is_gone_and_loses_its_turn() {
    let mut pod = Pod::with_task(TaskStatus::Running);
    let other = || json!({"taskId": "a", "leaseId": "N"});
    assert_eq!(code(pod.ask::<TaskReattach>(other())), Code::TaskBusy);
    pod.held::<TaskReattach>("a", json!({})).unwrap();
    assert!(pod.told().is_empty(), "who holds it has nothing to take up");
    pod.silence();
    let task = pod.ask::<TaskReattach>(other()).unwrap().task;
    assert_eq!((task.status, task.turns, task.turn_deadline), (TaskStatus::Starting, 1, 0));
    assert_eq!(code(pod.held::<TaskTurnStarted>("a", json!({"turn": 2}))), Code::StaleLease);
    pod.expire("a", Deadline::Turn(1));
    pod.expire("a", Deadline::FirstTurn);
    let task = pod.task("a");
    assert_eq!((task.status, task.ended_at), (TaskStatus::Interrupted, pod.at));
}

#[test]
fn a_task_without_a_turn_is_interrupted_once_its_holder_is_lost() {
    for status in [TaskStatus::Starting, TaskStatus::Running] {
        let mut pod = Pod::new(1);
        pod.reserve("a");
        if status == TaskStatus::Running {
            pod.held::<TaskMarkRunning>("a", json!({})).unwrap();
        }
        pod.reserve("b");
        pod.forget();
        pod.expire_unheard("a", Deadline::Heartbeat, Some(Duration::from_secs(20)));
        assert_eq!(pod.timed(), ["a Heartbeat 40s"]);
        pod.expire_unheard("a", Deadline::Heartbeat, Some(Duration::from_secs(60)));
        assert_eq!(pod.told(), ["a interrupted", "b starting", "dispatch b"]);
        assert!(pod.task("a").error.starts_with("lease lost"));
    }
}
