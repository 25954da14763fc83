//! Starting, cancelling, resuming and talking.

use super::*;

#[actix::test]
async fn a_started_task_is_held_before_the_core_is_asked_and_begins_with_the_slot_it_got() {
    let rig = Rig::with(Vec::new()).await;
    rig.script.answer("task.reserve", reserved(task("pod-1", TaskStatus::Starting), true));
    let started = rig.ask(start("do it")).await.unwrap();
    assert_eq!((started.task_id.as_str(), started.task.live), (FIRST, false));
    let said = rig.script.said.take();
    assert_eq!(said[0], format!("hold {FIRST} one"));
    let request: Value = serde_json::from_str(said[1].strip_prefix("task.reserve ").unwrap()).unwrap();
    assert_eq!(request["taskId"], FIRST);
    assert_eq!(request["sessionId"], "pod-session-00000000-0000-0000-0000-000000000002");
    assert_eq!((&request["description"], &request["mainSessionId"]), (&json!("do it"), &json!("main")));
    assert_eq!(said[2], format!("begin [\"{FIRST}\",[true,false,\"main@\"]]"));
    assert_eq!(said.len(), 3);
}

#[actix::test]
async fn a_queued_task_begins_when_the_core_says_so_and_is_let_go_if_it_is_cancelled_before() {
    let rig = Rig::with(Vec::new()).await;
    rig.script.answer("task.reserve", reserved(task("pod-1", TaskStatus::Queued), false));
    rig.ask(start("do it")).await.unwrap();
    assert_eq!(rig.script.said.take().len(), 2, "held and reserved, no more");
    rig.changed(task("pod-1", TaskStatus::Starting)).await;
    rig.event(PodEvent::QueueDispatch { task_id: FIRST.to_owned() }).await;
    assert_eq!(rig.script.said.take(), [format!("begin [\"{FIRST}\",[false,false,\"main@\"]]")]);

    let rig = Rig::with(Vec::new()).await;
    rig.script.answer("task.reserve", reserved(task("pod-1", TaskStatus::Queued), false));
    rig.ask(start("do it")).await.unwrap();
    rig.script.said.take();
    rig.changed(task("pod-1", TaskStatus::Cancelled)).await;
    assert_eq!(rig.script.said.take(), [format!("release [\"{FIRST}\",\"Forgotten\"]")]);
    // Nobody holds it any more, so a slot that comes late begins nothing.
    rig.event(PodEvent::QueueDispatch { task_id: FIRST.to_owned() }).await;
    assert_eq!(rig.script.said.take(), [""; 0]);
}

#[actix::test]
async fn a_task_that_the_core_refuses_is_not_held() {
    let rig = Rig::with(Vec::new()).await;
    rig.script.refuse("task.reserve", PodErrorCode::BadSubdir);
    assert_eq!(rig.refusal(start("do it")).await.0, "BAD_SUBDIR");
    assert_eq!(rig.script.said.take().last().unwrap(), &format!("release [\"{FIRST}\",\"Forgotten\"]"));
    assert!(rig.state("").await.tasks.is_empty());
}

#[actix::test]
async fn what_cannot_start_says_why_and_asks_the_core_nothing() {
    let with = |preset: &str| StartTask { preset_id: Some(preset.to_owned()), ..start("do it") };
    let rig = Rig::with(Vec::new()).await;
    let listed = "there are: one, writer, broken, forgetful";
    for (request, code, says) in [
        (start(" \n"), "BAD_REQUEST", "description is empty"),
        (with("nope"), "CONFIG_INVALID", listed),
        (with(""), "CONFIG_INVALID", "no preset is chosen"),
        (with("broken"), "CONFIG_INVALID", "its program is not there"),
    ] {
        let (refused, message) = rig.refusal(request).await;
        assert!(refused == code && message.contains(says), "{refused} {message}");
    }
    for config in [
        Config { allow_writes: false, ..config() },
        Config { allowed_tools: vec!["read".to_owned()], ..config() },
    ] {
        rig.up(ready(), Some(initialized(config, Vec::new()))).await;
        let (code, message) = rig.refusal(with("writer")).await;
        assert!(code == "CONFIG_INVALID" && message.contains("not allow: write;"), "{message}");
    }
    let no_root = Config { sandbox_root: String::new(), preset_id: String::new(), ..config() };
    rig.up(ready(), Some(initialized(no_root, Vec::new()))).await;
    assert_eq!(rig.refusal(start("")).await.0, "NO_SANDBOX_ROOT");
    assert!(!rig.script.said.take().iter().any(|line| line.starts_with("task.")));
}

