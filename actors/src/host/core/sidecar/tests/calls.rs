//! Requests and their answers.

use std::time::Duration;

use cofferdam_protocol::pod::*;
use serde_json::json;

use super::Script;
use crate::host::core::sidecar::calls::IN_FLIGHT;
use crate::host::core::testing::{Fixture, params, refused, unavailable};
use crate::pod::Failure;

type Answers = Vec<tokio::task::JoinHandle<Result<TaskDeleted, Failure>>>;

/// Asks without waiting. Requests are on their way when the next thing is asked.
async fn delete_many(core: &Fixture, count: usize) -> Answers {
    let ask = |number| {
        let pod = core.core.pod.clone();
        let request = params::<TaskDelete>(json!({"taskId": format!("t{number}")}));
        actix::spawn(async move { pod.ask(request).await })
    };
    let asked = (0..count).map(ask).collect();
    tokio::task::yield_now().await;
    core.describe().await;
    asked
}

#[actix::test]
async fn each_request_gets_its_own_answer_in_whatever_order_they_come() {
    let script = Script::new(
        "initialize()
        waiting = []
        def later(request):
            waiting.append(request)
            if len(waiting) == 200:
                for request in reversed(waiting):
                    deleted(request)
        serve(task_delete=later)",
    );
    let mut core = script.start();
    core.ready().await;
    for (number, answer) in delete_many(&core, 200).await.into_iter().enumerate() {
        assert_eq!(answer.await.unwrap().unwrap().task_id, format!("t{number}"));
    }
}

#[actix::test]
async fn events_and_answers_come_typed_and_refusals_with_their_data() {
    let script = Script::new(
        "initialize()
        def busy(request):
            event(kind='deadline.expired', taskId='a', turn=3)
            refuse(request, 'TASK_BUSY', 'later', {'retryAfterMs': 5})
        serve(task_delete=busy)",
    );
    let mut core = script.start();
    core.ready().await;
    let failure = core.ask::<TaskDelete>(json!({"taskId": "a"})).await.unwrap_err();
    assert_eq!((failure.code, &*failure.message), (PodErrorCode::TaskBusy, "later"));
    assert_eq!(failure.data, json!({"retryAfterMs": 5}));
    assert_eq!(core.said().await, PodEvent::DeadlineExpired { task_id: "a".to_owned(), turn: 3 });
}

#[actix::test]
async fn what_a_newer_core_says_besides_is_left_out() {
    let script = Script::new(
        "initialize()
        event(kind='moon.rises')
        say({'id': '99999', 'result': {}})
        say({'id': 'x', 'result': {}})
        put('')
        def odd(request):
            answer(request, {'moon': 1})
        event(kind='queue.dispatch', taskId='a')
        serve(task_delete=odd)",
    );
    let mut core = script.start();
    let state = core.ready().await;
    assert_eq!(core.said().await, PodEvent::QueueDispatch { task_id: "a".to_owned() });
    let odd = core.ask::<TaskDelete>(json!({"taskId": "a"})).await;
    assert_eq!(refused(odd).0, PodErrorCode::Internal, "an answer that cannot be read");
    assert_eq!(core.ask::<Health>(json!({})).await.unwrap().pid, state.pid, "it lives on");
}

#[actix::test]
async fn more_requests_than_may_wait_are_refused_at_once() {
    let script = Script::new(
        "initialize()
        waiting = []
        def later(request):
            waiting.append(request)
            if len(waiting) == 256:
                for request in waiting:
                    deleted(request)
        serve(task_delete=later)",
    );
    let mut core = script.start();
    core.ready().await;
    let asked = delete_many(&core, IN_FLIGHT + 5).await;
    let mut overloaded = 0;
    for answer in asked {
        match answer.await.unwrap() {
            Ok(_) => {}
            refusal => {
                assert_eq!(refused(refusal), unavailable("OVERLOADED"));
                overloaded += 1;
            }
        }
    }
    assert_eq!(overloaded, 5);
    assert!(core.ask::<Health>(json!({})).await.is_ok(), "there is room again");
}

