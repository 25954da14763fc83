//! Tasks that go.

use cofferdam_protocol::pod::{TaskBulkCleanup, TaskDelete, TaskHeartbeat, TaskStatus};
use cofferdam_storage::pod::TaskRecord;
use serde_json::json;

use super::{Code, Pod, code};

#[test]
fn a_queued_task_that_is_deleted_leaves_its_place_to_the_next() {
    let mut pod = Pod::new(1);
    for task in ["a", "b", "c"] {
        pod.reserve(task);
    }
    pod.forget();
    pod.ask::<TaskDelete>(json!({"taskId": "b"})).unwrap();
    assert_eq!(pod.told(), ["c queued 1"]);
    assert_eq!(pod.timed(), ["b none"]);
    assert_eq!(code(pod.held::<TaskHeartbeat>("b", json!({}))), Code::TaskNotFound);
    // Its id and session are free again.
    assert_eq!(pod.reserve("b").queued_position, 2);
}

#[test]
fn whoever_moves_up_several_places_is_told_once_where_to() {
    let mut pod = Pod::new(1);
    for task in ["a", "b", "c", "d", "e"] {
        pod.reserve(task);
        pod.at += i64::from(task == "d") * 100;
    }
    pod.forget();
    pod.ask::<TaskBulkCleanup>(json!({"statuses": ["starting", "queued"], "olderThanMs": 50})).unwrap();
    assert_eq!(pod.told(), ["e starting", "dispatch e"]);
    for task in ["f", "g", "h"] {
        pod.reserve(task);
    }
    pod.at += 100;
    pod.reserve("i");
    pod.forget();
    pod.ask::<TaskBulkCleanup>(json!({"statuses": ["queued"], "olderThanMs": 50})).unwrap();
    assert_eq!(pod.told(), ["i queued 1"]);
}

#[test]
fn a_clean_up_takes_what_was_asked_for_the_oldest_first() {
    let mut pod = Pod::new(3);
    for (task, reason) in [("a", "completed"), ("b", "error"), ("c", "completed")] {
        pod.reserve(task);
        pod.ended(task, json!({"reason": reason}));
        pod.at += 10;
    }
    let gone = |pod: &mut Pod, params| {
        let result = pod.ask::<TaskBulkCleanup>(params).unwrap();
        assert_eq!((result.deleted, result.more), (result.results.len(), false));
        result.results.into_iter().map(|row| row.task_id).collect::<Vec<_>>()
    };
    assert_eq!(gone(&mut pod, json!({"olderThanMs": 3_600_000})), [""; 0]);
    // Exactly as old is not older.
    assert_eq!(gone(&mut pod, json!({"olderThanMs": 30})), [""; 0]);
    assert_eq!(gone(&mut pod, json!({})), ["a", "c"]);
    assert_eq!(gone(&mut pod, json!({"statuses": ["failed"]})), ["b"]);
}

#[test]
fn a_clean_up_of_active_tasks_frees_their_slots() {
    let mut pod = Pod::new(1);
    pod.reserve("a");
    pod.reserve("b");
    pod.forget();
    pod.ask::<TaskBulkCleanup>(json!({"statuses": ["starting"]})).unwrap();
    assert_eq!(pod.told(), ["b starting", "dispatch b"]);
    assert_eq!(code(pod.held::<TaskHeartbeat>("a", json!({}))), Code::TaskNotFound);
}

#[test]
fn a_clean_up_that_names_nothing_is_refused() {
    let mut pod = Pod::new(1);
    assert_eq!(code(pod.ask::<TaskBulkCleanup>(json!({"statuses": []}))), Code::BadRequest);
    assert_eq!(code(pod.ask::<TaskBulkCleanup>(json!({"statuses": ["ended"]}))), Code::BadRequest);
}

#[test]
fn no_more_than_500_go_at_once() {
    let pod = Pod::with_task(TaskStatus::Completed);
    let record = pod.queue.task("a").unwrap().clone();
    let records = (0..501).map(|number| {
        let mut record = TaskRecord { row: number, ..record.clone() };
        record.summary.id = format!("t{number}");
        record.summary.session_id = format!("s{number}");
        record
    });
    let mut pod = Pod::with(pod.root, pod.config, records.collect());
    let result = pod.ask::<TaskBulkCleanup>(json!({})).unwrap();
    assert_eq!((result.deleted, result.more), (500, true));
    assert_eq!(pod.queue.all().map(|task| task.summary.id.as_str()).collect::<Vec<_>>(), ["t500"]);
}
