//! A session's file: recorded ones, damaged ones, and in which order damage, schema and workspace are looked at.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "reads the recorded files")]

use std::path::Path;

use cofferdam_protocol::session::*;
use proptest::prelude::*;
use serde_json::{Value, json};

const ID: &str = "00000000-0000-4000-8000-000000000001";

fn id() -> SessionId {
    SessionId::new(ID).unwrap()
}

/// A recorded file.
fn recorded(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/sessions").join(name)).unwrap()
}

/// A healthy file, as a value that can be spoilt.
fn healthy() -> Value {
    json!({
        "schema_version": 1,
        "session_id": ID,
        "workspace_scope": "/w",
        "created_at_ms": 1,
        "updated_at_ms": 2,
        "model": "m",
        "generation": 1,
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": [{"type": "text", "text": "hi"}], "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
            ]},
            {"role": "tool", "content": "a.txt", "tool_call_id": "c"},
        ],
        "compaction_revision": 0,
    })
}

fn read(file: impl AsRef<[u8]>) -> Result<Envelope, Defect> {
    Envelope::read(file.as_ref(), &id(), "/w", 5)
}

/// A healthy file after a change.
fn changed(change: impl FnOnce(&mut Value)) -> Result<Envelope, Defect> {
    let mut file = healthy();
    change(&mut file);
    read(file.to_string())
}

