//! What may happen to the files of a task, and what not while somebody works on them.

use cofferdam_protocol::pod::{
    CleanupFilesResult, ExportCreate, ExportMode, TaskBulkCleanup, TaskCleanupFiles, TaskDelete, TaskReattach,
};

use super::*;
use crate::pod::queue::FileUse;

/// Asks for files to be removed, of a task of that directory beside the task `a`. It is refused before the disk is asked.
fn clean_up(dir: &str, sandbox_root: &str, others: &[&str]) -> Failure {
    let pod = Pod::with_task(TaskStatus::Completed);
    let record = pod.queue.task("a").unwrap().clone();
    let task = |row, id: &str, dir: &str| {
        let mut task = TaskRecord { row, ..record.clone() };
        (task.summary.id, task.summary.session_id) = (id.to_owned(), format!("s-{id}"));
        (task.summary.task_dir, task.summary.sandbox_root) = (dir.to_owned(), sandbox_root.to_owned());
        task.summary.legacy = true;
        task
    };
    let mut tasks = vec![task(1, "x", dir)];
    tasks.extend(others.iter().zip(2..).map(|(dir, row)| task(row, &format!("y{row}"), dir)));
    let mut pod = Pod::with(tempfile::tempdir().unwrap(), pod.config.clone(), tasks);
    pod.ask::<TaskCleanupFiles>(json!({"taskId": "x"})).unwrap_err()
}

#[test]
fn neither_the_root_nor_what_is_outside_is_removed_nor_what_others_have_there_too() {
    let code = |dir, root, others| clean_up(dir, root, others).code;
    assert_eq!(code("/r", "/r", &["/r/a"]), Code::RootProtected);
    assert_eq!(code("/r/", "/r", &[]), Code::RootProtected);
    assert_eq!(code("/elsewhere/x", "/r", &["/elsewhere/x"]), Code::PathOutside);
    assert_eq!(code("/rx", "/r", &[]), Code::PathOutside);
    for others in [&["/r/x"][..], &["/r/x/new"], &["/r/x/"]] {
        let failure = clean_up("/r/x", "/r", others);
        assert_eq!(
            (failure.code, failure.data),
            (Code::TaskBusy, json!({"sharedWith": ["y2"]})),
            "{others:?}"
        );
    }
}

#[test]
fn files_of_a_task_that_has_not_ended_stay() {
    for status in [TaskStatus::Queued, TaskStatus::Starting, TaskStatus::Running] {
        let mut pod = Pod::with_task(status);
        assert_eq!(code(pod.ask::<TaskCleanupFiles>(json!({"taskId": "a"}))), Code::TaskRunning);
        assert_eq!(code(export(&mut pod, json!({"mode": "move"}))), Code::TaskRunning);
        export(&mut pod, json!({"mode": "copy"})).unwrap();
    }
}

#[test]
fn while_files_are_taken_away_no_task_gets_a_place_among_them_by_another_name() {
    let mut pod = Pod::with_task(TaskStatus::Completed);
    let aliases = tempfile::tempdir().unwrap();
    let (root, link) = (pod.root.path().to_owned(), aliases.path().join("link"));
    std::fs::create_dir_all(root.join("a")).unwrap();
    cofferdam_tests::files::symlink(&root, &link);
    let held = pod.queue.hold("a", FileUse::Removed).unwrap();
    assert_eq!(pod.configure(json!({"sandboxRoot": link})), [""; 0]);
    let mut inside = reserve("b");
    inside["subdir"] = json!("a/x");
    assert_eq!(code(pod.ask::<TaskReserve>(inside.clone())), Code::TaskBusy);
    assert!(!root.join("a/x").exists());
    pod.reserve("c");
    pod.queue.let_go(&held);
    pod.ask::<TaskReserve>(inside).unwrap();
}

