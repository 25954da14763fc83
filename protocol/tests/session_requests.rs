//! Requests, cursors and responses of the management protocol: what is taken, what is refused, and within which bounds.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use cofferdam_protocol::session::*;
use proptest::prelude::*;

const ID: &str = "00000000-0000-4000-8000-000000000001";

/// The text of the error.
fn refused(request: impl AsRef<[u8]>) -> String {
    let shown = String::from_utf8_lossy(request.as_ref()).into_owned();
    match SessionRequest::parse(request.as_ref()) {
        Ok(request) => panic!("{shown} was taken for {request:?}"),
        Err(unreadable) => {
            let error = SessionError::from(&unreadable);
            assert_eq!(error.code, SessionErrorCode::InvalidRequest);
            let detail = error.message.strip_prefix("invalid session management request: ").unwrap();
            detail.strip_prefix("invalid session-control request: ").unwrap().to_owned()
        }
    }
}

fn list(request: &str) -> ListRequest {
    match SessionRequest::parse(request.as_bytes()).unwrap() {
        SessionRequest::List(list) => list,
        other => panic!("{other:?}"),
    }
}

/// A list request with more keys.
fn list_with(keys: &str) -> String {
    format!(r#"{{"action":"list","workspace_scope":"/w"{keys}}}"#)
}

#[test]
fn what_is_not_one_json_object_is_refused() {
    for request in ["", " ", "{", "null", "5", "\"list\"", "[]", r#"["list","/w"]"#, "\0"] {
        refused(request);
    }
    refused([0xff, 0xfe]);
    refused(list_with(r#","cursor":""#) + "\u{7f}");
    refused([list_with("").as_bytes(), b" {}"].concat());
    refused([list_with("").as_bytes(), b"\0"].concat());
    refused([b"\xef\xbb\xbf", list_with("").as_bytes()].concat());
    assert_eq!(list(&format!("\r\n\t {} \n\n", list_with(""))).workspace_scope, "/w");
}

#[test]
fn invalid_utf8_is_refused_also_in_what_is_ignored() {
    let request = [br#"{"action":"list","workspace_scope":"/w","foo":""#, &b"\xff"[..], br#""}"#].concat();
    assert_eq!(refused(request), "not UTF-8");
}

#[test]
fn a_request_may_have_a_mebibyte_and_not_a_byte_more() {
    let mut request = list_with("").into_bytes();
    request.resize(limits::REQUEST, b' ');
    assert!(SessionRequest::parse(&request).is_ok());
    request.push(b' ');
    assert_eq!(refused(request), "longer than 1048576 bytes");
}

#[test]
fn keys_may_stand_in_any_order_and_unknown_ones_are_ignored() {
    let request =
        format!(r#"{{"foo":[{{}}],"session_id":"{ID}","foo":1,"workspace_scope":"/w","action":"inspect"}}"#);
    let expected = InspectRequest { workspace_scope: "/w".into(), session_id: ID.into() };
    assert_eq!(SessionRequest::parse(request.as_bytes()), Ok(SessionRequest::Inspect(expected)));
}

#[test]
fn a_key_that_comes_twice_is_refused() {
    assert!(refused(list_with(r#","workspace_scope":"/w""#)).contains("duplicate field `workspace_scope`"));
    assert!(refused(list_with(r#","action":"list""#)).contains("duplicate field `action`"));
    assert!(refused(list_with(r#","limit":1,"limit":1"#)).contains("duplicate field `limit`"));
}

#[test]
fn actions_are_spelled_exactly() {
    for action in ["List", "LIST", "list ", "prepareClearAll", "load", "", "0"] {
        refused(format!(r#"{{"action":"{action}","workspace_scope":"/w"}}"#));
    }
    for request in [r#"{"Action":"list","workspace_scope":"/w"}"#, r#"{"workspace_scope":"/w"}"#] {
        assert_eq!(refused(request), "missing field `action`");
    }
    for request in [r#"{"action":null,"workspace_scope":"/w"}"#, r#"{"action":0,"workspace_scope":"/w"}"#] {
        refused(request);
    }
}

#[test]
fn every_mandatory_key_is_mandatory_and_has_its_type() {
    let keys = |action| match action {
        "list" => &["workspace_scope"][..],
        "inspect" | "validate" => &["workspace_scope", "session_id"],
        "prepare_clear_all" => &["workspace_scope", "protected_session_ids"],
        _ => &["workspace_scope", "session_ids", "protected_session_ids"],
    };
    for action in ["list", "inspect", "validate", "prepare_clear_all", "clear"] {
        let whole: serde_json::Map<_, _> = keys(action)
            .iter()
            .map(|key| ((*key).to_owned(), if key.ends_with('s') { vec![ID].into() } else { ID.into() }))
            .chain([("action".to_owned(), action.into())])
            .collect();
        let text = |map: &serde_json::Map<_, _>| serde_json::to_string(map).unwrap();
        SessionRequest::parse(text(&whole).as_bytes()).unwrap();
        for key in keys(action) {
            let mut lacking = whole.clone();
            lacking.remove(*key);
            assert_eq!(refused(text(&lacking)), format!("missing field `{key}`"));
            for wrong in [serde_json::Value::Null, 1.into(), serde_json::json!({}), serde_json::json!([1])] {
                let mut other = whole.clone();
                other.insert((*key).to_owned(), wrong);
                refused(text(&other));
            }
        }
    }
}

#[test]
fn a_page_of_a_list_has_20_rows_if_not_said_and_1_to_100_if_said() {
    assert_eq!(list(&list_with("")).rows(), 20);
    for (limit, rows) in [("0", 1), ("1", 1), ("100", 100), ("101", 100), ("1000000000", 100)] {
        assert_eq!(list(&list_with(&format!(r#","limit":{limit}"#))).rows(), rows);
    }
    for limit in ["null", "-1", "\"20\"", "2.0", "1e2", "true", "[]", "18446744073709551616"] {
        refused(list_with(&format!(r#","limit":{limit}"#)));
    }
    for (key, value) in [("cursor", "5"), ("all_workspaces", "null"), ("all_workspaces", "1")] {
        refused(list_with(&format!(r#","{key}":{value}"#)));
    }
    let given = list(&list_with(r#","cursor":null"#));
    assert_eq!((given.cursor, given.all_workspaces), (None, false));
}

#[test]
fn a_page_of_a_plan_has_1_to_4096_ids_or_is_the_whole_plan() {
    let ids = |limit: &str| {
        let request = format!(
            r#"{{"action":"prepare_clear_all","workspace_scope":"/w","protected_session_ids":[]{limit}}}"#
        );
        match SessionRequest::parse(request.as_bytes()).unwrap() {
            SessionRequest::PrepareClearAll(plan) => plan.ids(),
            other => panic!("{other:?}"),
        }
    };
    for (limit, expected) in [
        ("", None),
        (r#","limit":null"#, None),
        (r#","limit":0"#, Some(1)),
        (r#","limit":4096"#, Some(4096)),
        (r#","limit":999999"#, Some(4096)),
    ] {
        assert_eq!(ids(limit), expected, "{limit}");
    }
}

#[test]
fn lists_of_ids_hold_128_at_most() {
    let ids = |count| vec![ID.to_owned(); count];
    let clear = |session_ids, protected_session_ids| ClearRequest {
        workspace_scope: String::new(),
        session_ids,
        protected_session_ids,
    };
    assert_eq!(clear(ids(128), ids(128)).within_bounds(), Ok(()));
    let out = |field| Err(OutOfBounds { field, count: 129 });
    assert_eq!(clear(ids(129), ids(129)).within_bounds(), out("session_ids"));
    assert_eq!(clear(ids(0), ids(129)).within_bounds(), out("protected_session_ids"));
    let plan = |count| PrepareClearAllRequest {
        workspace_scope: String::new(),
        protected_session_ids: ids(count),
        limit: None,
        cursor: None,
    };
    assert_eq!(plan(128).within_bounds(), Ok(()));
    assert_eq!(plan(129).within_bounds(), out("protected_session_ids"));
}

#[test]
fn an_id_is_a_lowercase_hyphenated_uuid_of_any_version() {
    for id in [ID, "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"] {
        assert_eq!(SessionId::new(id).unwrap().as_str(), id);
    }
    for id in [
        "",
        " ",
        "../x",
        "2D711642-b726-4b04-8d2a-8a0470f4ed24",
        "2d711642b7264b048d2a8a0470f4ed24",
        "{2d711642-b726-4b04-8d2a-8a0470f4ed24}",
        "urn:uuid:2d711642-b726-4b04-8d2a-8a0470f4ed24",
        " 2d711642-b726-4b04-8d2a-8a0470f4ed24",
        "2d711642-b726-4b04-8d2a-8a0470f4ed24\n",
        "2d711642-b726-4b04-8d2a8-a0470f4ed24",
        "gd711642-b726-4b04-8d2a-8a0470f4ed24",
        "2d711642-b726-4b04-8d2a-8a0470f4edé",
    ] {
        assert_eq!(SessionId::new(id), Err(InvalidSessionId(id.to_owned())));
    }
}

#[test]
fn a_cursor_that_was_not_printed_here_is_refused() {
    for cursor in [
        "nope".to_owned(),
        String::new(),
        format!("v2:00:{ID}"),
        format!("v1:xyz:{ID}"),
        "v1:ff:0000000A-0000-4000-8000-000000000001".to_owned(),
        "v1:ff".to_owned(),
        format!("v1:ff:{ID}:x"),
        format!("v1::{ID}"),
        format!(" v1:ff:{ID}"),
        format!("v1:ff:{ID} "),
        format!("v1:+ff:{ID}"),
        format!("v1:-1:{ID}"),
        format!("v1:10000000000000000:{ID}"),
        format!("V1:ff:{ID}"),
        format!("v3:ff:{ID}"),
        format!("v2:ff::{ID}"),
        format!("v2:ff:8308a520251fab9534273fa:{ID}"),
        format!("v2:ff:8308A520251FAB9534273FAA:{ID}"),
        format!("v2:ff:../../../../../../../../:{ID}"),
        format!("v2:ff:8308a520251fab9534273faa:{ID}:x"),
    ] {
        assert_eq!(ListCursor::parse(&cursor), Err(InvalidCursor(cursor)));
    }
}

#[test]
fn the_time_of_a_cursor_has_hexadecimal_digits_of_any_case_and_number() {
    for (digits, modified_ms) in
        [("0", 0), ("fF", 255), ("000000000000000000FF", 255), ("f".repeat(16).as_str(), u64::MAX)]
    {
        let id = SessionId::new(ID).unwrap();
        let cursor = ListCursor { modified_ms, scope: None, id };
        assert_eq!(ListCursor::parse(&format!("v1:{digits}:{ID}")), Ok(cursor));
    }
}

#[test]
fn a_response_has_a_mebibyte_at_most_and_is_an_error_if_it_would_have_more() {
    let of = |length: usize| {
        let data = SessionData::Clear { deleted: vec!["x".repeat(length)], skipped: Vec::new() };
        SessionResponse::of(Ok(data)).line()
    };
    let frame = of(0).0.len();
    let (line, succeeded) = of(limits::RESPONSE - frame);
    assert_eq!((line.len(), succeeded), (limits::RESPONSE, true));
    let (line, succeeded) = of(limits::RESPONSE - frame + 1);
    assert!(!succeeded);
    let response: SessionResponse = serde_json::from_slice(&line).unwrap();
    let error = response.error.unwrap();
    assert_eq!((response.ok, error.code), (false, SessionErrorCode::InvalidRequest));
    assert!(error.message.contains("exceeded the protocol byte budget"), "{}", error.message);
}

#[test]
fn what_was_sent_comes_back_bounded_and_without_control_characters() {
    let id = format!("7{}", "🦀".repeat(1500));
    let error = SessionError::new(SessionErrorCode::InvalidId, &InvalidSessionId(id.clone()).to_string());
    let skipped = Skipped::new(&id, error.clone());
    assert!(skipped.session_id.len() <= limits::SKIPPED_ID && skipped.session_id.ends_with('…'));
    assert!(error.message.len() <= limits::MESSAGE && error.message.ends_with('…'));
    let all = vec![skipped; limits::IDS];
    let (line, succeeded) =
        SessionResponse::of(Ok(SessionData::Clear { deleted: Vec::new(), skipped: all })).line();
    assert!(succeeded && line.len() < limits::RESPONSE);

    assert_eq!(Skipped::new("BAD\u{1b}[31m", error).session_id, "BAD[31m");
}

fn session_id() -> impl Strategy<Value = SessionId> {
    "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}".prop_map(|id| SessionId::new(id).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_a_request_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(unreadable) = SessionRequest::parse(&bytes) {
            let (line, _) = SessionResponse::of(Err((&unreadable).into())).line();
            prop_assert!(line.ends_with(b"\n") && !line[..line.len() - 1].contains(&b'\n'));
        }
    }

    #[test]
    fn a_request_is_read_as_it_was_printed(
        workspace_scope in any::<String>(),
        ids in proptest::collection::vec(any::<String>(), 0..5),
        limit in any::<Option<usize>>(),
        cursor in any::<Option<String>>(),
        all_workspaces in any::<bool>(),
    ) {
        let session_id = workspace_scope.clone();
        for request in [
            SessionRequest::List(ListRequest {
                workspace_scope: workspace_scope.clone(),
                limit: limit.unwrap_or(20),
                cursor: cursor.clone(),
                all_workspaces,
            }),
            SessionRequest::Inspect(InspectRequest {
                workspace_scope: workspace_scope.clone(),
                session_id: session_id.clone(),
            }),
            SessionRequest::Validate(ValidateRequest {
                workspace_scope: workspace_scope.clone(),
                session_id,
            }),
            SessionRequest::PrepareClearAll(PrepareClearAllRequest {
                workspace_scope: workspace_scope.clone(),
                protected_session_ids: ids.clone(),
                limit,
                cursor,
            }),
            SessionRequest::Clear(ClearRequest {
                workspace_scope,
                session_ids: ids.clone(),
                protected_session_ids: ids,
            }),
        ] {
            prop_assert_eq!(SessionRequest::parse(&serde_json::to_vec(&request).unwrap()), Ok(request));
        }
    }

    #[test]
    fn a_cursor_is_read_as_it_was_printed(
        modified_ms in any::<u64>(),
        scope in proptest::option::of("[0-9a-f]{24}"),
        id in session_id(),
    ) {
        let cursor = ListCursor { modified_ms, scope, id };
        prop_assert_eq!(ListCursor::parse(&cursor.to_string()), Ok(cursor));
    }

    #[test]
    fn any_text_is_a_cursor_or_refused(
        text in any::<String>(),
        close in "v[12]:[0-9a-fA-F+]{0,18}(:[0-9a-f]{23,25})?:[0-9a-f-]{35,37}",
    ) {
        for text in [text, close] {
            if let Ok(cursor) = ListCursor::parse(&text) {
                prop_assert_eq!(ListCursor::parse(&cursor.to_string()), Ok(cursor));
            }
        }
    }
}
