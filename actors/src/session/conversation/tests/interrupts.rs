//! When a client interrupts, and what else can come then.

use cofferdam_protocol::session::headless::{Input, MalformedLine, Verdict};

use super::bench::Bench;
use crate::session::conversation::Ended;

const CANCELLED: &str = "error: provider request cancelled";

#[actix::test]
async fn an_interrupt_ends_an_answer_midway_and_what_the_user_said_is_kept() {
    let mut bench = Bench::new();
    bench.say("count").await;
    let question = bench.question().await;
    question.begin("one ").await;
    bench.hears(&["start", "text block 0", "text one "]).await;
    bench.send(Input::Interrupt).await;
    question.given_up().await;
    assert_eq!(bench.kept().await, ["user count"]);
    bench.hears(&[CANCELLED]).await;
    bench.say("again").await;
    bench.answers("one two").await;
    assert_eq!(bench.kept().await, ["user count", "user again", "assistant one two"]);
    bench.hears(&["success: completed"]).await;
}

#[actix::test]
async fn an_interrupt_ends_an_answer_that_has_not_begun() {
    let mut bench = Bench::new();
    bench.say("count").await;
    let question = bench.question().await;
    bench.send(Input::Interrupt).await;
    question.given_up().await;
    assert_eq!(bench.kept().await, ["user count"]);
    bench.hears(&[CANCELLED]).await;
}

#[actix::test]
async fn an_interrupt_is_noticed_while_nobody_reads_what_is_said() {
    let mut bench = Bench::new();
    bench.say("count").await;
    let question = bench.question().await;
    bench.room(false);
    question.begin("one").await;
    bench.send(Input::Interrupt).await;
    question.given_up().await;
    bench.hears_nothing();
    assert_eq!(bench.kept().await, ["user count"]);
    bench.hears(&[CANCELLED]).await;
}

#[actix::test]
async fn an_interrupt_is_for_the_turn_that_runs_even_if_messages_wait_before_it() {
    let mut bench = Bench::new();
    bench.say("a").await;
    let question = bench.question().await;
    bench.say("b").await;
    bench.send(Input::Interrupt).await;
    question.given_up().await;
    assert_eq!(bench.kept().await, ["user a"]);
    bench.hears(&[CANCELLED]).await;
    bench.answers("answer to b").await;
    assert_eq!(bench.kept().await.len(), 3);
    bench.hears(&["success: completed"]).await;
}

#[actix::test]
async fn an_interrupt_between_turns_or_while_one_is_kept_is_of_no_effect() {
    let mut bench = Bench::new();
    bench.send(Input::Interrupt).await;
    bench.say("a").await;
    bench.answers("A").await;
    let write = bench.write().await;
    bench.send(Input::Interrupt).await;
    write.keep();
    bench.hears(&["success: completed"]).await;
    bench.say("b").await;
    bench.answers("B").await;
    bench.kept().await;
    bench.hears(&["success: completed"]).await;
}

/// A turn that waits for consent to the first of two calls.
async fn asked() -> Bench {
    let mut bench = Bench::new();
    bench.say("go").await;
    let calls = [("c1", "shell", r#"{"command": "one"}"#), ("c2", "shell", r#"{"command": "two"}"#)];
    bench.answers_with_calls(&calls).await;
    bench.hears(&[r#"req-0: shell {"command":"one"}"#]).await;
    bench
}

/// The turn was interrupted: both calls have a result, and nobody was asked again.
async fn is_interrupted(bench: &mut Bench) {
    bench.hears(&["tool c1 failed: Interrupted by user", "tool c2 failed: Interrupted by user"]).await;
    let calls = r#"assistant  c1:shell{"command":"one"} c2:shell{"command":"two"}"#;
    let result = |id: &str| format!("tool {id} Interrupted by user");
    assert_eq!(bench.kept().await, ["user go", calls, &result("c1"), &result("c2")]);
    bench.hears(&["success: completed"]).await;
    bench.asks_nothing();
}

#[actix::test]
async fn an_interrupt_instead_of_consent_ends_the_turn_well_and_no_call_is_left_without_a_result() {
    let mut bench = asked().await;
    bench.send(Input::Interrupt).await;
    is_interrupted(&mut bench).await;
}

#[actix::test]
async fn an_interrupt_ends_the_tool_that_runs() {
    let mut bench = asked().await;
    bench.verdict("req-0", Verdict::Allow).await;
    let mut call = bench.call().await;
    bench.send(Input::Interrupt).await;
    call.given_up().await;
    is_interrupted(&mut bench).await;
}

#[actix::test]
async fn the_end_of_input_instead_of_consent_is_an_interrupt() {
    let mut bench = asked().await;
    bench.end();
    is_interrupted(&mut bench).await;
    assert_eq!(bench.ended().await, Ended::Done);
}

#[actix::test]
async fn a_shutdown_instead_of_consent_is_an_interrupt_and_the_turn_is_kept_first() {
    let mut bench = asked().await;
    bench.send(Input::Shutdown).await;
    is_interrupted(&mut bench).await;
    assert_eq!(bench.ended().await, Ended::Done);
}

#[actix::test]
async fn the_end_of_input_lets_a_turn_end_first() {
    let mut bench = Bench::new();
    bench.say("count").await;
    let question = bench.question().await;
    question.begin("one ").await;
    bench.hears(&["start", "text block 0", "text one "]).await;
    bench.end();
    question.more("two").await;
    question.finish().await;
    bench.hears(&["text two", "end 0", "stop", "assistant one two"]).await;
    assert_eq!(bench.kept().await, ["user count", "assistant one two"]);
    bench.hears(&["success: completed"]).await;
    assert_eq!(bench.ended().await, Ended::Done);
}

#[actix::test]
async fn the_end_of_input_lets_a_tool_end_first() {
    let mut bench = asked().await;
    bench.verdict("req-0", Verdict::Allow).await;
    let call = bench.call().await;
    bench.verdict("req-1", Verdict::Deny { message: "no".to_owned() }).await;
    bench.end();
    call.give("out");
    bench.hears(&["tool c1: out", r#"req-1: shell {"command":"two"}"#]).await;
    bench.hears(&["tool c2 failed: Tool call denied: no"]).await;
    bench.answers("done").await;
    bench.kept().await;
    bench.hears(&["success: completed"]).await;
    assert_eq!(bench.ended().await, Ended::Done);
}

#[actix::test]
async fn a_shutdown_during_a_turn_waits_for_its_end_and_nothing_after_it_is_read() {
    let mut bench = Bench::new();
    bench.say("a").await;
    let question = bench.question().await;
    bench.say("b").await;
    bench.send(Input::Shutdown).await;
    bench.say("c").await;
    bench.send_line(Err(MalformedLine)).await;
    question.text("A").await;
    while bench.heard().await != "assistant A" {}
    bench.kept().await;
    bench.hears(&["success: completed"]).await;
    bench.answers("B").await;
    assert_eq!(bench.kept().await, ["user a", "assistant A", "user b", "assistant B"]);
    bench.hears(&["success: completed"]).await;
    assert_eq!(bench.ended().await, Ended::Done);
}
