//! What a holder says of its task.

use cofferdam_protocol::pod::{TaskSetError, TaskSetSandboxCheck, TaskStatus};
use serde_json::json;

use super::Pod;

#[test]
fn a_self_test_fails_the_task_or_warns_as_the_configuration_says() {
    use TaskStatus::{Failed, Running};
    for (probe, strict, warn, warned) in [
        ("denied", Running, Running, [false, false]),
        ("allowed", Failed, Failed, [false, false]),
        ("ambiguous", Failed, Running, [false, true]),
        ("failed", Failed, Running, [false, true]),
        ("skipped-no-parent", Running, Running, [true, true]),
    ] {
        for (mode, status, warned) in [("strict", strict, warned[0]), ("warn", warn, warned[1])] {
            let mut pod = Pod::with_task(Running);
            pod.configure(json!({"sandboxProbeMode": mode}));
            let denied = probe == "denied";
            let check = json!({"mode": "read-only", "probe": probe, "fsDenied": denied, "note": "n"});
            let task = pod.held::<TaskSetSandboxCheck>("a", json!({"check": check})).unwrap().task;
            assert_eq!(task.status, status, "{probe} {mode}");
            assert_eq!(task.error.ends_with(": n"), status == Failed, "{probe} {mode}");
            assert_eq!((task.sandbox_probe.as_str(), task.sandbox_mode.as_str()), (probe, "read-only"));
            assert_eq!(task.fs_denied, denied);
            assert_eq!(pod.told().contains(&"warning a".to_owned()), warned, "{probe} {mode}");
            assert!(pod.audit.contains(&format!("a sandbox check {probe}")));
        }
    }
}

#[test]
fn an_error_fails_what_has_not_ended_and_frees_its_slot() {
    let mut pod = Pod::new(1);
    pod.reserve("a");
    pod.running("a");
    pod.reserve("b");
    pod.forget();
    let task = pod.held::<TaskSetError>("a", json!({"code": "X", "message": "boom"})).unwrap().task;
    assert_eq!((task.status, task.error.as_str(), task.turn_deadline), (TaskStatus::Failed, "boom", 0));
    assert_eq!(pod.told(), ["a failed", "b starting", "dispatch b"]);
    assert_eq!(pod.audit, ["a failed", "a error X", "b starting"]);
}

#[test]
fn an_error_after_the_end_is_kept_and_the_status_stays() {
    let mut pod = Pod::with_task(TaskStatus::Completed);
    let long = "é".repeat(2001);
    let task = pod.held::<TaskSetError>("a", json!({"code": "X", "message": long})).unwrap().task;
    assert_eq!((task.status, task.error), (TaskStatus::Completed, "é".repeat(2000)));
}
