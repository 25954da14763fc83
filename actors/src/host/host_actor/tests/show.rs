//! What the host shows of itself.

use std::time::Duration;

use super::*;

#[actix::test]
async fn a_state_is_made_anew_when_something_has_changed_and_not_before() {
    tokio::time::pause();
    let rig = Rig::with(vec![task("a", TaskStatus::Completed)]).await;
    let body = async || {
        let Prepared(body) = rig.ask(GetState::default()).await.unwrap();
        body
    };
    let first = body().await;
    assert_eq!(first.as_ptr(), body().await.as_ptr(), "the same bytes");
    rig.changed(task("a", TaskStatus::Failed)).await;
    let second = body().await;
    assert_ne!(first, second);
    // The disk may look different after a while.
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_ne!(second.as_ptr(), body().await.as_ptr());
}

#[actix::test]
async fn a_task_can_be_resumed_if_it_has_ended_is_ours_and_its_directory_and_preset_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut tasks: Vec<_> = ["fine", "runs", "legacy", "forgetful", "unknown", "gone"]
        .map(|id| task(id, TaskStatus::Completed))
        .into();
    tasks[1].status = TaskStatus::Running;
    tasks[2].legacy = true;
    tasks[3].preset_id = "forgetful".to_owned();
    tasks[4].preset_id = "unknown".to_owned();
    tasks[5].task_dir = dir.path().join("gone").display().to_string();
    let rig = Rig::with(tasks).await;
    let state = rig.state("").await;
    let can: Vec<_> =
        state.tasks.iter().filter(|row| row.can_resume).map(|row| row.task.id.as_str()).collect();
    assert_eq!(can, ["fine"]);
}

#[actix::test]
async fn a_state_lists_the_newest_first_and_cuts_what_a_list_has_no_room_for() {
    let mut old = task("old", TaskStatus::Completed);
    old.last_text = "é".repeat(601);
    old.description = "d".repeat(3000);
    old.available_tools = vec!["zebra".to_owned()];
    let mut new = task("new", TaskStatus::Completed);
    new.created_at = 5;
    let rig = Rig::with(vec![old, new]).await;
    let state = rig.state("").await;
    let ids: Vec<_> = state.tasks.iter().map(|row| row.task.id.as_str()).collect();
    assert_eq!(ids, ["new", "old"]);
    assert_eq!(state.tasks[1].task.last_text.chars().count(), 600);
    assert_eq!(state.tasks[1].task.description.len(), 2000);
    assert!(state.tool_choices.is_sorted() && state.tool_choices.contains(&"zebra".to_owned()));
    let presets: Vec<_> =
        state.preset_choices.iter().map(|choice| (choice.id.as_str(), choice.broken)).collect();
    assert_eq!(presets, [("one", false), ("writer", false), ("broken", true), ("forgetful", false)]);
    assert_eq!((state.build, state.store_path.as_str()), (2, "/state/pod.db"));
    let lacks =
        |state: State| -> Vec<_> { state.preset_choices.into_iter().map(|preset| preset.lacks).collect() };
    assert!(lacks(state).iter().all(Vec::is_empty));
    let read_only = json!({"config": Config { allow_writes: false, ..config() }, "messages": []});
    rig.script.answer("config.set", read_only);
    rig.ask(SetConfig { patch: serde_json::Map::new() }).await.unwrap();
    assert_eq!(lacks(rig.state("").await)[1], ["write"], "though it is ticked");
}

fn export(id: &str, mode: &str, items: usize) -> Value {
    let item = json!({"status": "OK", "src": "s", "dst": "d", "bytes": 1, "hash": "", "existed": false,
                      "backupPath": "", "message": ""});
    json!({"id": id, "taskId": "a", "label": "l", "at": 1, "targetDir": "/t", "mode": mode,
           "conflict": "overwrite", "status": "completed", "undoneAt": 0, "legacy": false,
           "items": vec![item; items]})
}

#[actix::test]
async fn exports_are_shown_as_they_are_after_each_with_the_target_that_was_to_be_remembered() {
    let rig = Rig::with(vec![task("a", TaskStatus::Completed)]).await;
    let entries = ExportEntries {
        task_id: "a".to_owned(),
        entries: vec![".".to_owned()],
        target_dir: "/t".to_owned(),
        mode: None,
        conflict: None,
        remember: true,
    };
    rig.script.answer("export.create", json!({"export": export("e1", "copy", 25), "message": "m"}));
    let rows: Vec<_> = (0..60).map(|at| export(&format!("e{at}"), "copy", 25)).collect();
    rig.script.answer("export.list", json!({"exports": rows, "remembered": {"main": "/t"}}));
    let exported = rig.ask(entries).await.unwrap();
    assert_eq!((exported.export.items.len(), exported.message.as_deref()), (25, Some("m")));
    let state = rig.state("main").await;
    assert_eq!((state.exports.len(), state.exports[0].items.len()), (50, 20));
    assert_eq!((state.exports[0].items_total, state.exports[0].items_truncated), (Some(25), true));
    assert_eq!(
        (state.remembered_target.as_str(), rig.state("").await.remembered_target.as_str()),
        ("/t", "")
    );
}