#[actix::test]
async fn an_answer_that_takes_too_long_is_not_waited_for_unless_it_is_about_files() {
    let script = Script::new(
        "initialize()
        waiting = []
        def late(request):
            for late in waiting:
                if late['method'] == 'task.delete':
                    deleted(late)
                else:
                    answer(late, {'ok': True, 'removed': True})
            health(request)
        serve(task_delete=waiting.append, task_cleanupFiles=waiting.append, health=late)",
    )
    .patience(Duration::from_secs(2));
    let mut core = script.start();
    core.ready().await;
    let cleanup = {
        let pod = core.core.pod.clone();
        actix::spawn(async move { pod.ask(params::<TaskCleanupFiles>(json!({"taskId": "a"}))).await })
    };
    let delete = core.ask::<TaskDelete>(json!({"taskId": "a"})).await;
    assert_eq!(refused(delete), unavailable("TIMEOUT"));
    assert!(!cleanup.is_finished());
    assert!(core.ask::<Health>(json!({})).await.is_ok(), "what came too late is nobody's");
    assert!(cleanup.await.unwrap().unwrap().removed);
}

#[actix::test]
async fn a_request_that_fits_no_line_is_not_sent() {
    let script = Script::new(
        "initialize()
        def measure(request):
            note('sent', str(len(json.dumps(request))))
            refuse(request, 'TASK_NOT_FOUND')
        serve(task_setLastText=measure)",
    );
    let mut core = script.start();
    core.ready().await;
    let text = |length| json!({"taskId": "a", "leaseId": "L", "text": "x".repeat(length)});
    let refusal = core.ask::<TaskSetLastText>(text(MAX_REQUEST_LINE)).await;
    assert_eq!(refused(refusal).0, PodErrorCode::BadRequest);
    let refusal = core.ask::<TaskSetLastText>(text(MAX_REQUEST_LINE - 500)).await;
    assert_eq!(refused(refusal).0, PodErrorCode::TaskNotFound);
    assert_eq!(script.noted("sent").len(), 1);
}

#[actix::test]
async fn the_longest_line_there_may_be_is_read() {
    let script = Script::new(
        "initialize()
        def long(request):
            empty = len(json.dumps({'id': request['id'], 'result': {'ok': True, 'taskId': ''}}))
            answer(request, {'ok': True, 'taskId': 'x' * ((4 << 20) - empty)})
        serve(task_delete=long)",
    );
    let mut core = script.start();
    core.ready().await;
    let answer = core.ask::<TaskDelete>(json!({"taskId": "a"})).await.unwrap();
    assert!(answer.task_id.len() > (4 << 20) - 200);
}

#[actix::test]
async fn a_core_that_does_not_read_holds_nobody_up() {
    let script = Script::new("initialize()\nsignal.pause()");
    let mut core = script.start();
    let state = core.ready().await;
    // Far more than a pipe holds, and than may wait.
    let text = json!({"taskId": "a", "leaseId": "L", "text": "x".repeat(900_000)});
    let ask = |_| {
        let (pod, request) = (core.core.pod.clone(), params::<TaskSetLastText>(text.clone()));
        actix::spawn(async move { pod.ask(request).await })
    };
    let asked: Vec<_> = (0..40).map(ask).collect();
    tokio::task::yield_now().await;
    assert_eq!(core.describe().await.state, state);
    let mut overloaded = 0;
    for answer in asked.into_iter().rev() {
        // The first ones wait for ever.
        if answer.is_finished() {
            assert_eq!(refused(answer.await.unwrap()), unavailable("OVERLOADED"));
            overloaded += 1;
        }
    }
    assert!((20..30).contains(&overloaded), "{overloaded}");
}

#[actix::test]
async fn a_flood_on_stderr_neither_holds_the_core_up_nor_fills_memory() {
    let script = Script::new(
        "initialize()
        for number in range(1000):
            sys.stderr.write(('%d ' % number + 'x' * 1000 + '\\n') * 100)
        for number in range(60):
            sys.stderr.write('%d\\n' % number)
        sys.stderr.flush()
        serve()",
    );
    let mut core = script.start();
    core.ready().await;
    assert!(core.ask::<Health>(json!({})).await.is_ok());
    let last: Vec<_> = (10..60).map(|number: u32| number.to_string()).collect();
    // It is read beside, perhaps a little later than the answer.
    while core.describe().await.stderr_tail != last {
        tokio::task::yield_now().await;
    }
}
