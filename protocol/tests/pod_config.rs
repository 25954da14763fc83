//! What a patch makes of a configuration, key by key.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use cofferdam_protocol::pod::*;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Any root is fine that begins with `/`, except `/` itself.
fn root(text: &str) -> Result<String, RootRefusal> {
    match text {
        "/" => Err(RootRefusal::Protected("is a filesystem root".to_owned())),
        text if text.starts_with('/') => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err(RootRefusal::Bad("is not absolute".to_owned())),
    }
}

/// What a patch changes of a configuration, and the messages.
fn patched(from: &Config, patch: &Value) -> (Value, Vec<String>) {
    let (to, messages) = from.patched(patch.as_object().unwrap(), root);
    let (from, mut to) = (serde_json::to_value(from).unwrap(), serde_json::to_value(to).unwrap());
    to.as_object_mut().unwrap().retain(|key, value| from[key] != *value);
    (to, messages)
}

/// Checks a patch of the defaults.
fn check(patch: Value, changed: Value, messages: &[&str]) {
    assert_eq!(
        patched(&Config::default(), &patch),
        (changed, messages.iter().map(|m| (*m).to_owned()).collect())
    );
}

#[test]
fn an_empty_patch_changes_nothing_and_says_nothing() {
    check(json!({}), json!({}), &[]);
}

#[test]
fn what_is_valid_is_taken_as_it_is_without_a_message() {
    let all = json!({
        "sandboxRoot": "/r",
        "allowWrites": false,
        "allowedTools": ["read"],
        "timeoutMs": 30_000,
        "readContext": false,
        "maxConcurrent": 8,
        "queueEnabled": false,
        "enableExport": false,
        "allowRememberChoice": true,
        "presetId": "standard",
        "maxTasks": 5000,
        "maxExports": 1,
        "retentionDays": 3650,
        "previewBytes": 16_384,
        "previewChars": 200,
        "exportVerify": false,
        "sandboxProbeMode": "warn",
        "autoResumeOnOpen": false,
        "logLevel": "off",
    });
    check(all.clone(), all, &[]);
    for level in ["trace", "debug", "warn", "error"] {
        check(json!({"logLevel": level}), json!({"logLevel": level}), &[]);
    }
}

#[test]
fn numbers_out_of_range_become_the_nearest_in_it() {
    for (key, min, max) in [
        ("timeoutMs", 30_000, 7_200_000),
        ("maxConcurrent", 1, 8),
        ("maxTasks", 1, 5000),
        ("maxExports", 1, 5000),
        ("retentionDays", 0, 3650),
        ("previewBytes", 16_384, 1_048_576),
        ("previewChars", 200, 20_000),
    ] {
        for (given, used) in [
            (json!(min - 1), min),
            (json!(max + 1), max),
            (json!(i64::MIN), min),
            (json!(u64::MAX), max),
            (json!(-1e300), min),
            (json!(1e300), max),
        ] {
            let (to, messages) = Config::default().patched(json!({key: given}).as_object().unwrap(), root);
            assert_eq!(serde_json::to_value(to).unwrap()[key], used, "{key} {given}");
            assert_eq!(
                messages,
                [format!("{key}: {given} is no integer from {min} to {max}; {used} is used")]
            );
        }
    }
}

#[test]
fn fractions_are_cut_off_with_a_message() {
    check(
        json!({"maxConcurrent": 4.9, "timeoutMs": 29_999.5, "maxTasks": 300.0}),
        json!({"maxConcurrent": 4, "timeoutMs": 30_000, "maxTasks": 300}),
        &[
            "timeoutMs: 29999.5 is no integer from 30000 to 7200000; 30000 is used",
            "maxConcurrent: 4.9 is no integer from 1 to 8; 4 is used",
        ],
    );
}

