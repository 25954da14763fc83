//! Consent to calls of tools.

use std::collections::BTreeMap;

use cofferdam_protocol::session::headless::*;
use serde_json::json;

use super::bench::Bench;
use crate::session::conversation::Place;

/// A turn whose answer calls the shell.
async fn asked() -> Bench {
    let mut bench = Bench::new();
    bench.say("go").await;
    bench.answers_with_calls(&[("c1", "shell", r#"{"z": 1, "command": "ls"}"#)]).await;
    bench.hears(&[r#"req-0: shell {"command":"ls","z":1}"#]).await;
    bench
}

/// The turn goes on with the tool's result to its end.
async fn goes_on(bench: &mut Bench, result: &str) {
    bench.answers("done").await;
    let expected = ["user go", r#"assistant  c1:shell{"command":"ls","z":1}"#, result, "assistant done"];
    assert_eq!(bench.kept().await, expected);
    bench.hears(&["success: completed"]).await;
}

#[actix::test]
async fn an_allowed_call_is_carried_out_and_the_provider_gets_what_it_gave() {
    let mut bench = asked().await;
    bench.verdict("req-0", Verdict::Allow).await;
    let call = bench.call().await;
    assert_eq!(call.arguments, json!({"command": "ls", "z": 1}));
    assert_eq!(call.place, Place::default());
    call.give("a.txt\n");
    bench.hears(&["tool c1: a.txt\n"]).await;
    goes_on(&mut bench, "tool c1 a.txt\n").await;
}

#[actix::test]
async fn a_denied_call_is_an_error_to_the_provider() {
    let mut bench = asked().await;
    bench.verdict("req-0", Verdict::Deny { message: "not now".to_owned() }).await;
    bench.hears(&["tool c1 failed: Tool call denied: not now"]).await;
    goes_on(&mut bench, "tool c1 Tool call denied: not now").await;
}

/// A client that has carried the command out itself.
async fn carried_out(exit_code: Option<i64>) -> Bench {
    let bench = asked().await;
    let executed = HostExecuted { content: "out".to_owned(), exit_code };
    bench.verdict("req-0", Verdict::HostExecuted(executed)).await;
    bench
}

#[actix::test]
async fn what_a_client_has_carried_out_itself_is_not_told_to_it() {
    let mut bench = carried_out(Some(0)).await;
    goes_on(&mut bench, "tool c1 out").await;
}

#[actix::test]
async fn what_a_client_has_carried_out_without_knowing_how_it_ended_is_not_told_to_it_either() {
    let mut bench = carried_out(None).await;
    goes_on(&mut bench, "tool c1 out").await;
}

#[actix::test]
async fn that_what_a_client_has_carried_out_failed_is_told() {
    let mut bench = carried_out(Some(2)).await;
    bench.hears(&["tool c1 failed: out"]).await;
    goes_on(&mut bench, "tool c1 out").await;
}

#[actix::test]
async fn while_consent_is_waited_for_other_answers_and_unreadable_lines_are_dropped_and_the_rest_waits() {
    let mut bench = asked().await;
    bench.verdict("req-1", Verdict::Allow).await;
    bench.send_line(Err(MalformedLine)).await;
    bench.say("later").await;
    bench.send(Input::SwitchModel { model: "other".to_owned() }).await;
    bench.verdict("req-0", Verdict::Deny { message: "no".to_owned() }).await;
    bench.hears(&["tool c1 failed: Tool call denied: no"]).await;
    goes_on(&mut bench, "tool c1 Tool call denied: no").await;
    bench.answers("answer to later").await;
    bench.kept().await;
    bench.hears(&["success: completed", "status model_switched:other"]).await;
}

#[actix::test]
async fn who_says_very_much_instead_of_consenting_does_not_consent() {
    let mut bench = asked().await;
    bench.send_of_length(Ok(Input::Registry), 200 << 20).await;
    bench.hears_nothing();
    bench.send_of_length(Ok(Input::Registry), 200 << 20).await;
    bench.hears(&["tool c1 failed: Interrupted by user"]).await;
    assert_eq!(bench.kept().await.last().unwrap(), "tool c1 Interrupted by user");
    bench.hears(&["success: completed"]).await;
}

#[actix::test]
async fn an_answer_that_was_sent_before_it_was_asked_for_counts() {
    let mut bench = Bench::new();
    bench.say("go").await;
    let verdict = Verdict::Deny { message: "no".to_owned() };
    bench.verdict("req-0", verdict).await;
    bench.answers_with_calls(&[("c1", "shell", r#"{"command":"ls","z":1}"#)]).await;
    bench.hears(&[r#"req-0: shell {"command":"ls","z":1}"#]).await;
    bench.hears(&["tool c1 failed: Tool call denied: no"]).await;
    goes_on(&mut bench, "tool c1 Tool call denied: no").await;
}

#[actix::test]
async fn a_call_that_cannot_be_carried_out_needs_no_consent() {
    let mut bench = Bench::new();
    bench.say("go").await;
    bench.answers_with_calls(&[("c1", "fly", "{}"), ("c2", "shell", "[1]"), ("c3", "shell", "")]).await;
    bench.hears(&["tool c1 failed: there is no tool fly"]).await;
    bench.hears(&["tool c2 failed: the arguments are not a JSON object", "req-0: shell {}"]).await;
}

#[actix::test]
async fn a_call_happens_where_the_persons_shell_is_until_that_is_somewhere_else() {
    let mut bench = Bench::new();
    let env = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
    let context = |cwd: &str| ShellContext { cwd: cwd.to_owned(), env: env.clone(), last_exit_code: 0 };
    for (told, expected) in [(Some("/one"), "/one"), (None, "/one"), (Some("/two"), "/two")] {
        let shell_context = told.map(context);
        let line = UserLine { content: "go".to_owned(), shell_context, ..UserLine::default() };
        bench.send(Input::User(line)).await;
        bench.answers_with_calls(&[("c", "shell", "{}")]).await;
        let request = bench.heard().await;
        bench.verdict(request.split(':').next().unwrap(), Verdict::Allow).await;
        let call = bench.call().await;
        assert_eq!(call.place, Place { cwd: Some(expected.into()), variables: env.clone() });
        call.give("");
        bench.hears(&["tool c: "]).await;
        bench.answers("done").await;
        bench.kept().await;
        bench.hears(&["success: completed"]).await;
    }
}
