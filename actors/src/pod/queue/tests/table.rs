//! Every method in every status.

use cofferdam_protocol::pod::*;
use serde_json::{Value, json};

use super::super::rules::Step;
use super::super::verbs::Verb;
use super::{Code, Pod, TaskStatus, code};
use crate::pod::failure::Failure;

/// What became of task `a`: its status after an accepted request, or the code of the refusal.
fn outcome<V: Verb>(status: TaskStatus, more: Value) -> String {
    let mut pod = Pod::with_task(status);
    match pod.held::<V>("a", more) {
        Err(Failure { code, .. }) => format!("{code:?}"),
        Ok(_) if pod.queue.task("a").is_err() => "gone".to_owned(),
        Ok(_) => match pod.task("a").status {
            after if after == status => "same".to_owned(),
            after => after.as_str().to_owned(),
        },
    }
}

fn row(step: Step, status: TaskStatus) -> String {
    let check = json!({"check": {"mode": "workspace-write", "probe": "denied", "fsDenied": true}});
    match step {
        Step::MarkStarting => outcome::<TaskMarkStarting>(status, json!({})),
        Step::MarkRunning => outcome::<TaskMarkRunning>(status, json!({})),
        Step::TurnStarted => outcome::<TaskTurnStarted>(status, json!({"turn": 2})),
        Step::TurnEnded => outcome::<TaskTurnEnded>(status, json!({"turn": 2, "reason": "completed"})),
        Step::SetLastText => outcome::<TaskSetLastText>(status, json!({"text": "t"})),
        Step::SetSandboxCheck => outcome::<TaskSetSandboxCheck>(status, check),
        Step::SetAvailableTools => outcome::<TaskSetAvailableTools>(status, json!({"tools": ["read"]})),
        Step::SetError => outcome::<TaskSetError>(status, json!({"code": "X", "message": "boom"})),
        Step::Heartbeat => outcome::<TaskHeartbeat>(status, json!({})),
        Step::Reattach => outcome::<TaskReattach>(status, json!({})),
        Step::Prepare => outcome::<SandboxPrepare>(status, json!({})),
        Step::Cancel => outcome::<TaskCancel>(status, json!({})),
        Step::Delete => outcome::<TaskDelete>(status, json!({})),
    }
}

#[test]
fn every_method_does_in_every_status_what_the_contract_says() {
    let table = [
        (Step::MarkStarting, ["TaskBusy", "same", "same", "TaskNotResumable"]),
        (Step::MarkRunning, ["TaskBusy", "running", "same", "TaskNotResumable"]),
        (Step::TurnStarted, ["TaskBusy", "running", "same", "running"]),
        (Step::TurnEnded, ["BadRequest", "completed", "completed", "same"]),
        (Step::SetLastText, ["same", "same", "same", "same"]),
        (Step::SetSandboxCheck, ["same", "same", "same", "same"]),
        (Step::SetAvailableTools, ["same", "same", "same", "same"]),
        (Step::SetError, ["failed", "failed", "failed", "same"]),
        (Step::Heartbeat, ["same", "same", "same", "same"]),
        (Step::Reattach, ["TaskBusy", "same", "same", "starting"]),
        (Step::Prepare, ["same", "same", "same", "TaskNotResumable"]),
        (Step::Cancel, ["cancelled", "same", "same", "same"]),
        (Step::Delete, ["gone", "TaskRunning", "TaskRunning", "gone"]),
    ];
    for (step, [queued, starting, running, ended]) in table {
        for status in TaskStatus::ALL {
            let expected = match status {
                TaskStatus::Queued => queued,
                TaskStatus::Starting => starting,
                TaskStatus::Running => running,
                _ => ended,
            };
            assert_eq!(row(step, status), expected, "{step:?} {}", status.as_str());
        }
    }
}

/// The methods of a task's holder, with params that are good for a running task.
fn each_of_the_holder(pod: &mut Pod, task: &str, lease: &str) -> Vec<Code> {
    let check = json!({"mode": "workspace-write", "probe": "denied", "fsDenied": true});
    let ids = |more: Value| {
        let mut params = json!({"taskId": task, "leaseId": lease});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    vec![
        code(pod.ask::<TaskMarkStarting>(ids(json!({})))),
        code(pod.ask::<TaskMarkRunning>(ids(json!({})))),
        code(pod.ask::<TaskTurnStarted>(ids(json!({"turn": 1})))),
        code(pod.ask::<TaskTurnEnded>(ids(json!({"turn": 1, "reason": "completed"})))),
        code(pod.ask::<TaskSetLastText>(ids(json!({"text": "t"})))),
        code(pod.ask::<TaskSetSandboxCheck>(ids(json!({"check": check})))),
        code(pod.ask::<TaskSetAvailableTools>(ids(json!({"tools": []})))),
        code(pod.ask::<TaskSetError>(ids(json!({"message": "m"})))),
        code(pod.ask::<TaskHeartbeat>(ids(json!({})))),
    ]
}

#[test]
fn another_lease_is_stale_whatever_the_status() {
    for status in TaskStatus::ALL {
        let mut pod = Pod::with_task(status);
        assert_eq!(each_of_the_holder(&mut pod, "a", "Z"), [Code::StaleLease; 9], "{}", status.as_str());
        assert_eq!(pod.told(), [""; 0]);
    }
}

#[test]
fn an_unknown_task_is_not_found_by_any_method() {
    let mut pod = Pod::new(1);
    assert_eq!(each_of_the_holder(&mut pod, "no", "L"), [Code::TaskNotFound; 9]);
    let params = || json!({"taskId": "no", "leaseId": "L"});
    let codes = [
        code(pod.ask::<TaskGet>(params())),
        code(pod.ask::<TaskReattach>(params())),
        code(pod.ask::<TaskCancel>(params())),
        code(pod.ask::<TaskDelete>(params())),
        code(pod.ask::<SandboxPrepare>(params())),
        code(pod.ask::<TaskLegacyLog>(params())),
    ];
    assert_eq!(codes, [Code::TaskNotFound; 6]);
}

#[test]
fn a_migrated_task_can_be_looked_at_and_removed_and_nothing_else() {
    let pod = Pod::with_task(TaskStatus::Completed);
    let mut record = pod.queue.task("a").unwrap().clone();
    record.summary.legacy = true;
    let mut pod = Pod::with(pod.root, pod.config, vec![record]);
    assert_eq!(each_of_the_holder(&mut pod, "a", "L"), [Code::LegacyReadonly; 9]);
    let params = || json!({"taskId": "a", "leaseId": "L"});
    assert_eq!(code(pod.ask::<TaskReattach>(params())), Code::LegacyReadonly);
    assert_eq!(code(pod.ask::<TaskCancel>(params())), Code::LegacyReadonly);
    assert_eq!(code(pod.ask::<SandboxPrepare>(params())), Code::LegacyReadonly);
    assert!(pod.task("a").legacy);
    assert_eq!(pod.ask::<TaskList>(json!({})).unwrap().tasks.len(), 1);
    assert!(pod.ask::<TaskBySession>(json!({"sessionId": "s-a"})).unwrap().task.is_some());
    assert!(pod.ask::<TaskDelete>(params()).unwrap().ok);
}