#[test]
fn values_of_another_type_are_ignored_with_a_message_each_in_the_order_of_the_keys() {
    for value in [json!(null), json!("5"), json!([]), json!({"info": null})] {
        let keys: Vec<String> =
            serde_json::to_value(Config::default()).unwrap().as_object().unwrap().keys().cloned().collect();
        let wrong = |key: &&String| match value {
            Value::String(_) => !["sandboxRoot", "presetId"].contains(&key.as_str()),
            _ => true,
        };
        let patch: serde_json::Map<String, Value> =
            keys.iter().filter(wrong).map(|key| (key.clone(), value.clone())).collect();
        let count = patch.len();
        let (changed, messages) = patched(&Config::default(), &Value::Object(patch));
        assert_eq!((changed, messages.len()), (json!({}), count), "{value}: {messages:?}");
        assert!(messages.iter().all(|message| message.ends_with("ignored")), "{messages:?}");
    }
    check(
        json!({"zzz": 1, "logLevel": "loud", "sandboxProbeMode": "x", "allowWrites": "yes"}),
        json!({}),
        &[
            "allowWrites: must be true or false; ignored",
            "sandboxProbeMode: unknown variant `x`, expected `strict` or `warn`; ignored",
            "logLevel: unknown variant `loud`, expected one of `trace`, `debug`, `info`, `warn`, `error`, `off`; ignored",
            "zzz: there is no such key; ignored",
        ],
    );
}

#[test]
fn a_refused_root_keeps_the_old_one_and_the_rest_of_the_patch_applies() {
    let set = Config { sandbox_root: "/old".to_owned(), ..Config::default() };
    for (given, message) in [
        ("/", "sandboxRoot: ROOT_PROTECTED is a filesystem root"),
        ("rel/dir", "sandboxRoot: BAD_ROOT is not absolute"),
    ] {
        let (changed, messages) = patched(&set, &json!({"maxConcurrent": 4, "sandboxRoot": given}));
        assert_eq!((changed, messages), (json!({"maxConcurrent": 4}), vec![message.to_owned()]));
    }
    assert_eq!(patched(&set, &json!({"sandboxRoot": "/new///"})), (json!({"sandboxRoot": "/new"}), vec![]));
    assert_eq!(patched(&set, &json!({"sandboxRoot": ""})), (json!({"sandboxRoot": ""}), vec![]));
}

#[test]
fn tools_are_trimmed_names_each_once_and_never_none() {
    let message = "allowedTools: kept what is a name, each once, at most 256, of at most 128 characters";
    check(json!({"allowedTools": ["read", "read", " ", 3]}), json!({"allowedTools": ["read"]}), &[message]);
    check(json!({"allowedTools": [" bash "]}), json!({"allowedTools": ["bash"]}), &[message]);
    for nothing in [json!([]), json!([" ", 3, null]), json!(["x".repeat(129)])] {
        let none = "allowedTools: must name at least one tool; ignored";
        check(json!({"allowedTools": nothing}), json!({}), &[none]);
    }
    let many: Vec<String> = (0..300).map(|n| format!("{n:0>128}")).collect();
    check(json!({"allowedTools": many}), json!({"allowedTools": many[..256]}), &[message]);
}

#[test]
fn a_preset_is_a_name_of_at_most_256_characters() {
    let longest = "é".repeat(256);
    check(json!({"presetId": longest}), json!({"presetId": longest}), &[]);
    let message = "presetId: must be a string of at most 256 characters; ignored";
    check(json!({"presetId": longest + "x"}), json!({}), &[message]);
}

#[test]
fn of_many_unknown_keys_32_are_named_and_the_rest_counted() {
    let patch: serde_json::Map<String, Value> = (0..1000).map(|n| (format!("k{n:0>9}"), json!(1))).collect();
    let (_, messages) = patched(&Config::default(), &Value::Object(patch));
    assert_eq!(messages.len(), 33);
    assert_eq!(messages[32], "there are no such keys, either: 968 more; ignored");
    let (_, messages) = patched(&Config::default(), &json!({"k".repeat(1_000_000): 1}));
    assert!(messages[0].len() < 500);
}