#[actix::test]
async fn a_core_of_another_release_refuses_starts_with_its_code_while_everything_else_goes_on() {
    let rig = Rig::with(vec![task("a", TaskStatus::Completed)]).await;
    let state = CoreState {
        status: CoreStatus::Mismatch,
        code: Some(PodErrorCode::SchemaMismatch),
        message: "schema 2".to_owned(),
        ..ready()
    };
    rig.up(state, None).await;
    let refused = ("SCHEMA_MISMATCH".to_owned(), "schema 2".to_owned());
    assert_eq!(rig.refusal(start("do it")).await, refused);
    assert_eq!(rig.refusal(ResumeTask { task_id: "a".to_owned() }).await, refused);
    assert_eq!(rig.state("").await.core.status, CoreStatus::Mismatch);
    assert_eq!(rig.host.status().await.unwrap().core.code, Some(PodErrorCode::SchemaMismatch));
    rig.script.refuse("diagnostics.get", PodErrorCode::CoreUnavailable);
    let page = rig.ask(GetDiagnostics {}).await.unwrap();
    assert!(page.core_report.is_none() && page.stderr_tail == ["line"]);
}

#[actix::test]
async fn a_cancel_is_told_to_the_core_first_and_then_to_the_agent() {
    let rig = Rig::with(Vec::new()).await;
    let (id, _) = rig.running().await;
    let cancel = CancelTask { task_id: id.clone(), reason: Some("enough".to_owned()) };
    rig.ask(cancel.clone()).await.unwrap();
    assert_eq!(
        rig.script.said.take(),
        [
            format!("task.cancel {{\"taskId\":\"{id}\"}}"),
            format!("cancel [\"{id}\",\"User {{ reason: \\\"enough\\\" }}\"]"),
        ]
    );
    rig.script.refuse("task.cancel", PodErrorCode::TaskNotFound);
    assert_eq!(rig.refusal(cancel).await.0, "TASK_NOT_FOUND");
    assert_eq!(rig.script.said.take().len(), 1, "the agent is left alone");
}

#[actix::test]
async fn an_expired_deadline_reaches_the_agent_of_its_task() {
    let rig = Rig::with(Vec::new()).await;
    let (id, _) = rig.running().await;
    rig.event(PodEvent::DeadlineExpired { task_id: id.clone(), turn: 3 }).await;
    rig.event(PodEvent::DeadlineExpired { task_id: "other".to_owned(), turn: 1 }).await;
    assert_eq!(rig.script.said.take(), [format!("expired [\"{id}\",3]")]);
}

#[actix::test]
async fn a_follow_up_goes_to_the_agent_that_is_there_or_resumes_it_first() {
    let follow = |id: &str, text: &str| FollowUp { task_id: id.to_owned(), text: text.to_owned() };
    let rig = Rig::with(vec![task("old", TaskStatus::Interrupted)]).await;
    let (id, _) = rig.running().await;
    rig.ask(follow(&id, "more")).await.unwrap();
    assert_eq!(rig.script.said.take(), [format!("tell [\"{id}\",\"more\"]")]);

    rig.ask(follow("old", "more")).await.unwrap();
    let said = rig.script.said.take();
    assert_eq!(said[0], "hold old one");
    assert!(said[1].starts_with("task.reattach"), "{said:?}");
    assert_eq!(said[2..], ["begin [\"old\",[false,true,\"main@\"]]", "tell [\"old\",\"more\"]"]);

    assert_eq!(rig.refusal(follow(&id, " ")).await.0, "BAD_REQUEST");
    assert_eq!(rig.refusal(follow("none", "x")).await.0, "TASK_NOT_FOUND");
    rig.script.refuse("tell", PodErrorCode::TaskBusy);
    assert_eq!(rig.refusal(follow(&id, "more")).await.0, "TASK_BUSY");
}

