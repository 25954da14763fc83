//! What ends a turn before its agent does.

use super::bench::Bench;
use crate::host::agent::AgentEvent;
use crate::host::live_task::{Begin, Expired};

fn ended(reason: &str) -> AgentEvent {
    AgentEvent::TurnEnded { turn: 1, reason: reason.to_owned(), error: String::new() }
}

fn told(reason: &str, timed_out: bool) -> String {
    format!(r#"task.turnEnded {{"lastText":null,"reason":"{reason}","timedOut":{timed_out},"turn":1}}"#)
}

#[actix::test]
async fn a_turn_that_is_cancelled_ends_as_its_agent_says() {
    for reason in ["aborted", "completed"] {
        let bench = Bench::in_turn().await;
        bench.cancel().await;
        assert_eq!(bench.take(), [r#"agent: cancel User { reason: "no" }"#]);
        bench.agent(ended(reason)).await;
        assert_eq!(bench.take(), [told(reason, false)]);
        bench.after(1000).await;
        bench.tell("more").await.unwrap();
        assert_eq!(bench.take(), ["agent: told more"]);
    }
}

#[actix::test]
async fn a_turn_that_is_about_to_begin_can_be_cancelled() {
    let bench = Bench::idle().await;
    bench.tell("more").await.unwrap();
    bench.cancel().await;
    assert_eq!(bench.take(), ["agent: told more", r#"agent: cancel User { reason: "no" }"#]);
    bench.agent(AgentEvent::TurnStarted { turn: 2 }).await;
    bench.after(10).await;
    let expected = [
        "agent: dispose",
        "not live",
        r#"task.turnEnded {"lastText":null,"reason":"aborted","timedOut":false,"turn":2}"#,
        r#"task.turnStarted {"turn":2}"#,
    ];
    assert_eq!(bench.take_sorted()[..4], expected);
}

#[actix::test]
async fn an_agent_that_minds_no_cancellation_is_ended_after_ten_seconds() {
    let bench = Bench::in_turn().await;
    bench.cancel().await;
    bench.after(9).await;
    assert_eq!(bench.take().len(), 1);
    bench.after(1).await;
    let note = "the agent did not end its turn in time, and was ended; resume the task to go on";
    let expected = [
        "agent: dispose".to_owned(),
        "not live".to_owned(),
        told("aborted", false),
        format!("warning task t: {note}"),
    ];
    assert_eq!(bench.take_sorted(), expected);
    assert_eq!(bench.entries().await.last().unwrap(), &format!("Note: {note}"));
    // Another one can be had, under the same lease; what is left of the first is ended before.
    bench.task.send(Begin { resume: true, ..bench.message() }).await.unwrap().unwrap();
    let said = bench.take();
    assert_eq!(
        said[..3],
        ["task.markStarting", "agent: dispose", "agent: start again workspace-write read,bash,write"]
    );
    bench.tell("go on").await.unwrap();
}

#[actix::test]
async fn an_agent_whose_program_has_ended_has_time_to_clear_what_that_has_left() {
    let bench = Bench::in_turn().await;
    bench.cancel().await;
    bench.after(9).await;
    bench.agent(AgentEvent::Exited).await;
    // Nor does somebody who asks again hurry it.
    bench.cancel().await;
    bench.after(60).await;
    bench.agent(ended("aborted")).await;
    let said = bench.take();
    assert!(!said.iter().any(|line| line == "agent: dispose"), "{said:?}");
    assert_eq!(said.last().unwrap(), &told("aborted", false));

    let bench = Bench::in_turn().await;
    bench.agent(AgentEvent::Exited).await;
    bench.after(70).await;
    assert!(bench.take().contains(&"agent: dispose".to_owned()));
}

#[actix::test]
async fn nothing_is_cancelled_where_no_turn_is() {
    let bench = Bench::idle().await;
    bench.cancel().await;
    bench.task.send(Expired { turn: 1 }).await.unwrap();
    bench.after(1000).await;
    assert_eq!(bench.take(), [""; 0]);
}

#[actix::test]
async fn a_turn_that_is_out_of_time_is_cancelled_and_ends_as_that() {
    for reason in ["aborted", "completed"] {
        let bench = Bench::in_turn().await;
        bench.task.send(Expired { turn: 1 }).await.unwrap();
        bench.settle().await;
        assert_eq!(bench.take(), ["agent: cancel Timeout"]);
        bench.agent(ended(reason)).await;
        assert_eq!(bench.take(), [told(reason, true)]);
    }
}

#[actix::test]
async fn another_turns_time_is_not_this_ones() {
    let bench = Bench::in_turn().await;
    bench.task.send(Expired { turn: 2 }).await.unwrap();
    bench.settle().await;
    assert_eq!(bench.take(), [""; 0]);
}

#[actix::test]
async fn a_turn_of_which_nobody_says_that_it_is_late_is_ended_by_the_watchdog() {
    let bench = Bench::in_turn().await;
    bench.after(629).await;
    assert_eq!(bench.take(), [""; 0]);
    bench.after(1).await;
    assert_eq!(bench.take(), ["agent: cancel Timeout".to_owned(), told("aborted", true)]);
    // It is settled; that it ends at last changes nothing.
    bench.agent(ended("completed")).await;
    bench.after(1000).await;
    assert_eq!(bench.take(), [""; 0]);
    bench.tell("more").await.unwrap();
}

#[actix::test]
async fn an_agent_that_minds_no_watchdog_is_ended() {
    let bench = Bench::in_turn().await;
    bench.task.send(Expired { turn: 1 }).await.unwrap();
    bench.after(630).await;
    let timeout = "agent: cancel Timeout".to_owned();
    assert_eq!(bench.take(), [timeout.clone(), timeout, told("aborted", true)]);
    bench.after(10).await;
    let said = bench.take();
    assert!(said.contains(&"agent: dispose".to_owned()) && said.contains(&"not live".to_owned()), "{said:?}");
    assert!(!said.iter().any(|line| line.starts_with("task.")), "{said:?}");
}

#[actix::test]
async fn the_time_of_a_turn_begins_with_it() {
    let bench = Bench::idle().await;
    bench.tell("more").await.unwrap();
    bench.after(600).await;
    bench.agent(AgentEvent::TurnStarted { turn: 2 }).await;
    bench.after(629).await;
    assert!(!bench.take().contains(&"agent: cancel Timeout".to_owned()));
    bench.after(1).await;
    assert!(bench.take().contains(&"agent: cancel Timeout".to_owned()));
}

#[actix::test]
async fn an_agent_that_never_begins_what_it_took_is_ended_too() {
    let bench = Bench::idle().await;
    bench.tell("more").await.unwrap();
    bench.after(640).await;
    let said = bench.take();
    assert!(said.contains(&"agent: dispose".to_owned()), "{said:?}");
    // It was completed before, and would stay so if only an end was told.
    let turns: Vec<_> = said.iter().filter(|line| line.starts_with("task.turn")).collect();
    let ended = r#"task.turnEnded {"lastText":null,"reason":"aborted","timedOut":true,"turn":2}"#;
    assert_eq!(turns, [r#"task.turnStarted {"turn":2}"#, ended]);
}

#[actix::test]
async fn a_tool_that_the_task_does_not_allow_ends_the_turn_as_an_error_that_names_it() {
    let bench = Bench::in_turn().await;
    bench.agent(AgentEvent::ToolCall { name: "bash".to_owned(), input: "ls".to_owned() }).await;
    assert_eq!(bench.take(), [""; 0]);
    bench.agent(AgentEvent::ToolCall { name: "web_search".to_owned(), input: "x".to_owned() }).await;
    let what = "the agent called the tool web_search, which the task does not allow";
    let set = format!(
        r#"task.setError {{"code":"error","message":"{what}; allow it in the configuration, or ask for less"}}"#
    );
    assert_eq!(bench.take(), [format!("agent: cancel Guard {{ what: \"{what}\" }}")], "it runs still");
    // However the agent ends it.
    bench.agent(ended("completed")).await;
    assert_eq!(bench.take_sorted(), [set, told("error", false)]);
    bench.tell("more").await.unwrap();
}

#[actix::test]
async fn a_turn_that_is_cancelled_already_ends_as_that_whatever_tool_it_calls() {
    let bench = Bench::in_turn().await;
    bench.cancel().await;
    bench.agent(AgentEvent::ToolCall { name: "web_search".to_owned(), input: "x".to_owned() }).await;
    bench.agent(ended("aborted")).await;
    assert_eq!(bench.take().last().unwrap(), &told("aborted", false));
}

#[actix::test]
async fn an_agent_that_works_outside_of_a_turn_is_ended() {
    let bench = Bench::idle().await;
    bench.agent(AgentEvent::ToolCall { name: "web_search".to_owned(), input: "x".to_owned() }).await;
    let said = bench.take();
    assert!(said.contains(&"agent: dispose".to_owned()) && said.contains(&"not live".to_owned()), "{said:?}");
}

#[actix::test]
async fn an_agent_that_is_gone_takes_its_turn_along() {
    let gone = || AgentEvent::Gone { message: "out of memory".to_owned() };
    let bench = Bench::in_turn().await;
    bench.agent(gone()).await;
    let error = r#"task.setError {"code":"error","message":"out of memory"}"#.to_owned();
    assert_eq!(bench.take_sorted(), ["not live".to_owned(), error, told("error", false)]);
    assert_eq!(bench.entries().await.last().unwrap(), "Note: the agent is gone: out of memory");
    assert_eq!(bench.tell("more").await.unwrap_err().code.word(), "TASK_NOT_RESUMABLE");

    let bench = Bench::in_turn().await;
    bench.cancel().await;
    bench.agent(gone()).await;
    assert!(bench.take().contains(&told("aborted", false)));

    let bench = Bench::in_turn().await;
    bench.task.send(Expired { turn: 1 }).await.unwrap();
    bench.agent(gone()).await;
    assert!(bench.take().contains(&told("aborted", true)));

    let bench = Bench::idle().await;
    bench.agent(gone()).await;
    assert_eq!(bench.take(), ["not live"]);
}
