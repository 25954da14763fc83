//! What an agent does in a turn, and what the core and people are told of it.

use cofferdam_protocol::pod::PodErrorCode;

use super::bench::Bench;
use crate::host::agent::{AgentError, AgentEvent};
use crate::host::live_task::ReadTranscript;

fn text(text: &str) -> AgentEvent {
    AgentEvent::Text(text.to_owned())
}

fn ended(turn: u64, reason: &str, error: &str) -> AgentEvent {
    AgentEvent::TurnEnded { turn, reason: reason.to_owned(), error: error.to_owned() }
}

#[actix::test]
async fn a_turn_is_told_to_the_core_from_its_beginning_to_its_end() {
    let bench = Bench::idle().await;
    bench.tell("more").await.unwrap();
    bench.agent(AgentEvent::TurnStarted { turn: 2 }).await;
    bench.agent(text("first")).await;
    bench.agent(text("second")).await;
    bench.agent(ended(2, "completed", "")).await;
    let expected = [
        "agent: told more",
        r#"task.turnStarted {"turn":2}"#,
        r#"task.setLastText {"text":"first"}"#,
        r#"task.setLastText {"text":"second"}"#,
        r#"task.turnEnded {"lastText":"second","reason":"completed","timedOut":false,"turn":2}"#,
    ];
    assert_eq!(bench.take(), expected);
    let entries = bench.entries().await;
    let expected = [
        "User: more",
        "Turn: turn 2 began",
        "Assistant: first",
        "Assistant: second",
        "Turn: turn 2 ended: completed",
    ];
    assert_eq!(entries[entries.len() - 5..], expected);
}