#[actix::test]
async fn what_cannot_be_resumed_says_why_and_stays_as_it_was() {
    let mut tasks: Vec<_> = ["legacy", "forgetful", "lost", "nowhere", "busy", "fine"]
        .map(|id| task(id, TaskStatus::Failed))
        .into();
    tasks[0].legacy = true;
    tasks[1].preset_id = "forgetful".to_owned();
    tasks[2].preset_id = "gone".to_owned();
    tasks[3].task_dir = "/no/such/directory".to_owned();
    let rig = Rig::with(tasks).await;
    let resume = |id: &str| ResumeTask { task_id: id.to_owned() };
    for (id, code, says) in [
        ("legacy", "LEGACY_READONLY", "older version"),
        ("forgetful", "TASK_NOT_RESUMABLE", "start a new task"),
        ("lost", "TASK_NOT_RESUMABLE", "\"gone\", is not there"),
        ("nowhere", "TASK_NOT_RESUMABLE", "directory is gone"),
        ("none", "TASK_NOT_FOUND", "no such task"),
    ] {
        let (refused, message) = rig.refusal(resume(id)).await;
        assert!(refused == code && message.contains(says), "{id}: {refused} {message}");
    }
    assert!(!rig.script.said.take().iter().any(|line| line.starts_with("task.")));
    rig.script.refuse("task.reattach", PodErrorCode::TaskBusy);
    assert_eq!(rig.refusal(resume("busy")).await.0, "TASK_BUSY");
    rig.script.refuse("begin", PodErrorCode::Internal);
    assert_eq!(rig.refusal(resume("fine")).await.0, "INTERNAL");
}

#[actix::test]
async fn opening_resumes_if_the_configuration_says_so_and_a_failure_is_part_of_the_answer() {
    let open = |id: &str| OpenTask { task_id: id.to_owned() };
    let rig = Rig::with(vec![task("a", TaskStatus::Completed), task("q", TaskStatus::Queued)]).await;
    rig.script.refuse("begin", PodErrorCode::Internal);
    let opened = rig.ask(open("a")).await.unwrap();
    assert_eq!((opened.live, opened.resume_error.as_deref()), (false, Some("begin refused")));
    assert_eq!(opened.session_id, "pod-session-a");

    assert_eq!(rig.ask(open("q")).await.unwrap().resume_error, None);
    assert_eq!(rig.refusal(open("none")).await.0, "TASK_NOT_FOUND");

    let quiet = Config { auto_resume_on_open: false, ..config() };
    rig.up(ready(), Some(initialized(quiet, vec![task("a", TaskStatus::Completed)]))).await;
    rig.script.said.take();
    assert_eq!(rig.ask(open("a")).await.unwrap().resume_error, None);
    assert_eq!(rig.script.said.take(), [""; 0]);
}

#[actix::test]
async fn a_resumed_task_is_live_when_its_agent_is_and_is_not_resumed_twice() {
    let rig = Rig::with(vec![task("a", TaskStatus::Completed)]).await;
    rig.ask(ResumeTask { task_id: "a".to_owned() }).await.unwrap();
    let lease = rig.lease_of("task.reattach");
    rig.changed(task("a", TaskStatus::Starting)).await;
    assert_eq!(rig.refusal(ResumeTask { task_id: "a".to_owned() }).await.0, "TASK_BUSY");
    rig.agent("a", &lease, true).await;
    rig.script.said.take();
    let resumed = rig.ask(ResumeTask { task_id: "a".to_owned() }).await.unwrap();
    assert!(resumed.live && resumed.task.live);
    assert_eq!(rig.script.said.take(), [""; 0]);
}

