//! Any requests in any order: what is refused changes nothing, memory is what the database holds (both are checked after
//! each request, see [`Pod::ask`]), and nothing starts where there is no slot.

use std::time::Duration;

use cofferdam_protocol::pod::*;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Deadline, Pod, reserve};

#[derive(Clone, Copy, Debug)]
struct Step {
    what: u8,
    task: u8,
    lease: u8,
    turn: u64,
    detail: usize,
}

fn step() -> impl Strategy<Value = Step> {
    (0..19_u8, 0..5_u8, 0..8_u8, 1..4_u64, 0..8_usize).prop_map(|(what, task, lease, turn, detail)| Step {
        what,
        task,
        lease,
        turn,
        detail,
    })
}

fn carry_out(pod: &mut Pod, Step { what, task, lease, turn, detail }: Step) {
    const REASONS: [&str; 8] =
        ["completed", "aborted", "error", "blocked", "max-tokens", "forked", "interrupted", "weird"];
    const PROBES: [&str; 5] = ["denied", "allowed", "ambiguous", "failed", "skipped-no-parent"];
    let id = ["a", "b", "c", "d", "e"][usize::from(task)];
    // Mostly the right one.
    let lease = if lease == 0 { "N" } else { "L" };
    let ids = |more: Value| {
        let mut params = json!({"taskId": id, "leaseId": lease});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let check = json!({"mode": "workspace-write", "probe": PROBES[detail % 5], "fsDenied": true});
    match what {
        0..=2 => drop(pod.ask::<TaskReserve>(reserve(id))),
        3 => drop(pod.ask::<TaskReattach>(ids(json!({})))),
        4 => drop(pod.ask::<TaskMarkRunning>(ids(json!({})))),
        5 | 6 => drop(pod.ask::<TaskTurnStarted>(ids(json!({"turn": turn})))),
        7 | 8 => drop(pod.ask::<TaskTurnEnded>(ids(
            json!({"turn": turn, "reason": REASONS[detail], "timedOut": detail == 3, "lastText": "t"}),
        ))),
        9 => drop(pod.ask::<TaskSetSandboxCheck>(ids(json!({"check": check})))),
        10 => drop(pod.ask::<TaskSetError>(ids(json!({"message": "m"})))),
        11 => drop(pod.ask::<TaskSetLastText>(ids(json!({"text": format!("{detail}")})))),
        12 => drop(pod.ask::<TaskCancel>(ids(json!({})))),
        13 => drop(pod.ask::<TaskDelete>(ids(json!({})))),
        14 => drop(pod.ask::<TaskBulkCleanup>(json!({"statuses": [TaskStatus::ALL[detail].as_str()]}))),
        15 => drop(pod.configure(json!({"maxConcurrent": detail % 3 + 1, "queueEnabled": detail < 4}))),
        16 => pod.silence(),
        _ => {
            let deadline = match detail {
                0 | 1 => Deadline::Turn(turn),
                2 | 3 => Deadline::Grace(turn),
                4 => Deadline::FirstTurn,
                5 => Deadline::Cancellation,
                _ => Deadline::Heartbeat,
            };
            let unheard = (detail == 6).then(|| Duration::from_secs(turn * 20));
            pod.expire_unheard(id, deadline, unheard);
        }
    }
    pod.at += 1;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn nothing_starts_without_a_slot_and_memory_is_what_the_database_holds(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut pod = Pod::new(2);
        for step in steps {
            let before = pod.queue.active();
            carry_out(&mut pod, step);
            let limit = usize::try_from(pod.config.max_concurrent).unwrap();
            let (active, told) = (pod.queue.active(), pod.told());
            let dispatched = told.iter().any(|event| event.starts_with("dispatch"));
            let started = matches!(step.what, 0..=2) && active > before;
            prop_assert!(!(dispatched || started) || active <= limit, "{active} of {limit}: {told:?}");
        }
    }
}
