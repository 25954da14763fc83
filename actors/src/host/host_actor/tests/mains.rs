//! Main sessions: what is told to them, and what they tell about the sandbox root.

use super::*;

fn session(id: &str, cwd: &str) -> MainSession {
    MainSession { id: id.to_owned(), cwd: cwd.to_owned(), subagent: false }
}

fn tell(session: &str, text: &str, request: Option<&str>) -> ReturnToMain {
    ReturnToMain {
        main_session_id: session.to_owned(),
        text: text.to_owned(),
        request_id: request.map(str::to_owned),
    }
}

/// The messages that were heard.
fn messages(heard: &mut mpsc::Receiver<Arc<HostEvent>>) -> Vec<MainMessage> {
    let mut messages = Vec::new();
    while let Ok(event) = heard.try_recv() {
        if let HostEvent::MainMessage(message) = &*event {
            messages.push(message.clone());
        }
    }
    messages
}

#[actix::test]
async fn a_return_is_one_message_to_the_newest_client_of_that_session_alone() {
    let rig = Rig::with(Vec::new()).await;
    let mut older = rig.listener(Some(session("main", "/w")), 8).await;
    let mut newer = rig.listener(Some(session("main", "/w")), 8).await;
    let mut other = rig.listener(Some(session("other", "/w")), 8).await;
    let mut nobody = rig.listener(None, 8).await;
    let returned = rig.ask(tell("main", "  the result\n", None)).await.unwrap();
    assert!(returned.id.starts_with("ipp-ret-") && !returned.truncated);
    let heard = messages(&mut newer);
    assert_eq!((heard.len(), heard[0].text.as_str(), &heard[0].id), (1, "the result", &returned.id));
    assert_eq!(heard[0].session_id, "main");
    assert!([&mut older, &mut other, &mut nobody].iter_mut().all(|heard| messages(heard).is_empty()));
    // The next one, when the newest has gone.
    drop(newer);
    rig.ask(tell("main", "again", None)).await.unwrap();
    assert_eq!(messages(&mut older)[0].text, "again");
}

#[actix::test]
async fn a_session_without_a_client_is_not_live() {
    let rig = Rig::with(Vec::new()).await;
    let refused = || rig.refusal(tell("main", "x", None));
    assert_eq!(refused().await.0, "MAIN_SESSION_NOT_LIVE");
    drop(rig.listener(Some(session("main", "/w")), 8).await);
    assert_eq!(refused().await.0, "MAIN_SESSION_NOT_LIVE", "its client has gone");
    let helper = MainSession { subagent: true, ..session("main", "/w") };
    let _heard = rig.listener(Some(helper), 8).await;
    assert_eq!(refused().await.0, "MAIN_SESSION_NOT_LIVE", "an agent's helper is no conversation");
}

#[actix::test]
async fn a_request_that_comes_again_is_answered_again_and_not_delivered_twice() {
    let rig = Rig::with(Vec::new()).await;
    let mut heard = rig.listener(Some(session("main", "/w")), 8).await;
    let first = rig.ask(tell("main", "x", Some("r1"))).await.unwrap();
    assert_eq!(rig.ask(tell("main", "x", Some("r1"))).await.unwrap(), first);
    assert_eq!(messages(&mut heard).len(), 1);
    assert_eq!(rig.refusal(tell("main", "y", Some("r1"))).await.0, "BAD_REQUEST");
    // One that was not delivered can be tried again under its name.
    drop(heard);
    assert_eq!(rig.refusal(tell("main", "z", Some("r2"))).await.0, "MAIN_SESSION_NOT_LIVE");
    let mut heard = rig.listener(Some(session("main", "/w")), 8).await;
    rig.ask(tell("main", "z", Some("r2"))).await.unwrap();
    assert_eq!(messages(&mut heard).len(), 1);
}

#[actix::test]
async fn what_is_no_message_for_a_main_session_is_refused_and_a_long_one_cut() {
    let rig = Rig::with(vec![task("a", TaskStatus::Completed)]).await;
    let mut heard = rig.listener(Some(session("main", "/w")), 8).await;
    for (to, text) in [("", "x"), ("main", " \n"), ("pod-session-a", "x")] {
        assert_eq!(rig.refusal(tell(to, text, None)).await.0, "BAD_REQUEST", "{to} {text}");
    }
    let returned = rig.ask(tell("main", &"é".repeat(8001), None)).await.unwrap();
    assert!(returned.truncated);
    assert_eq!(messages(&mut heard)[0].text, "é".repeat(8000));
}

#[actix::test]
async fn the_sandbox_verdict_compares_the_root_with_the_main_sessions_directory() {
    let base = tempfile::tempdir().unwrap();
    let base = std::fs::canonicalize(base.path()).unwrap();
    let root = base.join("project/pods").display().to_string();
    let rig = Rig::new();
    let with_root = Config { sandbox_root: root.clone(), ..config() };
    rig.up(ready(), Some(initialized(with_root, vec![task("a", TaskStatus::Completed)]))).await;
    let verdict = |state: State| {
        let verdict = state.sandbox;
        (verdict.cwd_known, verdict.main_cwd, verdict.inside_main_cwd)
    };
    let unknown = (false, String::new(), false);

    assert_eq!(verdict(rig.state("main").await), unknown, "an unknown directory is said, not guessed");
    let project = base.join("project").display().to_string();
    std::fs::create_dir(&project).unwrap();
    let heard = rig.listener(Some(session("main", &project)), 8).await;
    let inside = (true, project.clone(), true);
    assert_eq!(verdict(rig.state("main").await), inside);
    assert_eq!(verdict(rig.state("").await), unknown);

    // A task's own conversation works in the root, and stands for the one it was started from.
    let _pod = rig.listener(Some(session("pod-session-a", &root)), 8).await;
    assert_eq!(verdict(rig.state("pod-session-a").await), inside);
    // An agent's helper says nothing about its user's workspace.
    let helper = MainSession { subagent: true, ..session("helper", &project) };
    let _helper = rig.listener(Some(helper), 8).await;
    assert_eq!(verdict(rig.state("helper").await), unknown);
    // One that works elsewhere.
    let elsewhere = base.join("elsewhere").display().to_string();
    let _other = rig.listener(Some(session("other", &elsewhere)), 8).await;
    assert_eq!(verdict(rig.state("other").await), (true, elsewhere, false));
    // A relative directory is none.
    let _odd = rig.listener(Some(session("odd", "project")), 8).await;
    assert_eq!(verdict(rig.state("odd").await), unknown);
    // What a client said stays known when it has gone.
    drop(heard);
    assert_eq!(verdict(rig.state("main").await), inside);
}

#[actix::test]
async fn a_task_started_from_a_tasks_conversation_belongs_to_the_main_session_of_that() {
    let rig = Rig::with(vec![task("a", TaskStatus::Completed)]).await;
    rig.script.answer("task.reserve", reserved(task("pod-1", TaskStatus::Queued), false));
    rig.ask(StartTask { main_session_id: "pod-session-a".to_owned(), ..start("x") }).await.unwrap();
    assert!(rig.script.said.take()[1].contains("\"mainSessionId\":\"main\""));
}
