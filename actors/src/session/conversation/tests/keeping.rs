//! What is kept of turns, and what happens if it cannot be.

use super::bench::{Bench, messages};

const CONFLICT: &str = "session persistence failed [conflict]: somebody else was faster";

#[actix::test]
async fn a_turn_that_cannot_be_kept_is_kept_with_the_next_one() {
    let mut bench = Bench::new();
    bench.say("while locked").await;
    bench.answers("one").await;
    let write = bench.write().await;
    assert_eq!(write.envelope.generation, 0);
    write.refuse();
    bench.hears(&[&format!("error [conflict]: {CONFLICT}")]).await;
    bench.say("after").await;
    bench.answers("two").await;
    let write = bench.write().await;
    assert_eq!(write.envelope.generation, 0);
    let expected = ["user while locked", "assistant one", "user after", "assistant two"];
    assert_eq!(messages(&write.envelope.messages), expected);
    write.keep();
    bench.hears(&["success: completed"]).await;
    bench.say("more").await;
    bench.answers("three").await;
    assert_eq!(bench.write().await.envelope.generation, 1);
}

#[actix::test]
async fn a_turn_that_fails_is_kept_without_what_the_provider_had_said_of_it() {
    let mut bench = Bench::new();
    bench.say("go").await;
    let question = bench.question().await;
    question.begin("half").await;
    question.fail("out of tokens").await;
    bench.hears(&["start", "text block 0", "text half"]).await;
    assert_eq!(bench.kept().await, ["user go"]);
    bench.hears(&["error: out of tokens"]).await;
}

#[actix::test]
async fn a_turn_that_fails_and_cannot_be_kept_says_both() {
    let mut bench = Bench::new();
    bench.say("go").await;
    bench.question().await.fail("out of tokens").await;
    bench.write().await.refuse();
    bench.hears(&[&format!("error [conflict]: out of tokens; {CONFLICT}")]).await;
}

#[actix::test]
async fn what_the_provider_sees_and_what_is_kept_has_no_secrets_but_the_client_hears_them() {
    let secret = "sk-A1b2C3d4A1b2C3d4A1b2C3d4A1b2C3d4";
    let mut bench = Bench::new();
    bench.say(&format!("use api_key={secret} please")).await;
    let question = bench.question().await;
    assert_eq!(messages(&question.request.messages), ["user use api_key=<redacted> please"]);
    question.text(&format!("api_key={secret}")).await;
    bench.hears(&["start", "text block 0"]).await;
    assert_eq!(bench.heard().await, format!("text api_key={secret}"));
    bench.hears(&["end 0", "stop"]).await;
    assert_eq!(bench.heard().await, format!("assistant api_key={secret}"));
    assert_eq!(bench.kept().await, ["user use api_key=<redacted> please", "assistant api_key=<redacted>"]);
    bench.hears(&["success: completed"]).await;
    bench.say("go on").await;
    let call = format!(r#"{{"password": "hunter2-{secret}"}}"#);
    bench.answers_with_calls(&[("c", "shell", &call)]).await;
    assert!(bench.heard().await.contains(secret));
    bench.end();
    bench.hears(&["tool c failed: Interrupted by user"]).await;
    assert!(!bench.kept().await.concat().contains(secret));
}
