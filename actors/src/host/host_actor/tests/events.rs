//! Who hears of what.

use super::*;

#[actix::test]
async fn a_listener_hears_of_tasks_with_what_only_the_host_knows_of_them() {
    let rig = Rig::with(vec![task("a", TaskStatus::Running)]).await;
    let mut heard = rig.listener(None, 8).await;
    rig.changed(task("a", TaskStatus::Completed)).await;
    let event = heard.try_recv().unwrap();
    let HostEvent::TaskChanged { task_id, task } = &*event else { panic!("{event:?}") };
    assert_eq!((task_id.as_str(), task.live, task.can_resume), ("a", false, true));
    rig.event(PodEvent::ExportProgress {
        export_id: "e".to_owned(),
        task_id: "a".to_owned(),
        done: 1,
        total: 2,
    })
    .await;
    assert!(matches!(*heard.try_recv().unwrap(), HostEvent::ExportProgress { done: 1, total: 2, .. }));
}

#[actix::test]
async fn what_an_agent_says_is_heard_at_once() {
    let rig = Rig::with(Vec::new()).await;
    let (id, lease) = rig.running().await;
    let mut heard = rig.listener(None, 8).await;
    let entry = TranscriptEntry { seq: 1, kind: EntryKind::Assistant, time: 2, text: "hi".to_owned() };
    let notice = LiveNotice { task_id: id.clone(), lease, what: LiveChange::Entry(entry.clone()) };
    rig.addr.send(notice).await.unwrap();
    assert_eq!(*heard.try_recv().unwrap(), HostEvent::TaskEntry { task_id: id, entry });
}

#[actix::test]
async fn a_slow_listener_loses_events_and_is_told_so_also_if_nothing_happens_afterwards() {
    let rig = Rig::with(vec![task("a", TaskStatus::Running)]).await;
    let mut slow = rig.listener(None, 3).await;
    let mut quick = rig.listener(None, 64).await;
    for _ in 0..5 {
        rig.changed(task("a", TaskStatus::Running)).await;
    }
    let kinds = |heard: &mut mpsc::Receiver<Arc<HostEvent>>| {
        let mut kinds = Vec::new();
        while let Ok(event) = heard.try_recv() {
            kinds.push(serde_json::to_value(&*event).unwrap()["kind"].as_str().unwrap().to_owned());
        }
        kinds
    };
    assert_eq!(kinds(&mut slow), ["task.changed", "task.changed", "events.lost"]);
    assert_eq!(kinds(&mut quick).len(), 5);
    rig.changed(task("a", TaskStatus::Running)).await;
    assert_eq!(kinds(&mut slow), ["task.changed"]);
}

#[actix::test]
async fn when_the_core_goes_every_agent_is_ended_unsettled_and_when_it_comes_all_is_new() {
    let rig = Rig::with(Vec::new()).await;
    let (id, _) = rig.running().await;
    let mut heard = rig.listener(None, 8).await;
    let down = CoreState { status: CoreStatus::Down, message: "it was killed".to_owned(), ..ready() };
    rig.addr.send(CoreEvent::Down { state: down }).await.unwrap();
    rig.settle().await;
    assert_eq!(rig.script.said.take(), [format!("release [\"{id}\",\"Forgotten\"]")]);
    assert!(
        matches!(&*heard.try_recv().unwrap(), HostEvent::CoreChanged { core } if core.status == CoreStatus::Down)
    );
    // Looking goes on, with what was known.
    let state = rig.state("").await;
    assert_eq!((state.core.status, state.tasks[0].live, state.tasks.len()), (CoreStatus::Down, false, 1));
    assert!(state.diagnostics.iter().any(|line| line.message.contains("it was killed")));
    let (code, message) = rig.refusal(start("do it")).await;
    assert_eq!((code.as_str(), message.as_str()), ("CORE_UNAVAILABLE", "it was killed"));

    rig.up(ready(), Some(initialized(config(), vec![task("b", TaskStatus::Interrupted)]))).await;
    let ids: Vec<_> = rig.state("").await.tasks.into_iter().map(|row| row.task.id).collect();
    assert_eq!(ids, ["b"]);
    assert!(matches!(&*heard.try_recv().unwrap(), HostEvent::CoreChanged { .. }));
    assert_eq!(*heard.try_recv().unwrap(), HostEvent::StateChanged);
}

#[actix::test]
async fn a_restart_ends_the_agents_without_settling_their_turns_and_then_the_core() {
    let rig = Rig::with(Vec::new()).await;
    let (id, _) = rig.running().await;
    let restarted = rig.ask(RestartCore {}).await.unwrap();
    assert_eq!(restarted.core.status, CoreStatus::Ready);
    assert_eq!(
        rig.script.said.take(),
        [format!("release [\"{id}\",\"Forgotten\"]"), "restart null".to_owned()]
    );
    rig.script.refuse("restart", PodErrorCode::DbError);
    assert_eq!(rig.refusal(RestartCore {}).await.0, "DB_ERROR");
}

#[actix::test]
async fn an_agent_that_outlives_a_restart_of_the_core_is_a_diagnostic_that_names_its_task() {
    let rig = Rig::with(Vec::new()).await;
    let (id, _) = rig.running().await;
    rig.script.refuse("release", PodErrorCode::Internal);
    rig.ask(RestartCore {}).await.unwrap();
    let said = rig.state("").await.diagnostics;
    assert!(said.iter().any(|line| line.message.contains(&id) && line.message.contains("end its process")));
}

#[actix::test]
async fn what_a_task_that_was_let_go_still_says_is_not_taken_for_its_successors_word() {
    let rig = Rig::with(Vec::new()).await;
    let (id, lease) = rig.running().await;
    rig.agent(&id, "lease-of-another", false).await;
    let ended =
        LiveNotice { task_id: id.clone(), lease: "lease-of-another".to_owned(), what: LiveChange::Ended };
    rig.addr.send(ended).await.unwrap();
    assert!(rig.state("").await.tasks[0].live);
    rig.addr.send(LiveNotice { task_id: id, lease, what: LiveChange::Ended }).await.unwrap();
    assert!(!rig.state("").await.tasks[0].live);
}

#[actix::test]
async fn a_host_that_stops_ends_its_agents_and_begins_nothing_more() {
    let rig = Rig::with(Vec::new()).await;
    let (id, _) = rig.running().await;
    rig.host.end_agents().await;
    assert_eq!(rig.script.said.take(), [format!("release [\"{id}\",\"Stopping\"]")]);
    rig.event(PodEvent::QueueDispatch { task_id: id }).await;
    assert_eq!(rig.refusal(start("do it")).await.0, "CORE_UNAVAILABLE");
    assert_eq!(rig.script.said.take(), [""; 0]);
}

#[actix::test]
async fn an_agent_that_does_not_end_holds_a_host_up_that_stops_for_ten_seconds() {
    let rig = Rig::with(Vec::new()).await;
    rig.running().await;
    rig.script.refuse("release", PodErrorCode::Internal);
    // A core that is gone has taken the lease along, and the agent runs all the same.
    let down = CoreState { status: CoreStatus::Down, ..ready() };
    rig.addr.send(CoreEvent::Down { state: down }).await.unwrap();
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    rig.host.end_agents().await;
    assert_eq!(began.elapsed().as_secs(), 10);
}
