//! Who may be brought back to what they were, and what waits meanwhile.

use super::*;

/// A task of which something could be kept.
fn kept(id: &str, status: TaskStatus) -> TaskSummary {
    let session_id = "pod-session-11111111-2222-3333-4444-555555555555".to_owned();
    TaskSummary { session_id, ..task(id, status) }
}

fn rewind(id: &str) -> RewindTask {
    RewindTask { task_id: id.to_owned(), turn: 1 }
}

fn undo(id: &str) -> UndoRewind {
    UndoRewind { task_id: id.to_owned() }
}

#[actix::test]
async fn a_task_that_works_or_of_which_nothing_is_kept_is_not_brought_back() {
    let tasks = vec![
        kept("runs", TaskStatus::Running),
        kept("ended", TaskStatus::Completed),
        task("foreign", TaskStatus::Completed),
    ];
    let rig = Rig::with(tasks).await;
    for (id, code) in [
        ("runs", "TASK_RUNNING"),
        ("ended", "BAD_REQUEST"),
        ("foreign", "BAD_REQUEST"),
        ("nobody", "TASK_NOT_FOUND"),
    ] {
        assert_eq!(rig.refusal(rewind(id)).await.0, code, "{id}");
        assert_eq!(rig.refusal(undo(id)).await.0, code, "{id}");
    }
    let turns = rig.ask(ListTurns { task_id: "ended".to_owned() }).await.unwrap();
    assert_eq!(turns, TurnList { turns: Vec::new(), undo: None });
    assert_eq!(rig.script.said.take(), [""; 0]);
}

#[actix::test]
async fn a_task_whose_agent_is_being_made_ready_is_not_brought_back_and_one_whose_agent_waits_can_be() {
    let rig = Rig::with(vec![kept("a", TaskStatus::Queued)]).await;
    rig.script.answer("task.reserve", reserved(kept("pod-1", TaskStatus::Queued), false));
    let id = rig.ask(start("do it")).await.unwrap().task_id;
    assert_eq!(rig.refusal(rewind(&id)).await.0, "TASK_BUSY");
    let lease = rig.lease_of("task.reserve");
    rig.event(PodEvent::QueueDispatch { task_id: id.clone() }).await;
    rig.changed(kept("pod-1", TaskStatus::Starting)).await;
    assert_eq!(rig.refusal(rewind(&id)).await.0, "TASK_RUNNING");
    // It waits to be told something: what refuses it is that it had no turn.
    rig.agent(&id, &lease, true).await;
    assert_eq!(rig.refusal(rewind(&id)).await.0, "BAD_REQUEST");
}

#[actix::test]
async fn while_a_task_is_brought_back_nothing_else_is_done_with_it_and_then_everything_again() {
    let rig = Rig::with(vec![kept("a", TaskStatus::Completed)]).await;
    let clean = || Cleanup { task_id: "a".to_owned(), scope: CleanupScope::All };
    let tell = FollowUp { task_id: "a".to_owned(), text: "more".to_owned() };
    let resume = ResumeTask { task_id: "a".to_owned() };
    let host = &rig.host;
    let (rewound, again, cleaned, bulk, told, resumed) = tokio::join!(
        host.ask(rewind("a")),
        host.ask(undo("a")),
        host.ask(clean()),
        host.ask(BulkCleanup::default()),
        host.ask(tell),
        host.ask(resume),
    );
    assert_eq!(rewound.unwrap_err().code, PodErrorCode::BadRequest.into());
    for refused in [again.err(), cleaned.err(), bulk.err(), told.err(), resumed.err()] {
        assert_eq!(refused.unwrap().code, PodErrorCode::TaskBusy.into());
    }
    assert_eq!(rig.script.said.take(), [""; 0]);
    rig.ask(clean()).await.unwrap();
}

#[actix::test]
async fn a_task_whose_files_are_removed_or_exported_is_not_brought_back_meanwhile() {
    let rig = Rig::with(vec![kept("a", TaskStatus::Completed), kept("b", TaskStatus::Completed)]).await;
    let host = &rig.host;
    let files = || Cleanup { task_id: "a".to_owned(), scope: CleanupScope::Files };
    let export = ExportEntries {
        task_id: "a".to_owned(),
        entries: vec!["x".to_owned()],
        target_dir: "/t".to_owned(),
        mode: None,
        conflict: None,
        remember: false,
    };
    rig.script.answer("task.bulkCleanup", json!({"results": [], "deleted": 0}));
    rig.script.refuse("export.create", PodErrorCode::BadRequest);
    let (cleaned, refused, other) =
        tokio::join!(host.ask(files()), host.ask(rewind("a")), host.ask(rewind("b")));
    cleaned.unwrap();
    assert_eq!(refused.unwrap_err().code, PodErrorCode::TaskBusy.into());
    assert_eq!(other.unwrap_err().code, PodErrorCode::BadRequest.into(), "nothing works on that one");
    let (bulk, refused) = tokio::join!(host.ask(BulkCleanup::default()), host.ask(undo("a")));
    bulk.unwrap();
    assert_eq!(refused.unwrap_err().code, PodErrorCode::TaskBusy.into());
    let (exported, refused) = tokio::join!(host.ask(export), host.ask(rewind("a")));
    exported.unwrap_err();
    assert_eq!(refused.unwrap_err().code, PodErrorCode::TaskBusy.into());
    // All that is done, or has failed: it is asked for what was never kept.
    assert_eq!(rig.refusal(rewind("a")).await.0, "BAD_REQUEST");
}

#[actix::test]
async fn a_task_in_or_around_which_another_works_is_not_brought_back_nor_does_that_begin_meanwhile() {
    let at = |id: &str, dir: &str, status| TaskSummary { task_dir: dir.to_owned(), ..kept(id, status) };
    let tasks = || {
        ["/pods/a", "/pods/a/b", "/pods/a/b/c", "/pods/ab"]
            .map(|dir| at(&dir[dir.rfind('/').unwrap() + 1..], dir, TaskStatus::Completed))
    };
    let mut running = tasks();
    running[1].status = TaskStatus::Running;
    let rig = Rig::with(running.into()).await;
    for id in ["a", "c"] {
        let refused = rig.ask(rewind(id)).await.unwrap_err();
        assert_eq!(
            (refused.code, &refused.data),
            (PodErrorCode::TaskBusy.into(), &json!({"sharedWith": ["b"]}))
        );
        assert_eq!(rig.refusal(undo(id)).await.0, "TASK_BUSY", "{id}");
    }
    assert_eq!(rig.refusal(rewind("ab")).await.0, "BAD_REQUEST", "nothing was kept of it");

    let rig = Rig::with(tasks().into()).await;
    let tell = FollowUp { task_id: "c".to_owned(), text: "more".to_owned() };
    let host = &rig.host;
    let (_, told, inner) = tokio::join!(host.ask(rewind("a")), host.ask(tell), host.ask(rewind("b")));
    for refused in [told.err(), inner.err()] {
        assert_eq!(refused.unwrap().code, PodErrorCode::TaskBusy.into());
    }
}
