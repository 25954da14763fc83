//! How a live task keeps its lease, loses it, or is let go.

use cofferdam_protocol::pod::PodErrorCode;

use super::bench::Bench;
use crate::host::agent::AgentEvent;
use crate::host::live_task::{Begin, LetGo, StillRunning};

const ABORTED: &str = r#"task.turnEnded {"lastText":null,"reason":"aborted","timedOut":false,"turn":1}"#;

#[actix::test]
async fn a_heartbeat_is_sent_each_fifteen_seconds_whatever_the_agent_does() {
    let heard = async |bench: &Bench| {
        bench.hear_heartbeats();
        bench.take();
        bench.after(60).await;
        bench.take().into_iter().filter(|line| line == "task.heartbeat").count()
    };
    assert_eq!(heard(&Bench::new()).await, 4);
    assert_eq!(heard(&Bench::in_turn().await).await, 4);
    assert_eq!(heard(&Bench::idle().await).await, 4);
    let gone = Bench::idle().await;
    gone.agent(AgentEvent::Gone { message: String::new() }).await;
    assert_eq!(heard(&gone).await, 4);
    let starting = Bench::new();
    starting.deaf("start");
    let begins = starting.begins();
    starting.hear_heartbeats();
    starting.after(29).await;
    assert_eq!(
        starting.take(),
        ["task.markStarting", "agent: start workspace-write read,bash,write", "task.heartbeat"]
    );
    begins.abort();
}

#[actix::test]
async fn a_core_that_takes_long_gets_one_heartbeat_at_a_time() {
    let bench = Bench::idle().await;
    bench.hear_heartbeats();
    bench.holds("task.heartbeat");
    bench.after(100).await;
    assert_eq!(bench.take(), ["task.heartbeat"]);
    bench.let_go().await;
    bench.after(15).await;
    assert_eq!(bench.take(), ["task.heartbeat"]);
}

#[actix::test]
async fn a_task_that_is_somebody_elses_now_is_let_go_at_once() {
    for code in [PodErrorCode::StaleLease, PodErrorCode::TaskNotFound] {
        for bench in [Bench::idle().await, Bench::in_turn().await] {
            bench.refuses("task.heartbeat", code, 1);
            bench.after(15).await;
            let said = bench.take();
            assert!(said[0].starts_with("warning task t is not held by this host any more"), "{said:?}");
            assert_eq!(said[1..], ["agent: dispose", "not live", "ended"]);
            assert!(!bench.task.connected());
        }
        // Whatever call says so.
        let bench = Bench::in_turn().await;
        bench.refuses("task.setLastText", code, 1);
        bench.agent(AgentEvent::Text("hello".to_owned())).await;
        assert_eq!(bench.take().last().unwrap(), "ended");
        let bench = Bench::new();
        bench.refuses("task.markStarting", code, 1);
        assert_eq!(bench.begin().await.unwrap_err().code, code.into());
        let said = bench.take();
        assert!(!said.iter().any(|line| line.starts_with("task.set")), "{said:?}");
        assert_eq!(said.last().unwrap(), "ended");
        let bench = Bench::new();
        bench.deaf("start");
        bench.refuses("task.heartbeat", code, 1);
        let begins = bench.begins();
        bench.after(15).await;
        assert_eq!(begins.await.unwrap().unwrap_err().code, PodErrorCode::StaleLease.into());
        assert_eq!(bench.take().last().unwrap(), "ended");
    }
}

#[actix::test]
async fn a_queued_task_that_is_lost_ends_without_an_agent() {
    let bench = Bench::new();
    bench.refuses("task.heartbeat", PodErrorCode::StaleLease, 1);
    bench.after(15).await;
    let said = bench.take();
    assert!(said[0].starts_with("warning"), "{said:?}");
    assert_eq!(said[1..], ["ended"]);
}

#[actix::test]
async fn a_core_that_is_away_takes_no_lease_along() {
    let bench = Bench::idle().await;
    bench.refuses("task.heartbeat", PodErrorCode::CoreUnavailable, 10);
    bench.after(100).await;
    assert_eq!(bench.take(), [""; 0]);
    bench.tell("more").await.unwrap();
}