#[actix::test]
async fn however_much_an_agent_says_the_core_is_told_one_text_at_a_time_and_the_latest_last() {
    let bench = Bench::in_turn().await;
    bench.holds("task.setLastText");
    for n in 0..100 {
        bench.agent(text(&n.to_string())).await;
    }
    bench.agent(AgentEvent::Tools(vec!["read".to_owned()])).await;
    bench.agent(text("last but one")).await;
    assert_eq!(bench.take(), [r#"task.setLastText {"text":"0"}"#]);
    bench.let_go().await;
    let expected =
        [r#"task.setLastText {"text":"last but one"}"#, r#"task.setAvailableTools {"tools":["read"]}"#];
    assert_eq!(bench.take(), expected);
    bench.holds("task.setLastText");
    for said in ["a", "b", "c"] {
        bench.agent(text(said)).await;
    }
    bench.agent(ended(1, "completed", "")).await;
    bench.tell("more").await.unwrap();
    bench.agent(AgentEvent::TurnStarted { turn: 2 }).await;
    bench.let_go().await;
    // What the end says is not said besides.
    let expected = [
        r#"task.setLastText {"text":"a"}"#,
        "agent: told more",
        r#"task.turnEnded {"lastText":"c","reason":"completed","timedOut":false,"turn":1}"#,
        r#"task.turnStarted {"turn":2}"#,
    ];
    assert_eq!(bench.take(), expected);
}

#[actix::test]
async fn a_turn_in_which_nothing_was_said_leaves_the_last_text_alone() {
    let bench = Bench::in_turn().await;
    bench.agent(text(" \n")).await;
    bench.agent(ended(1, "completed", "")).await;
    let expected = [r#"task.turnEnded {"lastText":null,"reason":"completed","timedOut":false,"turn":1}"#];
    assert_eq!(bench.take(), expected);
}

#[actix::test]
async fn what_went_wrong_in_a_turn_is_the_tasks_error() {
    let bench = Bench::in_turn().await;
    bench.agent(ended(1, "error", "no credit left")).await;
    let expected = [
        r#"task.setError {"code":"error","message":"no credit left"}"#,
        r#"task.turnEnded {"lastText":null,"reason":"error","timedOut":false,"turn":1}"#,
    ];
    assert_eq!(bench.take(), expected);
    assert_eq!(bench.entries().await.last().unwrap(), "Turn: turn 1 ended: error: no credit left");
    // Whatever the core makes of it, the turn has ended.
    let bench = Bench::in_turn().await;
    bench.refuses("task.setError", PodErrorCode::BadRequest, 1);
    bench.agent(ended(1, "error", &"😀".repeat(1 << 20))).await;
    let said = bench.take();
    assert_eq!(said[0].chars().filter(|char| *char == '😀').count(), 1000);
    assert_eq!(said[1], expected[1]);
    assert!(said[2].starts_with("warning the state of task t may be behind"), "{said:?}");
    // Not where the core takes it for something else.
    let bench = Bench::in_turn().await;
    bench.agent(ended(1, "completed", "a warning")).await;
    assert_eq!(bench.take().len(), 1);
}

#[actix::test]
async fn while_a_turn_runs_nothing_more_is_told_to_the_agent() {
    let bench = Bench::in_turn().await;
    assert_eq!(bench.tell("more").await.unwrap_err().code, PodErrorCode::TaskBusy.into());
    bench.agent(ended(1, "completed", "")).await;
    bench.tell("more").await.unwrap();
    // It has not begun, but will.
    assert_eq!(bench.tell("and more").await.unwrap_err().code, PodErrorCode::TaskBusy.into());
    assert_eq!(bench.take().iter().filter(|line| line.starts_with("agent: told")).count(), 1);
}

#[actix::test]
async fn a_blank_text_is_refused_wherever_the_task_is() {
    for bench in [Bench::new(), Bench::idle().await, Bench::in_turn().await] {
        assert_eq!(bench.tell(" \n\t").await.unwrap_err().code, PodErrorCode::BadRequest.into());
        assert_eq!(bench.take(), [""; 0]);
    }
    assert_eq!(Bench::new().tell("x").await.unwrap_err().code, PodErrorCode::TaskBusy.into());
}

#[actix::test]
async fn an_agent_that_refuses_what_it_is_told_can_be_told_something_else() {
    let bench = Bench::idle().await;
    bench.follow_up_fails(AgentError::Busy);
    assert_eq!(bench.tell("more").await.unwrap_err().code, PodErrorCode::TaskBusy.into());
    assert_eq!(bench.tell("more").await.unwrap_err().code, PodErrorCode::TaskBusy.into());
    // The core hears nothing of it.
    assert_eq!(bench.take(), ["agent: told more", "agent: told more"]);
}

#[actix::test]
async fn an_agent_that_does_not_say_whether_it_begins_is_ended_after_thirty_seconds() {
    let bench = Bench::idle().await;
    bench.deaf("follow up");
    let message = crate::host::live_task::Tell { text: "more".to_owned() };
    let told = tokio::task::spawn_local(bench.task.send(message));
    bench.after(29).await;
    assert_eq!(bench.take(), ["agent: told more"]);
    bench.after(1).await;
    assert_eq!(told.await.unwrap().unwrap().unwrap_err().code, PodErrorCode::Internal.into());
    let said = bench.take();
    assert!(said.contains(&"agent: dispose".to_owned()) && said.contains(&"not live".to_owned()), "{said:?}");
}

#[actix::test]
async fn a_turn_that_an_agent_begins_by_itself_is_a_turn() {
    let bench = Bench::idle().await;
    bench.agent(AgentEvent::TurnStarted { turn: 7 }).await;
    assert_eq!(bench.tell("more").await.unwrap_err().code, PodErrorCode::TaskBusy.into());
    // One whose end was missed is followed by another one.
    bench.agent(AgentEvent::TurnStarted { turn: 7 }).await;
    bench.agent(AgentEvent::TurnStarted { turn: 8 }).await;
    bench.agent(ended(7, "completed", "")).await;
    bench.agent(ended(8, "completed", "")).await;
    let expected = [
        r#"task.turnStarted {"turn":7}"#,
        r#"task.turnStarted {"turn":8}"#,
        r#"task.turnEnded {"lastText":null,"reason":"completed","timedOut":false,"turn":8}"#,
    ];
    assert_eq!(bench.take(), expected);
}

#[actix::test]
async fn tools_are_told_when_they_change() {
    let bench = Bench::in_turn().await;
    let tools = |names: &[&str]| AgentEvent::Tools(names.iter().map(|&name| name.to_owned()).collect());
    bench.agent(tools(&["read", "read"])).await;
    bench.agent(tools(&["read"])).await;
    bench.agent(tools(&["read", "bash"])).await;
    let expected = [
        r#"task.setAvailableTools {"tools":["read"]}"#,
        r#"task.setAvailableTools {"tools":["read","bash"]}"#,
    ];
    assert_eq!(bench.take(), expected);
    let many: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    bench.agent(AgentEvent::Tools(many)).await;
    assert!(bench.take()[0].ends_with(r#""255"]}"#));
}

#[actix::test]
async fn the_transcript_is_bounded_and_says_what_is_missing() {
    let bench = Bench::in_turn().await;
    bench.agent(AgentEvent::Thinking("hm".to_owned())).await;
    bench.agent(AgentEvent::ToolCall { name: "bash".to_owned(), input: "ls".to_owned() }).await;
    bench.agent(AgentEvent::ToolResult { text: "a b".to_owned() }).await;
    let entries = bench.entries().await;
    assert_eq!(entries[entries.len() - 3..], ["Thinking: hm", "Tool: bash ls", "Tool: a b"]);
    for n in 0..500 {
        bench.agent(text(&n.to_string())).await;
    }
    let transcript = bench.transcript().await;
    assert_eq!((transcript.entries.len(), transcript.truncated), (500, true));
    let last = bench.task.send(ReadTranscript { from: transcript.next - 1 }).await.unwrap();
    assert_eq!((last.entries.len(), last.entries[0].text.as_str(), last.truncated), (1, "499", false));
}

#[actix::test]
async fn the_end_of_a_turn_is_told_again_until_the_core_can_take_it() {
    let bench = Bench::in_turn().await;
    bench.refuses("task.turnEnded", PodErrorCode::DbError, 3);
    bench.agent(ended(1, "completed", "")).await;
    bench.after(3).await;
    let said = bench.take();
    assert_eq!(said.iter().filter(|line| line.starts_with("task.turnEnded")).count(), 4, "{said:?}");
    assert_eq!(said.iter().filter(|line| line.starts_with("warning")).count(), 0, "{said:?}");
    // Not for ever, and what comes after it is not lost.
    bench.refuses("task.turnStarted", PodErrorCode::DbError, 1000);
    bench.tell("more").await.unwrap();
    bench.agent(AgentEvent::TurnStarted { turn: 2 }).await;
    bench.agent(ended(2, "completed", "")).await;
    bench.after(30).await;
    let said = bench.take();
    assert!(
        said.iter().any(|line| line.starts_with("warning the state of task t may be behind")),
        "{said:?}"
    );
    assert!(said.last().unwrap().starts_with("task.turnEnded"), "{said:?}");
}