#[actix::test]
async fn a_copy_is_undone_and_a_move_is_not() {
    let undo = || UndoExport { export_id: "e".to_owned() };
    let rig = Rig::with(Vec::new()).await;
    rig.script.answer("export.list", json!({"exports": [export("e", "copy", 0)]}));
    let undone = json!({"export": export("e", "copy", 1), "removed": ["d"], "restored": [], "conflicts": []});
    rig.script.answer("export.undo", undone);
    assert_eq!(rig.ask(undo()).await.unwrap().removed, ["d"]);
    rig.script.said.take();
    rig.script.answer("export.list", json!({"exports": [export("e", "move", 0)]}));
    let (code, message) = rig.refusal(undo()).await;
    assert!(code == "BAD_REQUEST" && message.contains("a move is not undone"), "{message}");
    assert!(!rig.script.said.take().iter().any(|line| line.starts_with("export.undo")));
    rig.script.refuse("export.list", PodErrorCode::ExportNotFound);
    assert_eq!(rig.refusal(undo()).await.0, "EXPORT_NOT_FOUND");
}

#[actix::test]
async fn a_preview_has_at_least_200_and_at_most_20000_characters_and_no_more_than_is_configured() {
    let rig = Rig::new();
    let narrow = Config { preview_chars: 5000, ..config() };
    rig.up(ready(), Some(initialized(narrow, Vec::new()))).await;
    rig.script.said.take();
    for (asked, sent) in [(Some(-5), 200), (Some(300), 300), (Some(99_999), 5000), (None, 5000)] {
        let text = json!({"text": "", "truncated": false, "bytes": 0, "chars": 0, "encoding": "utf-8", "binary": false});
        rig.script.answer("files.read", text);
        let read = ReadSandboxFile { task_id: "a".to_owned(), rel_path: "f".to_owned(), max_chars: asked };
        rig.ask(read).await.unwrap();
        let said = rig.script.said.take();
        assert!(said[0].contains(&format!("\"maxChars\":{sent},")), "{said:?}");
    }
}

#[actix::test]
async fn a_status_names_what_is_live_and_never_a_whole_token() {
    let rig = Rig::with(Vec::new()).await;
    let (id, _) = rig.running().await;
    let main =
        |id: &str, cwd: &str, subagent| MainSession { id: id.to_owned(), cwd: cwd.to_owned(), subagent };
    let _one = rig.listener(Some(main("main", "/pods/x", false)), 8).await;
    let _two = rig.listener(Some(main("sub", "/w", true)), 8).await;
    drop(rig.listener(Some(main("gone", "/w", false)), 8).await);
    let status = rig.host.status().await.unwrap();
    let live: Vec<_> = (status.sandbox.live_sessions.iter())
        .map(|live| (live.id.clone(), live.origin.as_str(), live.inside_sandbox))
        .collect();
    let expected = [
        ("main".to_owned(), "main", true),
        (format!("pod-session-{id}"), "pod", true),
        ("sub".to_owned(), "subagent", false),
    ];
    assert_eq!(live, expected);
    assert_eq!(
        (status.token_prefix.as_str(), status.core_path.as_str(), status.task_count),
        ("", "/core", 1)
    );
}

#[actix::test]
async fn a_warning_of_the_core_is_a_diagnostic_and_only_the_newest_are_kept() {
    let rig = Rig::with(Vec::new()).await;
    for nth in 0..60 {
        let message = format!("w{nth}");
        rig.event(PodEvent::CoreWarning { task_id: Some("a".to_owned()), message }).await;
    }
    let state = rig.state("").await;
    let last = state.diagnostics.last().unwrap();
    assert_eq!((state.diagnostics.len(), last.message.as_str()), (20, "a: w59"));
    let report = json!({"protocol": 1, "schemaVersion": 1, "coreVersion": "0.2.0", "pid": 7, "initialized": true,
                        "dbPath": "", "dbSizeBytes": 0, "counts": {"tasks": {}, "exports": 0, "leases": 0},
                        "queue": {"length": 0, "running": 0, "max": 3}, "config": config(), "uptimeMs": 0,
                        "logPath": "", "diagnostics": []});
    rig.script.answer("diagnostics.get", report);
    let page = rig.ask(GetDiagnostics {}).await.unwrap();
    assert_eq!((page.diagnostics.len(), page.diagnostics[0].message.as_str()), (50, "a: w10"));
    assert!(page.core_report.is_some() && page.log_level.is_some());
}
