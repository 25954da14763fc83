//! `task.reserve`: what it refuses in which order, and that a refused one leaves nothing.

use cofferdam_protocol::pod::{TaskReserve, TaskStatus};
use serde_json::{Value, json};

use super::{Code, Pod, code, reserve};

fn with(task: &str, more: Value) -> Value {
    let mut params = reserve(task);
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

/// The names in the sandbox root.
fn names(pod: &Pod) -> Vec<String> {
    let entries = std::fs::read_dir(pod.root.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_reserved_task_has_a_slot_a_directory_a_holder_and_a_policy() {
    let mut pod = Pod::new(3);
    let reserved = pod.ask::<TaskReserve>(with("a", json!({"subdir": "x/y", "timeoutMs": 1}))).unwrap();
    let dir = pod.root.path().join("x/y/a");
    assert!(dir.is_dir());
    let task = reserved.task;
    assert_eq!((reserved.start_now, reserved.queued_position), (true, 0));
    assert_eq!((task.status, task.queued_at, task.timeout_ms), (TaskStatus::Starting, 0, 30_000));
    assert_eq!((task.subdir.as_str(), task.task_dir.as_str()), ("x/y", dir.to_str().unwrap()));
    assert_eq!(reserved.policy.unwrap().task_dir, task.task_dir);
    assert_eq!(pod.leases.len(), 1);
    assert_eq!(pod.timed(), ["a Heartbeat 60s"]);
}

#[test]
fn a_queued_task_has_a_place_and_no_policy_yet() {
    let mut pod = Pod::new(1);
    pod.reserve("a");
    let reserved = pod.reserve("b");
    assert_eq!((reserved.start_now, reserved.queued_position, reserved.policy), (false, 1, None));
    assert_eq!((reserved.task.status, reserved.task.queued_at), (TaskStatus::Queued, pod.at));
}

#[test]
fn refusals_come_in_order_and_leave_no_directory() {
    let mut pod = Pod::new(1);
    let root = pod.config.sandbox_root.clone();
    pod.configure(json!({"sandboxRoot": "", "queueEnabled": false, "allowWrites": false}));
    let refused = |pod: &mut Pod, more: Value| code(pod.ask::<TaskReserve>(with("b", more)));
    // All that can be wrong is; it is put right from the front.
    let taken = json!({"taskId": "a", "subdir": "..", "allow": ["write"]});
    assert_eq!(refused(&mut pod, taken), Code::ConfigInvalid);
    assert_eq!(refused(&mut pod, json!({"taskId": "a", "subdir": ".."})), Code::NoSandboxRoot);
    pod.configure(json!({"sandboxRoot": root}));
    pod.reserve("a");
    assert_eq!(refused(&mut pod, json!({"taskId": "a", "subdir": ".."})), Code::BadSubdir);
    assert_eq!(refused(&mut pod, json!({"taskId": "a", "subdir": "x"})), Code::TaskBusy);
    assert_eq!(refused(&mut pod, json!({"sessionId": "s-a", "subdir": "x"})), Code::TaskBusy);
    assert_eq!(refused(&mut pod, json!({"subdir": "x"})), Code::TaskBusy);
    assert_eq!(names(&pod), ["a"]);
}

#[test]
fn a_queue_that_is_there_takes_more_even_if_it_is_off() {
    let mut pod = Pod::new(1);
    pod.reserve("a");
    pod.reserve("b");
    pod.configure(json!({"queueEnabled": false}));
    assert_eq!(pod.reserve("c").queued_position, 2);
}

#[test]
fn a_reservation_that_cannot_be_saved_is_taken_back_on_the_disk() {
    let mut pod = Pod::new(1);
    let (_, undo) = pod.ask_kept::<TaskReserve>(with("a", json!({"subdir": "x"}))).unwrap();
    assert_eq!(names(&pod), ["x"]);
    undo.unwrap()();
    assert_eq!(names(&pod), [""; 0]);
}

#[test]
fn what_is_not_said_is_taken_from_the_configuration() {
    let mut pod = Pod::new(1);
    pod.configure(json!({"allowWrites": false, "allowedTools": ["read", "write", "glob"], "presetId": "p"}));
    let params = json!({"taskId": "a", "sessionId": "s", "leaseId": "L", "description": " tidy\n up "});
    let task = pod.ask::<TaskReserve>(params).unwrap().task;
    assert_eq!(task.allow, ["read", "glob"]);
    assert_eq!((task.label.as_str(), task.preset_id.as_str(), task.timeout_ms), ("tidy up", "p", 600_000));
}
