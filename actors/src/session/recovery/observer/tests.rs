//! Lines as providers write them, and what is remembered of them.

use serde_json::json;

use super::*;

fn observe(lines: &[Value]) -> RunObserver {
    let mut run = RunObserver::default();
    lines.iter().for_each(|line| run.line(line));
    run
}

fn init(id: &str, resumable: Value) -> Value {
    json!({"type": "system", "subtype": "init", "session_id": id, "session_resumable": resumable})
}

fn success(id: &str) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "result": "completed", "session_id": id})
}

fn failure(with: Value) -> Value {
    let mut line = json!({"type": "result", "subtype": "error", "is_error": true, "session_id": "a"});
    line.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    line
}

fn code_of(line: Value) -> Option<String> {
    observe(&[line]).session_error().map(|error| error.code.clone())
}

#[test]
fn the_newest_line_that_names_a_session_says_which_it_is() {
    let assistant = json!({"type": "assistant", "session_id": "b"});
    let nameless =
        [json!({"type": "stream_event"}), json!({"session_id": ""}), json!({"session_id": 5}), json!(7)];
    let run = observe(&[&[init("a", json!(true)), assistant, success("c")][..], &nameless].concat());
    assert_eq!(run.ending(TurnEnd::Ended), Ending::Reported("c"));
}

#[test]
fn only_a_result_of_success_completes_a_turn() {
    let named = json!({"type": "assistant", "session_id": "a"});
    for (lines, complete) in [
        (vec![], false),
        (vec![named.clone()], false),
        (vec![failure(json!({}))], false),
        (vec![success("a")], true),
        (vec![failure(json!({})), success("a")], true),
        (vec![success("a"), failure(json!({}))], false),
    ] {
        let run = observe(&lines);
        assert_eq!(run.ending(TurnEnd::Ended) == Ending::Reported("a"), complete, "{lines:?}");
        assert_eq!(run.activates(TurnEnd::Ended), complete);
        assert_eq!(run.ending(TurnEnd::Cancelled), Ending::Unfinished, "{lines:?}");
    }
    let unnamed = observe(&[json!({"type": "result", "is_error": false})]);
    assert_eq!(unnamed.ending(TurnEnd::Ended), Ending::Unfinished);
}

#[test]
fn a_provider_that_keeps_no_sessions_has_none_however_the_turn_ends() {
    for lines in [
        vec![init("a", json!(false))],
        vec![success("a"), init("a", json!(false))],
        vec![init("a", json!(false)), success("a")],
        vec![init("a", json!(false)), init("a", json!(true)), success("a")],
        vec![init("a", json!(false)), failure(json!({"error_code": "max_turns"}))],
    ] {
        for end in [TurnEnd::Ended, TurnEnd::Cancelled] {
            assert_eq!(observe(&lines).ending(end), Ending::NotResumable, "{lines:?}");
        }
    }
    // Providers that know nothing of this say nothing, or nonsense.
    for unsaid in [Value::Null, json!("false"), json!(0)] {
        let run = observe(&[init("a", unsaid), success("a")]);
        assert_eq!(run.ending(TurnEnd::Ended), Ending::Reported("a"));
    }
}

#[test]
fn a_turn_that_only_became_too_long_counts_as_complete_if_it_is_stored() {
    let too_long = [
        failure(json!({"errors": ["context_limit: 200000 tokens"]})),
        failure(json!({"result": "context_limit: 200000 tokens"})),
        failure(json!({"error_code": "max_turns", "errors": ["Agent exceeded max turns (20)"]})),
    ];
    for line in too_long {
        let resumable = [init("a", json!(true)), line.clone()];
        assert_eq!(observe(&resumable).ending(TurnEnd::Ended), Ending::Reported("a"), "{line}");
        assert_eq!(observe(&resumable).ending(TurnEnd::Cancelled), Ending::Unfinished);
        assert_eq!(observe(std::slice::from_ref(&line)).ending(TurnEnd::Ended), Ending::Unfinished);
        let mut unstored = line;
        unstored["session_error_phase"] = json!("persist");
        let run = observe(&[init("a", json!(true)), unstored]);
        assert_eq!(run.ending(TurnEnd::Ended), Ending::Unfinished);
    }
    let mentioned = failure(json!({"errors": ["no context_limit: here"]}));
    assert_eq!(observe(&[init("a", json!(true)), mentioned]).ending(TurnEnd::Ended), Ending::Unfinished);
}

#[test]
fn a_session_is_given_up_for_these_errors_and_no_others() {
    for code in Code::ALL {
        let hopeless =
            matches!(code, Code::NotFound | Code::Corrupt | Code::IncompatibleVersion | Code::ScopeMismatch);
        let with = |phase: Value| json!({"session_error_code": code.as_str(), "session_error_phase": phase});
        let expected = hopeless.then(|| code.as_str().to_owned());
        assert_eq!(code_of(failure(with(json!("load")))), expected);
        assert_eq!(code_of(failure(with(Value::Null))), expected, "without a phase it is loading");
        assert_eq!(code_of(failure(with(json!("persist")))), Some(code.as_str().to_owned()));
        assert_eq!(code_of(failure(with(json!("elsewhere")))), None);
    }
    let newer = json!({"session_error_code": "quota", "session_error_phase": "persist"});
    assert_eq!(code_of(failure(newer)), Some("quota".to_owned()));
}

#[test]
fn words_in_a_text_and_fields_of_other_lines_are_no_session_error() {
    let bracketed =
        failure(json!({"errors": ["session recovery failed [not_found]: x"], "result": "[corrupt]"}));
    assert_eq!(code_of(bracketed), None);
    let fields = json!({"session_error_code": "not_found", "session_error_phase": "load"});
    for kind in ["assistant", "system", "user", "stream_event"] {
        let mut line = fields.clone();
        line["type"] = json!(kind);
        assert_eq!(code_of(line), None, "{kind}");
    }
    assert_eq!(code_of(failure(json!({"session_error_phase": "persist"}))), None);
}

#[test]
fn an_error_keeps_the_providers_text_within_bounds_and_says_what_to_do_in_its_phase() {
    let line = |phase: &str, text: String| {
        failure(json!({"session_error_code": "corrupt", "session_error_phase": phase, "errors": [text]}))
    };
    let hint = |phase| observe(&[line(phase, String::new())]).session_error().unwrap().hint.clone().unwrap();
    assert!(hint("load").contains("list"));
    assert!(hint("persist").contains("stored"));
    let run = observe(&[line("load", "session \u{1b}[31m x is corrupt".to_owned())]);
    assert_eq!(run.session_error().unwrap().message, "session [31m x is corrupt");
    let run = observe(&[line("load", "x".repeat(5000))]);
    assert_eq!(run.session_error().unwrap().message.len(), limits::MESSAGE);
}