#[actix::test]
async fn a_task_that_is_only_looked_at_is_shown_as_what_it_was() {
    let rig = Rig::with(vec![task("a", TaskStatus::Failed)]).await;
    let mut heard = rig.listener(None, 8).await;
    rig.script.answer("give back", json!(task("a", TaskStatus::Failed)));
    let opened = rig.ask(OpenTask { task_id: "a".to_owned() }).await.unwrap();
    assert_eq!(opened.task.task.status, TaskStatus::Failed);
    let lease = rig.lease_of("task.reattach");
    assert_eq!(rig.script.said.take().last().unwrap(), "give back \"a\"");
    // What the core says on the way, and what it says when the task is told something.
    rig.changed(task("a", TaskStatus::Starting)).await;
    rig.agent("a", &lease, true).await;
    rig.changed(task("a", TaskStatus::Failed)).await;
    rig.changed(task("a", TaskStatus::Running)).await;
    let mut shown = Vec::new();
    while let Ok(event) = heard.try_recv() {
        if let HostEvent::TaskChanged { task, .. } = &*event {
            shown.push(task.task.status);
        }
    }
    let shown: Vec<_> = shown.iter().map(|status: &TaskStatus| status.as_str()).collect();
    assert_eq!(shown, ["failed", "failed", "failed", "running"]);

    // Whoever tells it something runs it, from the beginning.
    rig.changed(task("a", TaskStatus::Failed)).await;
    rig.agent("a", &lease, false).await;
    rig.ask(FollowUp { task_id: "a".to_owned(), text: "more".to_owned() }).await.unwrap();
    rig.changed(task("a", TaskStatus::Starting)).await;
    assert_eq!(rig.state("").await.tasks[0].task.status, TaskStatus::Starting);
    assert!(!rig.script.said.take().contains(&"give back \"a\"".to_owned()));
}

#[actix::test]
async fn what_waited_when_all_was_restarted_begins_when_it_is_resumed_and_not_when_it_is_looked_at() {
    let mut waited = task("w", TaskStatus::Interrupted);
    (waited.turns, waited.preset_id) = (0, "forgetful".to_owned());
    let rig = Rig::with(vec![waited, task("r", TaskStatus::Running)]).await;
    let opened = rig.ask(OpenTask { task_id: "w".to_owned() }).await.unwrap();
    assert_eq!((opened.live, opened.resume_error, opened.task.can_resume), (false, None, true));
    assert_eq!(rig.script.said.take(), [""; 0]);

    let full = Config { max_concurrent: 1, ..config() };
    rig.script.answer("config.set", json!({"config": full, "messages": []}));
    rig.ask(SetConfig { patch: serde_json::Map::new() }).await.unwrap();
    let resume = || ResumeTask { task_id: "w".to_owned() };
    let (code, message) = rig.refusal(resume()).await;
    assert!(code == "TASK_BUSY" && message.contains("(1)"), "{message}");
    rig.changed(task("r", TaskStatus::Completed)).await;
    rig.script.said.take();
    rig.ask(resume()).await.unwrap();
    let said = rig.script.said.take();
    assert_eq!(said[0], "hold w forgetful");
    assert!(said[1].starts_with("task.reattach"), "{said:?}");
    assert_eq!(said[2..], ["begin [\"w\",[false,false,\"main@\"]]"]);
}

#[actix::test]
async fn of_two_who_resume_a_task_at_the_same_time_one_does_and_the_other_is_told_so() {
    let rig = Rig::with(vec![task("a", TaskStatus::Completed)]).await;
    let resume = || ResumeTask { task_id: "a".to_owned() };
    let late = task("a", TaskStatus::Completed);
    // What the core says late of the turn that has ended is no end of this.
    let says = async { rig.addr.send(CoreEvent::Pod(PodEvent::changed(&late))).await };
    let (first, second, _) = tokio::join!(rig.host.ask(resume()), rig.host.ask(resume()), says);
    first.unwrap();
    assert_eq!(second.unwrap_err().code.word(), "TASK_BUSY");
    let said = rig.script.said.take();
    assert_eq!(said[0], "hold a one");
    assert!(said[1].starts_with("task.reattach"), "{said:?}");
    let once = ["begin [\"a\",[false,true,\"main@\"]]", "give back \"a\""];
    assert_eq!(said[2..], once, "held once, and not let go");
}