#[actix::test]
async fn a_task_that_is_let_go_has_its_turn_settled_and_its_agent_ended() {
    let bench = Bench::in_turn().await;
    assert_eq!(bench.release(LetGo::Unwanted).await, Ok(()));
    assert_eq!(bench.take_sorted(), ["agent: dispose", "ended", "not live", ABORTED]);
    assert!(!bench.task.connected());

    let bench = Bench::idle().await;
    assert_eq!(bench.release(LetGo::Unwanted).await, Ok(()));
    assert_eq!(bench.take(), ["agent: dispose", "not live", "ended"]);

    let bench = Bench::new();
    assert_eq!(bench.release(LetGo::Unwanted).await, Ok(()));
    assert_eq!(bench.take(), ["ended"]);
    assert!(!bench.task.connected());
}

#[actix::test]
async fn a_host_that_stops_interrupts_turns_and_keeps_what_was_heard_of_them() {
    let interrupted = ABORTED.replace("aborted", "interrupted");
    let bench = Bench::in_turn().await;
    bench.agent(AgentEvent::Text("heard".to_owned())).await;
    bench.take();
    assert_eq!(bench.release(LetGo::Stopping).await, Ok(()));
    let interrupted_after = interrupted.replace("null", "\"heard\"");
    assert_eq!(bench.take_sorted(), ["agent: dispose", "ended", "not live", &interrupted_after]);
    let bench = bench.again();
    bench.task.send(Begin { resume: true, ..bench.message() }).await.unwrap().unwrap();
    assert_eq!(bench.entries().await[1..3], ["Prompt: the task", "Assistant: heard"]);

    // What was cancelled before is that.
    let bench = Bench::in_turn().await;
    bench.cancel().await;
    bench.take();
    assert_eq!(bench.release(LetGo::Stopping).await, Ok(()));
    assert!(bench.take().contains(&ABORTED.to_owned()));

    let bench = Bench::new();
    bench.deaf("start");
    let begins = bench.begins();
    bench.settle().await;
    bench.take();
    assert_eq!(bench.release(LetGo::Stopping).await, Ok(()));
    assert_eq!(begins.await.unwrap().unwrap_err().code, PodErrorCode::CoreUnavailable.into());
    assert!(bench.take().contains(&interrupted));
}

#[actix::test]
async fn a_core_that_has_forgotten_the_lease_is_told_nothing() {
    let bench = Bench::in_turn().await;
    assert_eq!(bench.release(LetGo::Forgotten).await, Ok(()));
    assert_eq!(bench.take(), ["agent: dispose", "not live", "ended"]);
}

#[actix::test]
async fn a_task_whose_agent_is_made_ready_can_be_let_go() {
    let bench = Bench::new();
    bench.deaf("start");
    let begins = bench.begins();
    bench.settle().await;
    bench.take();
    assert_eq!(bench.release(LetGo::Unwanted).await, Ok(()));
    assert_eq!(begins.await.unwrap().unwrap_err().code, PodErrorCode::TaskBusy.into());
    assert_eq!(bench.take_sorted(), ["agent: dispose", "ended", ABORTED]);
    assert!(!bench.task.connected());
}

#[actix::test]
async fn an_agent_that_does_not_end_is_said_to_run_still_and_can_be_ended_later() {
    let bench = Bench::idle().await;
    bench.deaf("dispose");
    bench.hear_heartbeats();
    let began = tokio::time::Instant::now();
    assert_eq!(bench.release(LetGo::Unwanted).await, Err(StillRunning));
    assert_eq!(began.elapsed().as_secs(), 10);
    // The lease is kept: nobody else may have the directory.
    bench.after(30).await;
    assert_eq!(bench.take(), ["agent: dispose", "task.heartbeat", "task.heartbeat"]);
    assert_eq!(bench.tell("x").await.unwrap_err().code, PodErrorCode::CoreUnavailable.into());
    bench.hears();
    assert_eq!(bench.release(LetGo::Unwanted).await, Ok(()));
    assert!(!bench.task.connected());
}

#[actix::test]
async fn a_core_that_does_not_answer_holds_no_release_up() {
    let bench = Bench::in_turn().await;
    bench.holds("task.turnEnded");
    let began = tokio::time::Instant::now();
    assert_eq!(bench.release(LetGo::Unwanted).await, Ok(()));
    assert_eq!(began.elapsed().as_secs(), 5);
    assert!(!bench.task.connected());
}

#[actix::test]
async fn what_an_agent_says_that_was_let_go_is_not_heard() {
    let bench = Bench::idle().await;
    bench.deaf("dispose");
    assert_eq!(bench.release(LetGo::Unwanted).await, Err(StillRunning));
    bench.take();
    bench.agent(AgentEvent::TurnStarted { turn: 2 }).await;
    bench.agent(AgentEvent::Text("hello".to_owned())).await;
    assert_eq!(bench.take(), [""; 0]);
}
