//! What is asked, and what each answer means.

use serde_json::json;

use super::*;

fn summary() -> Value {
    json!({
        "session_id": ID,
        "workspace_scope": "/w",
        "created_at_ms": 1,
        "updated_at_ms": 2,
        "model": null,
        "message_count": 0,
        "first_prompt": null,
        "schema_version": null,
        "health": "corrupt",
    })
}

fn success(data: Value) -> String {
    json!({"ok": true, "data": data}).to_string()
}

#[test]
fn a_list_is_asked_for_with_every_key_and_its_page_returned() {
    let data = json!({"action": "list", "sessions": [summary()], "next_cursor": "v1:0:x", "new": 1});
    let core = Core::answering(&success(data));
    let request =
        ListRequest { workspace_scope: "/w".to_owned(), limit: 20, cursor: None, all_workspaces: true };
    let page = core.client().list(request).unwrap();
    let asked = json!({
        "action": "list", "workspace_scope": "/w", "limit": 20, "cursor": null, "all_workspaces": true,
    });
    assert_eq!(core.request(), asked);
    assert_eq!(page.next_cursor.as_deref(), Some("v1:0:x"));
    assert_eq!(serde_json::to_value(&page.sessions).unwrap(), json!([summary()]));
}

#[test]
fn one_session_is_asked_for_by_its_id() {
    let core = Core::answering(&success(json!({"action": "inspect", "session": summary()})));
    assert_eq!(core.client().inspect("/w", ID).unwrap().session_id, ID);
    assert_eq!(core.request(), json!({"action": "inspect", "workspace_scope": "/w", "session_id": ID}));

    let core = Core::answering(&success(json!({"action": "validate", "session": summary()})));
    assert_eq!(core.client().validate("/w", ID).unwrap().session_id, ID);
    assert_eq!(core.request(), json!({"action": "validate", "workspace_scope": "/w", "session_id": ID}));
}

#[test]
fn a_plan_is_drained_to_its_last_page() {
    // Three pages; the last has no cursor at all.
    let core = Core::new(
        r#"take
        page() { answer '{"ok":true,"data":{"action":"prepare_clear_all","session_ids":["a'$1'"],"protected_session_ids":["p'$1'"]'$2'}}'; }
        case $taken in
            0) page 1 ',"next_cursor":"a1"';;
            1) page 2 ',"next_cursor":"a2"';;
            2) page 3;;
        esac"#,
    );
    let plan = core.client().prepare_clear_all("/w", &protected(1)).unwrap();
    assert_eq!(plan.session_ids, ["a1", "a2", "a3"]);
    assert_eq!(plan.protected_session_ids, ["p1", "p2", "p3"]);
    let asked = |cursor: Value| {
        json!({
            "action": "prepare_clear_all", "workspace_scope": "/w", "protected_session_ids": ids(1),
            "limit": 4096, "cursor": cursor,
        })
    };
    let requests: Vec<Value> =
        core.requests().iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    assert_eq!(requests, [asked(Value::Null), asked(json!("a1")), asked(json!("a2"))]);
}

#[test]
fn a_plan_that_does_not_advance_is_not_drained_for_ever() {
    for second in ["b", "a", "B"] {
        let core = Core::new(&format!(
            r#"take
            [ $taken = 0 ] && next=b || next={second}
            answer '{{"ok":true,"data":{{"action":"prepare_clear_all","session_ids":[],"protected_session_ids":[],"next_cursor":"'$next'"}}}}'"#,
        ));
        let why = transport(core.client().prepare_clear_all("/w", &[]));
        assert!(why.contains("non-advancing"), "{why}");
        assert_eq!(core.requests().len(), 2);
    }
}

#[test]
fn an_error_of_the_program_is_passed_on_unchanged_whatever_its_exit_status() {
    for (status, hint) in [(1, r#","hint":"look again""#), (0, ""), (1, r#","hint":null"#)] {
        let error = format!(r#"{{"code":"not_found","message":"gone","recoverable":true{hint}}}"#);
        let core = Core::new(&format!("take; answer '{{\"ok\":false,\"error\":{error}}}'; exit {status}"));
        let error = core.client().validate("/w", ID).unwrap_err();
        assert_eq!((error.code.as_str(), error.message.as_str()), ("not_found", "gone"));
        assert_eq!(error.hint.as_deref(), hint.contains("look").then_some("look again"));
    }
}

#[test]
fn the_exit_status_of_a_program_that_answers_does_not_count() {
    let answer = success(json!({"action": "inspect", "session": summary()}));
    let core = Core::new(&format!("take; answer '{answer}'; exit 7"));
    assert!(core.client().inspect("/w", ID).is_ok());
}

#[test]
fn an_answer_that_is_none_is_a_transport_error_that_says_what_is_wrong() {
    let data = |data: Value| success(data);
    let mut unhealthy = summary();
    unhealthy["health"] = "poorly".into();
    let mut lacking = summary();
    lacking.as_object_mut().unwrap().remove("model");
    for (answer, why) in [
        (String::new(), "invalid JSON session response"),
        ("{".to_owned(), "invalid JSON session response"),
        ("hello".to_owned(), "invalid JSON session response"),
        (data(json!({"action": "inspect", "session": summary()})) + " {}", "invalid JSON session response"),
        ("5".to_owned(), "invalid session response data"),
        (json!({"data": {}}).to_string(), "invalid session response data"),
        (json!({"ok": true}).to_string(), "omitted data"),
        (json!({"ok": true, "data": null}).to_string(), "omitted data"),
        (json!({"ok": false}).to_string(), "failed without an error"),
        (json!({"ok": false, "error": {"code": "?"}}).to_string(), "invalid session response data"),
        (data(json!({"session": summary()})), "invalid session response data"),
        (data(json!({"action": "inspect"})), "invalid session response data"),
        (data(json!({"action": "inspect", "session": unhealthy})), "invalid session response data"),
        (data(json!({"action": "validate", "session": summary()})), "wrong session action"),
        (data(json!({"action": "explain", "session": summary()})), "wrong session action"),
    ] {
        let said = transport(Core::answering(&answer).client().inspect("/w", ID));
        assert!(said.contains(why), "{answer}: {said}");
    }
    // A field that may be null may also be missing.
    let lenient = Core::answering(&data(json!({"action": "inspect", "session": lacking})));
    assert_eq!(lenient.client().inspect("/w", ID).unwrap().model, None);
}

#[test]
fn what_the_program_says_to_people_is_in_the_error_of_a_missing_answer() {
    let core = Core::new("take; printf '\\n no home directory\\033 \\n' >&2; exit 2");
    let why = transport(core.client().inspect("/w", ID));
    assert!(why.ends_with("stderr: no home directory"), "{why}");
}

#[test]
fn the_program_is_the_named_one_else_the_one_beside_this() {
    let dir = tempfile::tempdir().unwrap();
    let beside = || Some(dir.path().join("cofferdam"));
    assert_eq!(found(None, None), None);
    assert_eq!(found(None, beside()), None);
    std::fs::create_dir(dir.path().join("cosh-core")).unwrap();
    assert_eq!(found(None, beside()), None);
    std::fs::remove_dir(dir.path().join("cosh-core")).unwrap();
    std::fs::write(dir.path().join("cosh-core"), "").unwrap();
    assert_eq!(found(None, beside()), Some(dir.path().join("cosh-core")));
    assert_eq!(found(Some("/opt/core".into()), beside()), Some("/opt/core".into()));
}
