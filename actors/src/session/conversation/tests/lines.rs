//! Lines between turns.

use cofferdam_protocol::session::headless::{Input, MalformedLine, UserLine};

use super::bench::{Bench, ID};
use crate::session::conversation::Ended;

#[actix::test]
async fn who_asks_who_is_here_is_told_each_time() {
    let mut bench = Bench::new();
    for model in ["m", "other"] {
        bench.send(Input::Initialize { request_id: "r".to_owned() }).await;
        bench.hears(&["initialized", &format!("init {ID} {model}")]).await;
        bench.send(Input::SwitchModel { model: "other".to_owned() }).await;
        bench.hears(&["status model_switched:other"]).await;
    }
    bench.send(Input::ConfigOverride).await;
    bench.send(Input::Registry).await;
    bench.send(Input::ReloadConfig).await;
    bench.hears(&["status config_override_applied", "status config_reloaded"]).await;
    bench.say("go").await;
    let question = bench.question().await;
    assert_eq!(question.request.model, "other");
    question.text("done").await;
    assert_eq!(bench.write().await.envelope.model, "other");
}

#[actix::test]
async fn a_message_for_another_conversation_is_no_turn() {
    let mut bench = Bench::new();
    let of = |id: &str| Input::User(UserLine { session_id: Some(id.to_owned()), ..UserLine::default() });
    bench.send(of("another")).await;
    let conflict = format!("error: session identity conflict: initialized {ID}, received another");
    bench.hears(&[&conflict]).await;
    bench.asks_nothing();
    for same in ["", "default", ID] {
        bench.send(of(same)).await;
        bench.answers("ok").await;
        bench.kept().await;
        bench.hears(&["success: completed"]).await;
    }
}

#[actix::test]
async fn a_line_that_cannot_be_read_ends_the_program_when_it_is_its_turn() {
    let mut bench = Bench::new();
    bench.say("a").await;
    let question = bench.question().await;
    bench.send_line(Err(MalformedLine)).await;
    bench.say("b").await;
    question.text("A").await;
    while bench.heard().await != "assistant A" {}
    bench.kept().await;
    bench.hears(&["success: completed"]).await;
    bench.hears(&["error [InvalidJsonlInput]: failed to parse stdin line as JSON"]).await;
    assert_eq!(bench.ended().await, Ended::Malformed);
}