/// What is wrong with a file that cannot be used.
#[track_caller]
fn corrupt(read: Result<Envelope, Defect>) -> String {
    match read {
        Err(Defect::Corrupt(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_recorded_file_is_judged_as_expected() {
    let expected: Value = serde_json::from_slice(&recorded("expected.json")).unwrap();
    let mut judged = 0;
    for entry in expected["entries"].as_array().unwrap() {
        let summary = &entry["summary"];
        let name = entry["file"].as_str().unwrap();
        let id = SessionId::new(entry["session_id"].as_str().unwrap()).unwrap();
        let modified_ms = entry["mtime_ms"].as_u64().unwrap();
        let bytes = recorded(name);
        let read = Envelope::read(&bytes, &id, "/w/demo", modified_ms);
        assert_eq!(summary["health"], health(&read), "{name}");
        match read {
            Ok(envelope) => same(&envelope, summary, name),
            Err(Defect::ScopeMismatch(envelope)) => same(&envelope, summary, name),
            Err(Defect::Incompatible(version)) => assert_eq!(summary["schema_version"], version, "{name}"),
            Err(Defect::Corrupt(why)) => assert!(!why.is_empty() && summary["schema_version"].is_null()),
        }
        if name.starts_with("legacy/") {
            let array = Envelope::read_array(&bytes, &id, "/w/demo", modified_ms);
            assert_eq!(array, Envelope::read(&bytes, &id, "/w/demo", modified_ms));
        } else {
            assert!(Envelope::read_array(&bytes, &id, "/w/demo", modified_ms).is_err(), "{name}");
        }
        judged += 1;
    }
    assert_eq!(judged, 23);
}

fn health(read: &Result<Envelope, Defect>) -> Value {
    serde_json::to_value(match read {
        Ok(_) => Health::Ready,
        Err(Defect::Corrupt(_)) => Health::Corrupt,
        Err(Defect::Incompatible(_)) => Health::Incompatible,
        Err(Defect::ScopeMismatch(_)) => Health::ScopeMismatch,
    })
    .unwrap()
}

fn same(envelope: &Envelope, summary: &Value, name: &str) {
    let model = Some(&envelope.model).filter(|model| !model.is_empty());
    // What recorded the file let a character pass that reorders text.
    let prompt = summary["first_prompt"].as_str().map(|prompt| prompt.replace('\u{202e}', ""));
    assert_eq!(preview(&envelope.messages), prompt, "{name}");
    let shown = json!({
        "session_id": envelope.session_id,
        "workspace_scope": envelope.workspace_scope,
        "created_at_ms": envelope.created_at_ms,
        "updated_at_ms": envelope.updated_at_ms,
        "model": model,
        "message_count": envelope.messages.len(),
        "first_prompt": summary["first_prompt"],
        "schema_version": envelope.schema_version,
        "health": summary["health"],
    });
    assert_eq!(&shown, summary, "{name}");
}

#[test]
fn a_recorded_file_is_written_again_as_it_was_with_the_revision_of_its_compaction_added() {
    for name in
        ["plain", "two-turns", "unicode", "long-prompt", "tool-calls", "redacted-secret", "failed-turn"]
    {
        let file = String::from_utf8(recorded(&format!("written/{name}.json"))).unwrap();
        let stem: Value = serde_json::from_str(&file).unwrap();
        let id = SessionId::new(stem["session_id"].as_str().unwrap()).unwrap();
        let envelope = Envelope::read(file.as_bytes(), &id, "/w/demo", 0).unwrap();
        let again = String::from_utf8(envelope.write().unwrap()).unwrap();
        assert_eq!(
            again,
            file.strip_suffix("\n}").unwrap().to_owned() + ",\n  \"compaction_revision\": 0\n}"
        );
    }
}

#[test]
fn a_file_that_ends_too_early_is_corrupt_wherever_it_ends() {
    let legacy = recorded("legacy/tools-and-blocks.json");
    let legacy = legacy.trim_ascii_end();
    for end in 0..legacy.len() {
        corrupt(Envelope::read_array(&legacy[..end], &id(), "/w", 0));
        corrupt(Envelope::read(&legacy[..end], &id(), "/w", 0));
    }
    for name in ["written/tool-calls.json", "written/unicode.json", "damaged/schema-99.json"] {
        let file = recorded(name);
        let whole: Value = serde_json::from_slice(&file).unwrap();
        let id = SessionId::new(whole["session_id"].as_str().unwrap()).unwrap();
        for end in 0..file.trim_ascii_end().len() {
            corrupt(Envelope::read(&file[..end], &id, "/w/demo", 0));
        }
    }
}

#[test]
fn what_stands_beside_the_one_value_is_corrupt_unless_it_is_blank() {
    for file in [healthy().to_string(), json!([{"role": "user", "content": "x"}]).to_string()] {
        assert!(read(&file).is_ok());
        assert_eq!(read(format!("\n\t {file} \r\n")), read(&file));
        for (before, after) in
            [("", " {}"), ("", "\0"), ("", ","), ("", "x"), ("\u{feff}", ""), ("\0", ""), ("", "\u{b}")]
        {
            corrupt(read(format!("{before}{file}{after}")));
        }
        corrupt(read([file.as_bytes(), &[0; 4096]].concat()));
        corrupt(read(format!("{file}{file}")));
        corrupt(read([file.as_bytes(), b"\xff"].concat()));
    }
    for file in ["", " ", "null", "5", "\"x\"", "{}", "{broken"] {
        corrupt(read(file));
    }
}

#[test]
fn a_tail_of_nul_bytes_is_corrupt_however_long_it_is() {
    let file = healthy().to_string();
    for kept in (0..file.len()).step_by(7) {
        let mut torn = file.clone().into_bytes();
        torn[kept..].fill(0);
        corrupt(read(torn));
    }
}

#[test]
fn half_of_a_surrogate_pair_is_corrupt_wherever_it_stands() {
    let file = healthy().to_string();
    for place in ["\"hello\"", "\"m\"", "\"a.txt\"", "\"{}\""] {
        for half in [r"\ud83d", r"\uDE00", r"\ud83dx", r"\ude00\ud83d"] {
            corrupt(read(file.replace(place, &format!("\"{half}\""))));
        }
        assert!(read(file.replace(place, r#""\ud83d\ude00""#)).is_ok());
    }
    corrupt(read(file.replacen('{', r#"{"unknown":"\ud83d","#, 1)));
    corrupt(read(file.replacen('{', r#"{"\ud83d":1,"#, 1)));
    corrupt(read(r#"{"schema_version":99,"text":"\ud83d"}"#));
}

#[test]
fn a_key_that_comes_twice_is_corrupt() {
    let file = healthy().to_string();
    for twice in
        [r#""session_id":"x","#, r#""schema_version":1,"#, r#""schema_version":99,"#, r#""messages":[],"#]
    {
        corrupt(read(file.replacen('{', &format!("{{{twice}"), 1)));
    }
    corrupt(read(file.replace(r#""role":"user""#, r#""role":"user","role":"user""#)));
    corrupt(read(r#"{"schema_version":1,"schema_version":99}"#));
}

#[test]
fn unknown_keys_are_ignored_in_every_object() {
    let with = |value: &mut Value| value["new"] = json!({"a": [1, {"b": null}]});
    let read = changed(|file| {
        with(file);
        for at in 0..3 {
            with(&mut file["messages"][at]);
        }
        with(&mut file["messages"][1]["content"][0]);
        with(&mut file["messages"][1]["tool_calls"][0]);
        with(&mut file["messages"][1]["tool_calls"][0]["function"]);
    });
    assert_eq!(read, changed(|_| ()));
    assert!(read.is_ok());
}

#[test]
fn another_schema_is_told_from_damage_whatever_else_is_wrong() {
    for version in [0, 2, 99, (1 << 32) + 1, (1 << 32) + 99, u64::MAX] {
        let expected = Err(Defect::Incompatible(version));
        assert_eq!(changed(|file| file["schema_version"] = version.into()), expected);
        assert_eq!(read(json!({"messages": 5, "schema_version": version}).to_string()), expected);
        let foreign = changed(|file| {
            file["schema_version"] = version.into();
            file["workspace_scope"] = "/other".into();
            file["session_id"] = "x".into();
        });
        assert_eq!(foreign, expected);
    }
    let file = healthy().to_string();
    for version in ["\"1\"", "1.0", "1e0", "-1", "null", "true", "[1]", "{}", "18446744073709551616"] {
        let file = file.replace(r#""schema_version":1"#, &format!(r#""schema_version":{version}"#));
        assert_eq!(corrupt(read(file)), "missing schema_version", "{version}");
    }
    corrupt(changed(|file| {
        file.as_object_mut().unwrap().remove("schema_version");
    }));
}

#[test]
fn another_id_is_damage_and_goes_before_another_workspace() {
    let why = corrupt(changed(|file| {
        file["session_id"] = "x".into();
        file["workspace_scope"] = "/other".into();
    }));
    assert_eq!(why, "filename and envelope session IDs differ");
    let foreign = changed(|file| file["workspace_scope"] = "/other".into());
    let Err(Defect::ScopeMismatch(envelope)) = foreign else { panic!("{foreign:?}") };
    assert_eq!((envelope.workspace_scope.as_str(), envelope.messages.len()), ("/other", 3));
    for near in ["/w/", "/W", "", "/w\u{301}"] {
        assert!(matches!(changed(|f| f["workspace_scope"] = near.into()), Err(Defect::ScopeMismatch(_))));
    }
}

#[test]
fn every_key_has_its_type_and_those_that_must_be_there_are_missed() {
    for key in
        ["session_id", "workspace_scope", "created_at_ms", "updated_at_ms", "model", "generation", "messages"]
    {
        let why = corrupt(changed(|file| {
            file.as_object_mut().unwrap().remove(key);
        }));
        assert!(why.contains(&format!("missing field `{key}`")), "{why}");
        for wrong in [Value::Null, json!({}), json!(-1), json!(1.5), json!(true)] {
            corrupt(changed(|file| file[key] = wrong));
        }
    }
    for wrong in [Value::Null, json!("0"), json!(-1)] {
        corrupt(changed(|file| file["compaction_revision"] = wrong));
    }
    let without = changed(|file| {
        file.as_object_mut().unwrap().remove("compaction_revision");
    });
    assert_eq!(without, changed(|_| ()));
    assert_eq!(changed(|file| file["generation"] = u64::MAX.into()).unwrap().generation, u64::MAX);
}

#[test]
fn a_message_that_is_none_makes_the_whole_file_corrupt() {
    let text = json!({"type": "text", "text": "x"});
    for message in [
        json!(null),
        json!("x"),
        json!(["user", "x"]),
        json!({}),
        json!({"role": "user"}),
        json!({"role": "user", "content": null}),
        json!({"role": "user", "content": 5}),
        json!({"role": "user", "content": text}),
        json!({"role": null, "content": "x"}),
        json!({"content": "x"}),
        json!({"role": "user", "content": ["x"]}),
        json!({"role": "user", "content": [["text", "x"]]}),
        json!({"role": "user", "content": [{"type": "image", "text": "x"}]}),
        json!({"role": "user", "content": [{"text": "x"}]}),
        json!({"role": "user", "content": [{"type": "text"}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "content": "x"}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x", "is_error": 1}]}),
        json!({"role": "tool", "content": "x", "tool_call_id": 5}),
        json!({"role": "assistant", "content": "x", "tool_calls": {}}),
        json!({"role": "assistant", "content": "x", "tool_calls": [{"id": "c", "type": "function"}]}),
        json!({"role": "assistant", "content": "x", "tool_calls": [["c", "function", {"name": "n", "arguments": ""}]]}),
        json!({"role": "assistant", "content": "x", "tool_calls": [
            {"id": "c", "type": "function", "function": ["n", ""]},
        ]}),
        json!({"role": "assistant", "content": "x", "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "n", "arguments": {}}},
        ]}),
    ] {
        corrupt(changed(|file| file["messages"][1] = message.clone()));
        corrupt(read(json!([{"role": "user", "content": "x"}, message]).to_string()));
    }
}

#[test]
fn what_a_message_may_lack_may_also_be_null() {
    let full = json!([{"role": "r", "content": [], "tool_call_id": null, "name": null, "tool_calls": null}]);
    let short = json!([{"role": "r", "content": []}]);
    assert_eq!(read(full.to_string()), read(short.to_string()));
    let result =
        json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]}]);
    let Content::Blocks(blocks) = read(result.to_string()).unwrap().messages.remove(0).content else {
        panic!()
    };
    let expected = Block::ToolResult { tool_use_id: "c".into(), content: "x".into(), is_error: false };
    assert_eq!(blocks, [expected]);
}

#[test]
fn an_array_of_messages_is_a_session_of_generation_0_and_of_the_time_of_its_file() {
    let envelope = read("[]").unwrap();
    let expected = Envelope {
        schema_version: SCHEMA_VERSION,
        session_id: ID.into(),
        workspace_scope: "/w".into(),
        created_at_ms: 5,
        updated_at_ms: 5,
        model: String::new(),
        generation: 0,
        messages: Vec::new(),
        compaction: None,
        compaction_revision: 0,
    };
    assert_eq!(envelope, expected);
    let envelope = Envelope::read_array(healthy().to_string().as_bytes(), &id(), "/w", 5);
    assert_eq!(corrupt(envelope), "legacy session is not a message array");
}

#[test]
fn a_model_is_cut_as_it_is_read() {
    for (model, expected) in [
        ("x".repeat(256), "x".repeat(256)),
        ("x".repeat(300), "x".repeat(253) + "…"),
        ("🦀".repeat(300_000), "🦀".repeat(63) + "…"),
        ("a\u{7}\nb".to_owned(), "ab".to_owned()),
    ] {
        assert_eq!(changed(|file| file["model"] = model.into()).unwrap().model, expected);
    }
}

#[test]
fn a_conversation_that_could_not_be_read_again_is_not_written() {
    let mut envelope = changed(|_| ()).unwrap();
    let frame = envelope.write().unwrap().len() - 1;
    envelope.model.clear();
    envelope.model = "x".repeat(limits::SESSION_FILE as usize - frame);
    assert_eq!(envelope.write().unwrap().len() as u64, limits::SESSION_FILE);
    envelope.model.push('x');
    assert_eq!(envelope.write(), Err(TooLarge));
}

fn content() -> impl Strategy<Value = Content> {
    let block = prop_oneof![
        any::<String>().prop_map(|text| Block::Text { text }),
        (any::<String>(), any::<String>(), any::<bool>()).prop_map(|(tool_use_id, content, is_error)| {
            Block::ToolResult { tool_use_id, content, is_error }
        }),
    ];
    prop_oneof![
        any::<String>().prop_map(Content::Text),
        proptest::collection::vec(block, 0..4).prop_map(Content::Blocks),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let call = (any::<String>(), any::<String>(), any::<String>(), any::<String>()).prop_map(
        |(id, kind, name, arguments)| ToolCall { id, kind, function: ToolFunction { name, arguments } },
    );
    let calls = proptest::option::of(proptest::collection::vec(call, 0..3));
    (any::<String>(), content(), any::<Option<String>>(), any::<Option<String>>(), calls).prop_map(
        |(role, content, tool_call_id, name, tool_calls)| Message {
            role,
            content,
            tool_call_id,
            name,
            tool_calls,
        },
    )
}

fn envelope() -> impl Strategy<Value = Envelope> {
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
    let model = "[^\\p{Cc}]{0,60}";
    (any::<String>(), numbers, model, proptest::collection::vec(message(), 0..6)).prop_map(
        |(workspace_scope, numbers, model, messages)| Envelope {
            schema_version: SCHEMA_VERSION,
            session_id: ID.to_owned(),
            workspace_scope,
            created_at_ms: numbers.0,
            updated_at_ms: numbers.1,
            model,
            generation: numbers.2,
            messages,
            compaction: None,
            compaction_revision: numbers.3,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_conversation_is_read_as_it_was_written(envelope in envelope()) {
        let file = envelope.write().unwrap();
        let again = Envelope::read(&file, &id(), &envelope.workspace_scope, 0).unwrap();
        prop_assert_eq!(again.write().unwrap(), file);
        prop_assert_eq!(again, envelope);
    }

    #[test]
    fn a_written_conversation_that_ends_too_early_is_corrupt(envelope in envelope(), end in any::<prop::sample::Index>()) {
        let mut file = envelope.write().unwrap();
        file.truncate(end.index(file.len()));
        corrupt(Envelope::read(&file, &id(), &envelope.workspace_scope, 0));
    }

    #[test]
    fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in any::<prop::sample::Index>()) {
        let _ = read(&bytes);
        let _ = Envelope::read_array(&bytes, &id(), "/w", 0);
        // And with a healthy file around them.
        let mut file = healthy().to_string().into_bytes();
        let at = at.index(file.len());
        file.splice(at..at, bytes.into_iter().take(3));
        let _ = read(file);
    }
}
