//! What is kept of a turn, before it and after it.

use cofferdam_protocol::pod::PodErrorCode;
use cofferdam_protocol::session::Envelope;

use super::bench::{Bench, SESSION};
use crate::host::agent::{AgentError, AgentEvent, CancelCause};
use crate::host::live_task::{Cancel, LetGo, Noted, Tell};

fn ended(turn: u64) -> AgentEvent {
    AgentEvent::TurnEnded { turn, reason: "completed".to_owned(), error: String::new() }
}

#[actix::test]
async fn an_agent_is_given_what_was_said_before_it_was_told_more() {
    let bench = Bench::in_turn().await;
    assert_eq!(bench.given(), [""; 0]);
    bench.agent(AgentEvent::Text("an answer".to_owned())).await;
    bench.agent(AgentEvent::Thinking("hm".to_owned())).await;
    bench.agent(AgentEvent::ToolCall { name: "bash".to_owned(), input: "ls".to_owned() }).await;
    bench.agent(AgentEvent::ToolResult { text: "a b".to_owned() }).await;
    bench.agent(ended(1)).await;
    bench.tell("more").await.unwrap();
    assert_eq!(bench.given(), ["user: the task", "assistant: an answer", "tool: a b"]);
    // A turn that fails, and one that is cancelled, was asked for all the same.
    bench.agent(AgentEvent::TurnStarted { turn: 2 }).await;
    bench.cancel().await;
    bench.agent(AgentEvent::TurnEnded { turn: 2, reason: "aborted".to_owned(), error: String::new() }).await;
    bench.follow_up_fails(AgentError::Failed("no".to_owned()));
    bench.tell("in vain").await.unwrap_err();
    bench.tell("again").await.unwrap_err();
    assert_eq!(bench.given()[3..], ["user: more", "user: in vain"]);
}

#[actix::test]
async fn what_an_agent_says_the_conversation_is_takes_the_place_of_what_was_heard() {
    let bench = Bench::in_turn().await;
    bench.agent(AgentEvent::Text("heard".to_owned())).await;
    bench.agent(ended(1)).await;
    bench.tell("more").await.unwrap();
    bench.agent(AgentEvent::TurnStarted { turn: 2 }).await;
    bench.agent(AgentEvent::Text("heard, too".to_owned())).await;
    let mut own: Envelope = bench.conversation().unwrap();
    let mut last = own.messages[0].clone();
    last.role = "assistant".to_owned();
    own.messages.push(last);
    own.session_id = "another".to_owned();
    bench.agent(AgentEvent::Conversation(Box::new(own))).await;
    bench.agent(ended(2)).await;
    bench.tell("and more").await.unwrap();
    assert_eq!(bench.given(), ["user: the task", "assistant: heard", "assistant: the task"]);
    assert_eq!(bench.conversation().unwrap().session_id, SESSION);
}

#[actix::test]
async fn a_turn_that_is_cancelled_before_the_agent_is_told_needs_no_agent_for_that() {
    let bench = Bench::idle().await;
    let told = tokio::task::spawn_local(bench.task.send(Tell { text: "more".to_owned() }));
    tokio::task::yield_now().await;
    bench.task.send(Cancel { cause: CancelCause::Timeout }).await.unwrap();
    bench.settle().await;
    told.await.unwrap().unwrap().unwrap();
    let expected = [
        r#"task.turnStarted {"turn":2}"#,
        r#"task.turnEnded {"lastText":null,"reason":"aborted","timedOut":false,"turn":2}"#,
    ];
    assert_eq!(bench.take(), expected);
    // It can be told something else, and knows what was asked.
    bench.tell("else").await.unwrap();
    assert_eq!(bench.take(), ["agent: told else"]);
    assert_eq!(bench.given(), ["user: the task", "user: more"]);
    // The agent knows nothing of it: its number goes to the next turn, here too, and each turn stays in the list.
    for (turn, next) in [(2, Some("third")), (3, None)] {
        bench.agent(AgentEvent::TurnStarted { turn }).await;
        bench.agent(ended(turn)).await;
        if let Some(next) = next {
            bench.tell(next).await.unwrap();
        }
    }
    assert_eq!(bench.turns().await, ["1 the task", "2 else", "3 third"]);
}

#[actix::test]
async fn a_turn_that_the_agent_did_not_take_takes_no_number_from_the_next() {
    let bench = Bench::idle().await;
    bench.deaf("follow up");
    bench.follow_up_fails(AgentError::Failed("no".to_owned()));
    let told = tokio::task::spawn_local(bench.task.send(Tell { text: "more".to_owned() }));
    bench.settle().await;
    bench.cancel().await;
    bench.answers_late().await;
    told.await.unwrap().unwrap().unwrap_err();
    bench.follow_up_works();
    for (turn, text) in [(2, "else"), (3, "third")] {
        bench.tell(text).await.unwrap();
        bench.agent(AgentEvent::TurnStarted { turn }).await;
        bench.agent(ended(turn)).await;
    }
    assert_eq!(bench.turns().await, ["1 the task", "2 else", "3 third"]);
}

#[actix::test]
async fn a_task_that_is_let_go_before_its_agent_is_told_is_settled() {
    let bench = Bench::idle().await;
    let told = tokio::task::spawn_local(bench.task.send(Tell { text: "more".to_owned() }));
    tokio::task::yield_now().await;
    bench.release(LetGo::Unwanted).await.unwrap();
    assert_eq!(told.await.unwrap().unwrap().unwrap_err().code, PodErrorCode::CoreUnavailable.into());
    let said = bench.take();
    assert!(said.iter().any(|line| line.contains(r#""reason":"aborted""#)), "{said:?}");
    assert!(!said.iter().any(|line| line.starts_with("agent: told")), "{said:?}");
}

#[actix::test]
async fn a_task_that_is_resumed_shows_what_was_said_before() {
    let bench = Bench::idle().await;
    bench.release(LetGo::Unwanted).await.unwrap();
    let bench = bench.again();
    let mut begin = bench.message();
    begin.resume = true;
    bench.task.send(begin).await.unwrap().unwrap();
    bench.settle().await;
    let entries = bench.entries().await;
    assert!(
        entries[0].starts_with("Note: what was said before") && entries[1] == "Prompt: the task",
        "{entries:?}"
    );
    bench.task.send(Noted("something".to_owned())).await.unwrap();
    assert_eq!(bench.entries().await.last().unwrap(), "Note: something");
}

#[actix::test]
async fn a_conversation_that_cannot_be_read_is_not_gone_on_with() {
    let bench = Bench::idle().await;
    bench.release(LetGo::Unwanted).await.unwrap();
    bench.damage();
    let bench = bench.again();
    let mut begin = bench.message();
    begin.resume = true;
    let refused = bench.task.send(begin).await.unwrap().unwrap_err();
    assert_eq!(refused.code, PodErrorCode::TaskNotResumable.into());
    assert!(refused.message.contains("cannot be read"), "{refused:?}");
}