#[test]
fn a_task_gets_the_tools_that_are_both_asked_for_and_allowed() {
    let tools = |config: &Config, asked: &[&str]| {
        let asked: Vec<String> = asked.iter().map(|tool| (*tool).to_owned()).collect();
        config.effective_tools(Some(&asked))
    };
    let all = Config::default();
    assert_eq!(all.effective_tools(None), all.allowed_tools);
    assert_eq!(tools(&all, &["write", "nope", "read", "write"]), ["write", "read"]);
    assert!(tools(&all, &[]).is_empty());
    let read_only = Config { allow_writes: false, ..all };
    assert_eq!(read_only.effective_tools(None), ["pwsh", "bash", "read", "glob", "grep"]);
    assert!(tools(&read_only, &["write", "edit"]).is_empty());
}

#[test]
fn a_task_without_a_timeout_gets_the_configured_one_and_others_are_held_in_range() {
    let config = Config { timeout_ms: 60_000, ..Config::default() };
    for (asked, timeout) in
        [(None, 60_000), (Some(1), 30_000), (Some(i64::MAX), 7_200_000), (Some(45_000), 45_000)]
    {
        assert_eq!(config.timeout_for(asked), timeout);
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-10_000_000..10_000_000_i64).prop_map(Value::from),
        "[a-z /]{0,6}".prop_map(Value::from),
    ];
    prop_oneof![leaf.clone(), proptest::collection::vec(leaf, 0..4).prop_map(Value::from)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_patch_leads_out_of_the_ranges(
        values in proptest::collection::vec(proptest::option::of(value()), 19), key in ".{0,9}", other in value(),
    ) {
        let defaults = serde_json::to_value(Config::default()).unwrap();
        let keys = defaults.as_object().unwrap().keys().cloned();
        let mut patch: serde_json::Map<String, Value> =
            keys.zip(values).filter_map(|(key, value)| Some((key, value?))).collect();
        patch.insert(key, other);
        let (config, messages) = Config::default().patched(&patch, root);

        prop_assert!((30_000..=7_200_000).contains(&config.timeout_ms));
        prop_assert!((1..=8).contains(&config.max_concurrent));
        prop_assert!((1..=5000).contains(&config.max_tasks));
        prop_assert!((1..=5000).contains(&config.max_exports));
        prop_assert!((0..=3650).contains(&config.retention_days));
        prop_assert!((16_384..=1_048_576).contains(&config.preview_bytes));
        prop_assert!((200..=20_000).contains(&config.preview_chars));
        prop_assert!(!config.allowed_tools.is_empty());
        prop_assert!(config.sandbox_root.is_empty() || config.sandbox_root.starts_with('/'));

        // A key that could be taken as it was has no message, every other one has one.
        let taken = serde_json::to_value(&config).unwrap();
        let adjusted = patch.iter().filter(|(key, value)| {
            let Some(taken) = taken.get(key.as_str()) else {
                return true;
            };
            let equal = match (taken, *value) {
                (Value::Number(taken), Value::Number(given)) => taken.as_f64() == given.as_f64(),
                (Value::String(taken), Value::String(given)) if *key == "sandboxRoot" => {
                    given.is_empty() || root(given).is_ok_and(|root| root == *taken)
                }
                (taken, given) => taken == given,
            };
            !equal
        });
        let starts: Vec<String> = adjusted.map(|(key, _)| format!("{key}: ")).collect();
        prop_assert_eq!(messages.len(), starts.len(), "{:?} {:?}", messages, starts);
        for start in starts {
            prop_assert_eq!(messages.iter().filter(|message| message.starts_with(&start)).count(), 1);
        }
        // What came out of a patch is a valid one.
        let (again, messages) = config.patched(taken.as_object().unwrap(), root);
        prop_assert_eq!(&again, &config);
        prop_assert!(messages.is_empty(), "{:?}", messages);
    }
}
