//! Answers, one after the other, until one calls no tool.

use cofferdam_protocol::session::headless::Verdict;
use serde_json::json;

use super::bench::Bench;

/// Lets an answer call the tool, and the tool give something.
async fn round(bench: &mut Bench) {
    bench.answers_with_calls(&[("c", "shell", "{}")]).await;
    let request = bench.heard().await;
    bench.verdict(request.split(':').next().unwrap(), Verdict::Allow).await;
    bench.call().await.give("out");
    bench.hears(&["tool c: out"]).await;
}

#[actix::test]
async fn twenty_answers_of_a_turn_may_call_tools() {
    let mut bench = Bench::new();
    bench.say("go").await;
    for _ in 0..20 {
        round(&mut bench).await;
    }
    bench.answers("done").await;
    assert_eq!(bench.kept().await.len(), 1 + 20 * 2 + 1);
    bench.hears(&["success: completed"]).await;
    bench.say("again").await;
    for _ in 0..20 {
        round(&mut bench).await;
    }
    bench.answers_with_calls(&[("c", "shell", "{}")]).await;
    // The call that is not carried out is not kept either.
    assert_eq!(bench.kept().await.len(), 2 * (1 + 20 * 2) + 1);
    bench.hears(&["error: Agent exceeded max turns (20)"]).await;
}

#[actix::test]
async fn an_answer_without_text_has_no_assistant_line() {
    let mut bench = Bench::new();
    bench.say("go").await;
    let question = bench.question().await;
    question.piece(json!({"type": "message_start"})).await;
    question.piece(json!({"type": "message_stop"})).await;
    bench.hears(&["start", "stop"]).await;
    assert_eq!(bench.kept().await, ["user go"]);
    bench.hears(&["success: completed"]).await;
}

#[actix::test]
async fn an_answer_out_of_order_or_without_end_is_the_providers_error() {
    let mut bench = Bench::new();
    bench.say("go").await;
    let question = bench.question().await;
    question.piece(json!({"type": "message_start"})).await;
    question.more("x").await;
    bench.hears(&["start"]).await;
    bench.kept().await;
    bench.hears(&["error: the provider's answer is out of order"]).await;
    bench.say("again").await;
    let question = bench.question().await;
    question.begin("x").await;
    drop(question);
    bench.hears(&["start", "text block 0", "text x"]).await;
    bench.kept().await;
    bench.hears(&["error: the provider's answer has no end"]).await;
}
