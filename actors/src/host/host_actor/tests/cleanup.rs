//! Removing tasks, with whatever still works on them.

use cofferdam_protocol::pod::TaskId;
use cofferdam_storage::disk::Disk;
use cofferdam_storage::pod::AgentFile;

use super::*;

fn clean(id: &str, scope: CleanupScope) -> Cleanup {
    Cleanup { task_id: id.to_owned(), scope }
}

/// The methods that were called, without what with.
fn methods(rig: &Rig) -> Vec<String> {
    rig.script.said.take().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[actix::test]
async fn a_clean_up_removes_what_its_scope_says() {
    for (scope, called, removed) in [
        (CleanupScope::Record, &["task.delete"][..], (false, true)),
        (CleanupScope::Files, &["task.cleanupFiles"][..], (true, false)),
        (CleanupScope::All, &["task.cleanupFiles", "task.delete"][..], (true, true)),
    ] {
        let rig = Rig::with(vec![task("a", TaskStatus::Completed)]).await;
        let mut heard = rig.listener(None, 8).await;
        let done = rig.ask(clean("a", scope)).await.unwrap();
        assert_eq!((done.removed_files, done.removed_record), removed);
        assert_eq!(methods(&rig), called);
        assert_eq!(rig.state("").await.tasks.is_empty(), removed.1);
        let told = matches!(*heard.try_recv().unwrap(), HostEvent::TaskRemoved { .. });
        assert_eq!(told, removed.1);
    }
}

#[actix::test]
async fn an_active_task_is_cancelled_its_agent_ended_and_its_status_settled_before_anything_goes() {
    let rig = Rig::with(Vec::new()).await;
    let (id, _) = rig.running().await;
    // It had no open turn that its agent's end could settle.
    rig.script.answer("task.get", json!({"task": task("pod-1", TaskStatus::Starting)}));
    rig.ask(clean(&id, CleanupScope::All)).await.unwrap();
    assert_eq!(
        methods(&rig),
        ["task.cancel", "release", "task.get", "task.turnEnded", "task.cleanupFiles", "task.delete"]
    );
    assert!(rig.state("").await.tasks.is_empty());
}

#[actix::test]
async fn a_completed_task_with_an_agent_has_that_ended_first_and_a_queued_one_is_cancelled() {
    let rig = Rig::with(vec![task("q", TaskStatus::Queued)]).await;
    let (id, lease) = rig.running().await;
    rig.agent_of(&id, &lease, TaskStatus::Completed).await;
    rig.ask(clean(&id, CleanupScope::Record)).await.unwrap();
    assert_eq!(methods(&rig), ["release", "task.get", "task.delete"]);
    rig.ask(clean("q", CleanupScope::Record)).await.unwrap();
    assert_eq!(methods(&rig), ["task.cancel", "task.delete"]);
}

#[actix::test]
async fn the_record_stays_if_the_files_cannot_be_removed() {
    let rig = Rig::with(vec![task("a", TaskStatus::Completed)]).await;
    rig.script.refuse("task.cleanupFiles", PodErrorCode::TaskBusy);
    assert_eq!(rig.refusal(clean("a", CleanupScope::All)).await.0, "TASK_BUSY");
    assert_eq!(methods(&rig), ["task.cleanupFiles"]);
    assert_eq!(rig.state("").await.tasks.len(), 1);
    assert_eq!(rig.refusal(clean("none", CleanupScope::All)).await.0, "TASK_NOT_FOUND");
}

#[actix::test]
async fn a_bulk_clean_up_ends_the_agents_of_what_it_is_about_and_forgets_what_is_gone() {
    let rig = Rig::with(vec![task("a", TaskStatus::Completed), task("b", TaskStatus::Completed)]).await;
    let (id, lease) = rig.running().await;
    rig.agent_of(&id, &lease, TaskStatus::Completed).await;
    let gone = |id: &str, ok: bool| json!({"taskId": id, "ok": ok, "code": "", "message": ""});
    rig.script.answer(
        "task.bulkCleanup",
        json!({"results": [gone(&id, true), gone("a", true), gone("b", false)], "deleted": 2}),
    );
    let done = rig.ask(BulkCleanup::default()).await.unwrap();
    assert_eq!(done.deleted, 2);
    assert_eq!(methods(&rig), ["release", "task.get", "task.bulkCleanup"]);
    let left: Vec<_> = rig.state("").await.tasks.into_iter().map(|row| row.task.id).collect();
    assert_eq!(left, ["b"]);
}

#[actix::test]
async fn a_bulk_clean_up_leaves_the_agents_of_other_tasks_alone() {
    let rig = Rig::with(Vec::new()).await;
    let (id, lease) = rig.running().await;
    let answer = || rig.script.answer("task.bulkCleanup", json!({"results": [], "deleted": 0}));
    answer();
    rig.ask(BulkCleanup::default()).await.unwrap();
    assert_eq!(methods(&rig), ["task.bulkCleanup"], "it runs");
    rig.agent_of(&id, &lease, TaskStatus::Completed).await;
    answer();
    let old = BulkCleanup { older_than_ms: Some(i64::MAX / 2), ..BulkCleanup::default() };
    rig.ask(old).await.unwrap();
    assert_eq!(methods(&rig), ["task.bulkCleanup"], "it is too young");
    answer();
    let running = BulkCleanup { statuses: Some(vec![TaskStatus::Failed]), ..BulkCleanup::default() };
    rig.ask(running).await.unwrap();
    assert_eq!(methods(&rig), ["task.bulkCleanup"], "it did not fail");
}

#[actix::test]
async fn a_bulk_clean_up_of_running_tasks_removes_those_it_ended_by_their_names_and_no_others() {
    let rig = Rig::with(vec![task("old", TaskStatus::Cancelled)]).await;
    let (id, _) = rig.running().await;
    rig.script.answer("task.bulkCleanup", json!({"results": [], "deleted": 0}));
    let running = BulkCleanup {
        statuses: Some(vec![TaskStatus::Running]),
        delete_files: true,
        ..BulkCleanup::default()
    };
    let done = rig.ask(running.clone()).await.unwrap();
    assert_eq!((done.deleted, done.results.len(), done.results[0].task_id.as_str()), (1, 1, id.as_str()));
    let said = rig.script.said.take();
    assert!(said.last().unwrap().contains("[\"running\"]"), "what was cancelled before stays: {said:?}");
    let called: Vec<_> = said.iter().map(|line| line.split(' ').next().unwrap()).collect();
    let removed = ["task.cleanupFiles", "task.delete", "task.bulkCleanup"];
    assert_eq!(called, [&["task.cancel", "release", "task.get"][..], &removed].concat());
    let left: Vec<_> = rig.state("").await.tasks.into_iter().map(|row| row.task.id).collect();
    assert_eq!(left, ["old"]);

    let rig = Rig::with(Vec::new()).await;
    rig.running().await;
    rig.script.refuse("task.cleanupFiles", PodErrorCode::TaskBusy);
    rig.script.answer("task.bulkCleanup", json!({"results": [], "deleted": 0}));
    let done = rig.ask(running).await.unwrap();
    assert_eq!((done.deleted, done.results[0].ok, done.results[0].code.as_str()), (0, false, "TASK_BUSY"));
    assert_eq!(rig.state("").await.tasks.len(), 1, "the record stays");
}

/// A host with a task that has ended, of whose first turn there is a checkpoint.
async fn with_a_checkpoint(home: &tempfile::TempDir, status: TaskStatus) -> Rig {
    let dirs = AgentDirs::new(Disk::default(), home.path().join("pod"));
    let turns = json!({"dir": "/root/a", "turns": [{"turn": 1, "kept": "turn-1"}]});
    dirs.write(&TaskId::new("a").unwrap(), AgentFile::Turns, turns.to_string().as_bytes()).unwrap();
    let rig = Rig::keeping(Some(dirs));
    let session_id = "pod-session-11111111-2222-3333-4444-555555555555".to_owned();
    let task = TaskSummary { session_id, ..task("a", status) };
    rig.up(ready(), Some(initialized(config(), vec![task]))).await;
    rig
}

/// Whether the task can be brought back to what it was before its first turn.
async fn has_checkpoint(rig: &Rig) -> bool {
    rig.ask(ListTurns { task_id: "a".to_owned() }).await.unwrap().turns[0].checkpoint
}

#[actix::test]
async fn the_checkpoints_go_with_the_files_also_if_the_record_stays() {
    let home = tempfile::tempdir().unwrap();
    let rig = with_a_checkpoint(&home, TaskStatus::Completed).await;
    assert!(has_checkpoint(&rig).await);
    rig.script.refuse("task.cleanupFiles", PodErrorCode::TaskBusy);
    rig.refusal(clean("a", CleanupScope::All)).await;
    assert!(has_checkpoint(&rig).await);
    rig.script.refuse("task.delete", PodErrorCode::DbError);
    assert_eq!(rig.refusal(clean("a", CleanupScope::All)).await.0, "DB_ERROR");
    assert!(!has_checkpoint(&rig).await);
}
