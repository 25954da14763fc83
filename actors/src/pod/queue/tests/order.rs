//! In which order things are told, and places in the queue.

use cofferdam_protocol::pod::{TaskHeartbeat, TaskList, TaskMarkRunning, TaskTurnEnded};
use serde_json::json;

use super::Pod;

#[test]
fn the_task_itself_comes_first_then_others_then_dispatches() {
    let mut pod = Pod::new(1);
    let places: Vec<_> = ["a", "b", "c"].map(|task| pod.reserve(task).queued_position).into();
    assert_eq!(places, [0, 1, 2]);
    pod.running("a");
    pod.forget();
    pod.held::<TaskTurnEnded>("a", json!({"turn": 1, "reason": "weird"})).unwrap();
    assert_eq!(pod.told(), ["a failed", "b starting", "c queued 1", "warning a", "dispatch b"]);
    assert_eq!(pod.audit, ["a failed", "b starting"]);
}

#[test]
fn more_slots_are_filled_at_once_and_fewer_stop_nothing() {
    let mut pod = Pod::new(1);
    for task in ["a", "b", "c", "d"] {
        pod.reserve(task);
    }
    pod.forget();
    pod.configure(json!({"maxConcurrent": 3}));
    let told = ["b starting", "c starting", "d queued 1", "dispatch b", "dispatch c"];
    assert_eq!(pod.told(), told);
    pod.configure(json!({"maxConcurrent": 1}));
    assert_eq!(pod.queue.active(), 3);
    pod.ended("a", json!({"reason": "completed"}));
    pod.ended("b", json!({"reason": "completed"}));
    pod.forget();
    pod.ended("c", json!({"reason": "completed"}));
    assert!(pod.told().contains(&"dispatch d".to_owned()));
}

#[test]
fn what_changes_nothing_is_told_to_nobody_and_written_nowhere() {
    let mut pod = Pod::new(1);
    pod.reserve("a");
    pod.held::<TaskMarkRunning>("a", json!({})).unwrap();
    pod.forget();
    pod.held::<TaskMarkRunning>("a", json!({})).unwrap();
    pod.held::<TaskHeartbeat>("a", json!({})).unwrap();
    assert_eq!(pod.configure(json!({})), [""; 0]);
    assert!(pod.told().is_empty() && pod.timed().is_empty() && pod.audit.is_empty());
}

#[test]
fn the_queue_is_served_in_the_order_of_reservation_even_if_the_clock_goes_back() {
    let mut pod = Pod::new(1);
    for task in ["a", "b", "c"] {
        pod.reserve(task);
        pod.at -= 1000;
    }
    pod.forget();
    for (task, next) in [("a", "dispatch b"), ("b", "dispatch c")] {
        pod.ended(task, json!({"reason": "completed"}));
        assert!(pod.told().contains(&next.to_owned()));
    }
}

#[test]
fn a_list_begins_with_the_newest_and_shows_places() {
    let mut pod = Pod::new(1);
    for task in ["a", "b", "c"] {
        pod.reserve(task);
        pod.at += i64::from(task != "b");
    }
    let tasks = pod.ask::<TaskList>(json!({})).unwrap().tasks;
    let shown: Vec<_> = tasks.iter().map(|task| (task.id.as_str(), task.queued_position)).collect();
    assert_eq!(shown, [("c", 2), ("b", 1), ("a", 0)]);
}