#[actix::test]
async fn a_transcript_comes_from_the_live_task_and_without_one_is_said_to_be_gone() {
    let rig = Rig::with(vec![task("old", TaskStatus::Completed)]).await;
    let (id, _) = rig.running().await;
    let of = |id: &str| GetTranscript { task_id: id.to_owned(), from: 3 };
    assert_eq!(rig.ask(of(&id)).await.unwrap().next, 7);
    assert_eq!(rig.script.said.take(), [format!("transcript [\"{id}\",3]")]);
    let gone = rig.ask(of("old")).await.unwrap();
    assert!(gone.truncated && gone.entries.is_empty());
    assert_eq!(rig.refusal(of("none")).await.0, "TASK_NOT_FOUND");
}

#[actix::test]
async fn a_patch_of_the_configuration_is_shown_from_then_on() {
    let rig = Rig::with(Vec::new()).await;
    let mut heard = rig.listener(None, 8).await;
    let set = SetConfig { patch: json!({"maxConcurrent": 5}).as_object().unwrap().clone() };
    let answer = json!({"config": Config { max_concurrent: 5, ..config() }, "messages": ["m"]});
    rig.script.answer("config.set", answer);
    assert_eq!(rig.ask(set.clone()).await.unwrap().messages, ["m"]);
    assert_eq!(rig.state("").await.config.unwrap().max_concurrent, 5);
    assert_eq!(*heard.try_recv().unwrap(), HostEvent::StateChanged);
    rig.script.refuse("config.set", PodErrorCode::BadRequest);
    assert_eq!(rig.refusal(set).await.0, "BAD_REQUEST");
}

#[actix::test]
async fn a_task_whose_agent_is_gone_is_resumed_under_the_lease_that_is_kept() {
    let rig = Rig::with(Vec::new()).await;
    let (id, lease) = rig.running().await;
    rig.changed(task("pod-1", TaskStatus::Failed)).await;
    rig.agent(&id, &lease, false).await;
    rig.ask(ResumeTask { task_id: id.clone() }).await.unwrap();
    let said = rig.script.said.take();
    assert_eq!(said[0], format!("task.reattach {{\"leaseId\":\"{lease}\",\"taskId\":\"{id}\"}}"));
    assert_eq!(
        said[1..],
        [format!("begin [\"{id}\",[false,true,\"main@\"]]"), format!("give back \"{id}\"")]
    );
}

#[actix::test]
async fn an_agent_that_does_not_end_keeps_its_task_from_being_removed() {
    let rig = Rig::with(Vec::new()).await;
    let (id, _) = rig.running().await;
    rig.script.refuse("release", PodErrorCode::Internal);
    let clean = Cleanup { task_id: id.clone(), scope: CleanupScope::All };
    let (code, message) = rig.refusal(clean).await;
    assert!(code == "TASK_RUNNING" && message.contains("10 s"), "{message}");
    let said = rig.script.said.take();
    assert!(
        !said.iter().any(|line| line.starts_with("task.delete") || line.starts_with("task.cleanupFiles"))
    );
    let state = rig.state("").await;
    assert!(state.tasks.len() == 1 && state.tasks[0].live, "it is held still");
}

#[actix::test]
async fn an_agent_is_cancelled_also_while_the_core_does_not_answer() {
    let rig = Rig::with(Vec::new()).await;
    let (id, _) = rig.running().await;
    rig.script.refuse("task.cancel", PodErrorCode::CoreUnavailable);
    let cancel = CancelTask { task_id: id, reason: None };
    assert_eq!(rig.refusal(cancel).await.0, "CORE_UNAVAILABLE");
    assert!(rig.script.said.take()[1].starts_with("cancel "));
}

#[actix::test]
async fn a_task_that_the_core_makes_after_it_was_given_up_takes_no_slot() {
    for (status, undone) in [(TaskStatus::Queued, "task.cancel"), (TaskStatus::Starting, "task.turnEnded")] {
        let rig = Rig::with(Vec::new()).await;
        rig.script.refuse("task.reserve", PodErrorCode::CoreUnavailable);
        rig.refusal(start("do it")).await;
        rig.script.said.take();
        rig.changed(task("pod-1", status)).await;
        let said = rig.script.said.take();
        assert!(said.len() == 1 && said[0].starts_with(undone), "{said:?}");
        rig.changed(task("pod-1", TaskStatus::Cancelled)).await;
        rig.changed(task("other", status)).await;
        assert_eq!(rig.script.said.take(), [""; 0]);
    }
}