#[test]
fn while_files_are_taken_away_their_task_cannot_begin_again_and_no_other_takes_its_place() {
    for (usage, goes) in [(FileUse::Copied, true), (FileUse::Moved, false), (FileUse::Removed, false)] {
        let mut pod = Pod::with_task(TaskStatus::Completed);
        let held = pod.queue.hold("a", usage).unwrap();
        let lease = json!({"taskId": "a", "leaseId": "L"});
        assert_eq!(pod.ask::<TaskReattach>(lease.clone()).is_ok(), goes, "{usage:?}");
        assert_eq!(pod.held::<TaskTurnStarted>("a", json!({"turn": 2})).is_ok(), goes, "{usage:?}");
        if !goes {
            assert_eq!(code(pod.ask::<TaskCleanupFiles>(json!({"taskId": "a"}))), Code::TaskBusy);
            assert_eq!(code(export(&mut pod, json!({}))), Code::TaskBusy);
            // The record may go, but not the place.
            pod.ask::<TaskDelete>(json!({"taskId": "a"})).unwrap();
            assert_eq!(code(pod.ask::<TaskReserve>(reserve("a"))), Code::TaskBusy);
            let mut inside = reserve("b");
            inside["subdir"] = json!("a");
            assert_eq!(code(pod.ask::<TaskReserve>(inside)), Code::TaskBusy);
        }
        pod.reserve("c");
        pod.queue.let_go(&held);
        if !goes {
            pod.reserve("a");
        }
    }
}

#[test]
fn an_export_is_refused_in_the_order_of_the_contract() {
    let mut pod = Pod::with_task(TaskStatus::Running);
    let bad = json!({"entries": [], "targetDir": "t", "taskId": "b", "mode": "move"});
    pod.configure(json!({"enableExport": false}));
    assert_eq!(code(export(&mut pod, bad.clone())), Code::ExportDisabled);
    pod.configure(json!({"enableExport": true}));
    for (better, expected) in [
        (json!({}), Code::BadRequest),
        (json!({"entries": vec!["f"; 5001]}), Code::BadRequest),
        (json!({"entries": vec!["f"; 5000]}), Code::BadRequest),
        (json!({"entries": ["f"], "targetDir": "/t"}), Code::TaskNotFound),
        (json!({"entries": ["f"], "targetDir": "/t", "taskId": "a"}), Code::TaskRunning),
    ] {
        let mut params = bad.clone();
        params.as_object_mut().unwrap().extend(better.as_object().unwrap().clone());
        assert_eq!(code(export(&mut pod, params)), expected, "{better}");
    }
}

/// Whether a task's files may be exported; they are let go at once.
fn export(pod: &mut Pod, more: Value) -> Result<ExportMode, Failure> {
    let mut params = json!({"taskId": "a", "entries": ["f"], "targetDir": "/t"});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let request: ExportCreate = serde_json::from_value(params).unwrap();
    let (request, held) =
        pod.queue.admit_export("exp-1".to_owned(), request, pod.at).map_err(Failure::from)?;
    pod.queue.let_go(&held);
    Ok(request.mode)
}

#[test]
fn of_a_task_whose_files_may_not_go_the_record_stays() {
    let mut pod = Pod::new(1);
    pod.reserve("done");
    pod.ended("done", json!({"reason": "completed"}));
    pod.reserve("used");
    pod.ended("used", json!({"reason": "completed"}));
    pod.queue.hold("used", FileUse::Copied).unwrap();
    pod.reserve("active");
    pod.reserve("waits");
    let all = json!({"statuses": ["completed", "starting", "queued"], "deleteFiles": true});
    let result = pod.ask::<TaskBulkCleanup>(all).unwrap();
    let rows: Vec<_> = result.results.iter().map(|row| (row.task_id.as_str(), row.code.as_str())).collect();
    assert_eq!(rows, [("done", ""), ("used", "TASK_BUSY"), ("active", "TASK_RUNNING"), ("waits", "")]);
    assert_eq!(result.deleted, 2);
    let left: Vec<_> = pod.queue.all().map(|task| task.summary.id.clone()).collect();
    assert_eq!(left, ["used", "active"]);
    let names = std::fs::read_dir(pod.root.path()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["active", "used"]);
}

#[test]
fn files_are_removed_once() {
    let mut pod = Pod::with_task(TaskStatus::Failed);
    for expected in [true, false] {
        let CleanupFilesResult { ok, removed } = pod.ask::<TaskCleanupFiles>(json!({"taskId": "a"})).unwrap();
        assert_eq!((ok, removed), (true, expected));
    }
}
