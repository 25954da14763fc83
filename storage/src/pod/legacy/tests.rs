//! Genuine files, damaged files, and files of anything.

use std::path::PathBuf;

use cofferdam_protocol::pod::{ExportStatus, INTERRUPTED, TaskStatus};
use cofferdam_tests::files::{fifo, mkdir, read as bytes, symlink, write};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::pod::Surroundings;

const NOW: i64 = 1_790_000_000_000;

const FILES: [(&str, &str); 2] = [
    (
        include_str!("vectors/legacy-isolation-pod-v0.1.0.json"),
        include_str!("vectors/legacy-isolation-pod-v0.1.0.expected.json"),
    ),
    (
        include_str!("vectors/legacy-isolation-pod-v0.1.3.json"),
        include_str!("vectors/legacy-isolation-pod-v0.1.3.expected.json"),
    ),
];

fn protected() -> Protected {
    Protected::new(&Surroundings::default(), "/nowhere/isolation-pod/pod.db".as_ref())
}

fn import(text: impl AsRef<[u8]>) -> Result<Legacy, String> {
    parse(text.as_ref().to_vec(), &protected(), NOW)
}

fn import_one(task: Value) -> LegacyTask {
    let mut legacy = import(json!({"tasks": [task]}).to_string()).unwrap();
    legacy.tasks.pop().unwrap()
}

fn messages(legacy: &Legacy) -> Vec<&str> {
    legacy.diagnostics.iter().map(|diagnostic| diagnostic.message.as_str()).collect()
}

/// The task in the shape of the expectations.
fn shown(task: &LegacyTask) -> Value {
    let mut shown = serde_json::to_value(&task.summary).unwrap();
    shown["legacyLogCount"] = task.log.len().into();
    shown["legacyLogKinds"] = task.log.iter().map(|entry| entry.kind.as_str()).collect();
    shown
}

#[test]
fn genuine_files_are_imported_field_by_field() {
    for (file, expected) in FILES {
        let expected: Value = serde_json::from_str(expected).unwrap();
        let legacy = import(file).unwrap();
        let tasks = expected["tasks"].as_array().unwrap();
        assert_eq!(legacy.tasks.len(), tasks.len());
        for (task, expected) in legacy.tasks.iter().zip(tasks) {
            let shown = shown(task);
            for (key, value) in expected.as_object().unwrap() {
                let became_now = key == "endedAt" && task.summary.ended_at == NOW && *value == json!(0);
                assert!(shown[key] == *value || became_now, "{key} of {}: {}", task.summary.id, shown[key]);
            }
            assert_eq!(task.summary.timeout_ms, legacy.config.timeout_ms);
            assert_eq!(task.summary.preset_id, "standard");
        }
        assert_eq!(serde_json::to_value(&legacy.exports).unwrap(), expected["exports"]);
        let dropped = expected["dropped"].as_array().unwrap();
        for dropped in dropped {
            let place = format!("{}[{}]: ", dropped[0].as_str().unwrap(), dropped[1]);
            assert!(
                messages(&legacy).iter().any(|text| text.contains(&place)),
                "{place}{:?}",
                messages(&legacy)
            );
        }
        let others = messages(&legacy).iter().filter(|text| !text.contains(": config: ")).count();
        assert_eq!(others, dropped.len(), "nothing else was: {:?}", messages(&legacy));
    }
}

#[test]
fn genuine_configurations_keep_their_nine_keys() {
    let config = import(FILES[1].0).unwrap().config;
    let tools = ["pwsh", "read", "write", "edit", "glob", "grep"].map(str::to_owned).to_vec();
    let expected = Config {
        allowed_tools: tools,
        timeout_ms: 900_000,
        max_concurrent: 2,
        allow_remember_choice: true,
        preset_id: "standard".into(),
        ..Config::default()
    };
    assert_eq!(config, expected);
    for (file, _) in FILES {
        let legacy = import(file).unwrap();
        // The directory of another system is no root here.
        assert!(messages(&legacy)[0].contains("config: sandboxRoot: BAD_ROOT"), "{:?}", messages(&legacy));
    }
    assert_eq!(import(FILES[0].0).unwrap().config.timeout_ms, 30_000, "a fraction is cut off");
}

#[test]
fn halves_of_characters_are_replaced_and_cost_nothing_else() {
    let legacy = import(FILES[1].0).unwrap();
    let entry = legacy.tasks[0].log.iter().rfind(|entry| entry.seq == 6).unwrap();
    assert!(entry.text.ends_with("数\u{fffd}"), "{}", entry.text);
    assert!(
        import("{\"tasks\":[{\"id\":\"a\",\"\\ud83d\":1,\"label\":\"x\\udc00\"}],\"\\ud83d\":[]}")
            .unwrap()
            .tasks[0]
            .summary
            .label
            .ends_with("x\u{fffd}")
    );
}

#[test]
fn what_the_wire_has_no_place_for_is_kept_beside() {
    let side: Value = serde_json::from_str(&import(FILES[1].0).unwrap().tasks[9].side).unwrap();
    let expected = json!({
        "turnEndKind": "error", "contextNote": "7 条上下文", "setupNote": "preset 挂载失败：not found", "logCount": 5
    });
    assert_eq!(side, expected);
}

#[test]
fn the_file_is_left_as_it_is_and_known_by_its_hash() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("isolation-pod.json");
    write(&path, FILES[0].0);
    let before = path.metadata().unwrap().modified().unwrap();
    let legacy = read(&path, &protected(), NOW).unwrap().unwrap();
    assert_eq!(legacy.hash, blake3::hash(FILES[0].0.as_bytes()).to_hex().as_str());
    assert_eq!(bytes(&path), FILES[0].0.as_bytes());
    assert_eq!(path.metadata().unwrap().modified().unwrap(), before);
    assert_eq!(dir.path().read_dir().unwrap().count(), 1);
}

#[test]
fn a_file_that_is_not_there_is_none_and_what_is_no_such_file_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let read = |path: PathBuf| read(&path, &protected(), NOW).map(|found| found.is_some());
    assert_eq!(read(at("none")), Ok(false));
    symlink(at("real"), at("link"));
    write(at("real"), "{}");
    assert_eq!(read(at("link")), Ok(true), "a home may be kept elsewhere");
    mkdir(at("dir"));
    fifo(at("fifo"));
    for name in ["dir", "fifo"] {
        assert!(read(at(name)).unwrap_err().contains("not a file"), "{name}");
    }
    let large = File::create(at("large")).unwrap();
    large.set_len(MAX_FILE + 1).unwrap();
    assert!(read(at("large")).unwrap_err().contains("64 MiB"));
    large.set_len(MAX_FILE).unwrap();
    assert!(read(at("large")).unwrap_err().contains("not JSON"));
}

#[test]
fn what_is_no_such_file_is_refused_whole() {
    for (text, why) in [
        ("", "not JSON"),
        ("{\"tasks\":[", "not JSON"),
        ("{} {}", "not JSON"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ("{\"version\":2}", "version 2"),
        ("{\"version\":\"3\"}", "version 3"),
    ] {
        let error = import(text).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn missing_and_misshapen_parts_are_empty() {
    for (text, said) in [
        ("{}", 0),
        ("\u{feff}{\"version\":1}", 0),
        ("{\"version\":null,\"config\":{},\"tasks\":[],\"exports\":[]}", 0),
        ("{\"config\":[],\"tasks\":{},\"exports\":7}", 3),
    ] {
        let legacy = import(text).unwrap();
        assert_eq!(legacy.config, Config::default(), "{text}");
        assert!(legacy.tasks.is_empty() && legacy.exports.is_empty(), "{text}");
        assert_eq!(legacy.diagnostics.len(), said, "{text}");
    }
    let not_utf8 = [&b"{\"tasks\":[{\"id\":\"a\",\"label\":\"x"[..], b"\xff", b"y\"}]}"].concat();
    assert_eq!(import(not_utf8).unwrap().tasks[0].summary.label, "x\u{fffd}y");
}

#[test]
fn of_a_repeated_key_the_last_counts() {
    let legacy = import(r#"{"tasks":[],"tasks":[{"id":"a","label":"x","label":"y"}]}"#).unwrap();
    assert_eq!(legacy.tasks[0].summary.label, "y");
}

#[test]
fn numbers_and_texts_are_taken_as_they_were_meant() {
    let numbers = [
        ("5", 5),
        ("5.9", 5),
        ("-5", 0),
        ("1e400", 0),
        ("-1e400", 0),
        ("1e300", 9_007_199_254_740_991),
        (r#""123""#, 123),
        (r#"" 7 ""#, 7),
        (r#""Infinity""#, 0),
        (r#""NaN""#, 0),
        ("true", 0),
        ("null", 0),
        ("[1]", 0),
        ("{}", 0),
    ];
    for (written, expected) in numbers {
        let legacy =
            import(format!(r#"{{"tasks":[{{"id":"a","createdAt":{written},"turns":{written}}}]}}"#)).unwrap();
        let summary = &legacy.tasks[0].summary;
        assert_eq!((summary.created_at, summary.turns), (expected, expected.max(1)), "{written}");
    }
    let texts = [
        (r#""x""#, "x"),
        ("12", "12"),
        ("1.5", "1.5"),
        ("true", "true"),
        ("false", "false"),
        ("null", ""),
        ("[\"x\"]", ""),
        ("{\"x\":1}", ""),
    ];
    for (written, expected) in texts {
        let legacy = import(format!(r#"{{"tasks":[{{"id":"a","finalText":{written}}}]}}"#)).unwrap();
        assert_eq!(legacy.tasks[0].summary.last_text, expected, "{written}");
    }
}

#[test]
fn what_had_not_ended_is_interrupted_now() {
    for word in ["queued", "running", "starting", "weird", ""] {
        let task = import_one(json!({"id": "a", "status": word}));
        let TaskSummary { status, error, ended_at, .. } = task.summary;
        assert_eq!((status, error.as_str(), ended_at), (TaskStatus::Interrupted, INTERRUPTED, NOW), "{word}");
    }
    let task = import_one(json!({"id": "a", "status": "running", "error": "own", "endedAt": 7}));
    assert_eq!((task.summary.error.as_str(), task.summary.ended_at), ("own", 7));
    let task = import_one(json!({"id": "a", "status": "interrupted"}));
    assert_eq!((task.summary.error.as_str(), task.summary.ended_at), ("", 0), "it had ended before");
}

#[test]
fn a_task_without_a_label_is_called_by_its_id() {
    let summary = import_one(json!({"id": "a"})).summary;
    assert_eq!((summary.label.as_str(), summary.description.as_str()), ("a", "a"));
}

#[test]
fn the_self_tests_outcome_is_one_of_ours() {
    for (task, probe) in [
        (json!({"id": "a", "sandboxProbe": "skipped-no-parent"}), "skipped-no-parent"),
        (json!({"id": "a", "sandboxProbe": "mode-mismatch"}), "failed"),
        (json!({"id": "a", "sandboxProbe": ""}), ""),
        (json!({"id": "a", "sandboxProbe": "", "fsDenied": true}), ""),
        (json!({"id": "a", "fsDenied": true}), "denied"),
        (json!({"id": "a", "fsDenied": 1}), ""),
    ] {
        assert_eq!(import_one(task.clone()).summary.sandbox_probe, probe, "{task}");
    }
    assert_eq!(import_one(json!({"id": "a", "sandboxMode": "read-only"})).summary.sandbox_mode, "read-only");
    assert_eq!(import_one(json!({"id": "a", "sandboxMode": "full"})).summary.sandbox_mode, "");
}

#[test]
fn of_the_same_id_the_last_record_counts_at_the_first_ones_place() {
    let records = json!([{"id": "a", "label": "1"}, {"id": "b"}, {"id": "a", "label": "2"}]);
    let legacy = import(json!({"tasks": records, "exports": records}).to_string()).unwrap();
    let tasks: Vec<_> =
        legacy.tasks.iter().map(|it| (it.summary.id.as_str(), it.summary.label.as_str())).collect();
    assert_eq!(tasks, [("a", "2"), ("b", "b")]);
    let exports: Vec<_> = legacy.exports.iter().map(|it| (it.id.as_str(), it.label.as_str())).collect();
    assert_eq!(exports, [("a", "2"), ("b", "")]);
    assert_eq!(legacy.diagnostics.len(), 2);
}

#[test]
fn only_the_newest_of_too_many_are_taken() {
    let many =
        |count: usize| -> Value { (0..count).map(|n| json!({"id": format!("r{n}"), "text": n})).collect() };
    let legacy = import(json!({"tasks": many(250), "exports": many(201)}).to_string()).unwrap();
    assert_eq!((legacy.tasks.len(), legacy.tasks[0].summary.id.as_str()), (200, "r50"));
    assert_eq!((legacy.exports.len(), legacy.exports[0].id.as_str()), (200, "r1"));
    assert_eq!(legacy.diagnostics.len(), 2);
    let log = import_one(json!({"id": "a", "log": many(600)})).log;
    assert_eq!((log.len(), log[0].text.as_str()), (500, "100"));
    let tools: Value = (0..300).map(|n| json!(format!("t{n}"))).chain([json!("t299"), json!(5)]).collect();
    assert!(import_one(json!({"id": "a", "allow": tools})).summary.allow.len() <= 256);
}

#[test]
fn long_texts_are_cut_between_characters_and_long_paths_are_dropped() {
    // Each counts as two, as hosts count.
    let long = "😀".repeat(5000);
    let task = import_one(json!({
        "id": "a", "label": long, "error": long, "finalText": long, "taskDir": long, "log": [{"text": long}]
    }));
    let chars = |text: &str| text.chars().count();
    let TaskSummary { label, error, last_text, task_dir, .. } = task.summary;
    assert_eq!([chars(&label), chars(&error), chars(&last_text), chars(&task_dir)], [60, 1000, 2000, 0]);
    assert_eq!(chars(&task.log[0].text), 2000);
}

#[test]
fn ids_that_cannot_name_a_directory_cost_their_task() {
    for id in
        [json!(""), json!("../x"), json!("a/b"), json!("."), json!(null), json!([]), json!("x".repeat(161))]
    {
        let legacy = import(json!({"tasks": [{"id": id}, {"id": "good"}]}).to_string()).unwrap();
        assert_eq!((legacy.tasks.len(), legacy.diagnostics.len()), (1, 1), "{id}");
    }
}

#[test]
fn a_protected_or_relative_root_becomes_empty_with_a_message() {
    for root in ["/", "/nowhere", "pods", r"D:\", "/nowhere/isolation-pod/"] {
        let legacy =
            import(json!({"config": {"sandboxRoot": root, "maxConcurrent": 4}}).to_string()).unwrap();
        assert_eq!((legacy.config.sandbox_root.as_str(), legacy.config.max_concurrent), ("", 4), "{root}");
        assert!(messages(&legacy)[0].contains("sandboxRoot"), "{root}");
    }
    let legacy =
        import(r#"{"config":{"sandboxRoot":" /srv/pods/ ","timeoutMs":45000.7,"maxConcurrent":1e400}}"#)
            .unwrap();
    let Config { sandbox_root, timeout_ms, max_concurrent, .. } = legacy.config;
    assert_eq!((sandbox_root.as_str(), timeout_ms, max_concurrent), ("/srv/pods", 45_000, 1));
}

#[test]
fn an_export_succeeded_if_anything_of_it_was_done() {
    for (items, status) in [
        (json!([{"status": "FAIL"}, {"status": "SKIP"}]), ExportStatus::Completed),
        (json!([{"status": "UNDO"}, {"status": 5}, 7]), ExportStatus::Failed),
        (json!([]), ExportStatus::Failed),
        (json!("x"), ExportStatus::Failed),
    ] {
        let legacy = import(json!({"exports": [{"id": "e", "items": items}]}).to_string()).unwrap();
        assert_eq!(legacy.exports[0].status, status, "{items}");
    }
}

#[test]
fn nesting_however_deep_costs_its_element_only() {
    let bomb = "[".repeat(300_000) + &"]".repeat(300_000);
    for field in ["id", "label", "log", "allow", "turns", "fsDenied", "unknown"] {
        let legacy =
            import(format!(r#"{{"tasks":[{{"{field}":{bomb}}},{{"id":"good"}}],"x":{bomb}}}"#)).unwrap();
        assert_eq!(legacy.tasks.last().unwrap().summary.id, "good", "{field}");
    }
    for key in ["config", "tasks", "exports"] {
        import(format!(r#"{{"{key}":{bomb}}}"#)).unwrap();
    }
    let legacy = import(format!(r#"{{"config":{{"allowedTools":{bomb},"maxConcurrent":2}}}}"#)).unwrap();
    assert_eq!(legacy.config.max_concurrent, 2);
    let deep = "[".repeat(1000) + &"]".repeat(1000);
    let legacy = import(format!(r#"{{"config":{{"allowedTools":{deep},"maxConcurrent":2}}}}"#)).unwrap();
    assert_eq!((legacy.config.max_concurrent, legacy.diagnostics.len()), (2, 1));
}

/// Any JSON value, in any writing.
fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|it| it.to_string()),
        any::<i64>().prop_map(|it| it.to_string()),
        prop_oneof![Just("1e400"), Just("-1E999"), Just("-0"), Just("1.5e3")].prop_map(str::to_owned),
        any::<String>().prop_map(|it| json!(it).to_string()),
        any::<u16>().prop_map(|it| format!("\"x\\u{it:04x}y\"")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let key = prop_oneof![Just("id"), Just("log"), Just("text"), Just("\\ud800")];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|all| format!("[{}]", all.join(","))),
            prop::collection::vec((key, inner), 0..4).prop_map(|all| {
                let members: Vec<_> = all.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// What stands in place of the part that is replaced, until its text is put there.
const HOLE: &str = "@hole@";

/// Puts the hole in place of the `nth` part of a value, counted from the outside.
fn punch(value: &mut Value, nth: &mut usize) -> bool {
    if *nth == 0 {
        *value = HOLE.into();
        return true;
    }
    *nth -= 1;
    match value {
        Value::Array(all) => all.iter_mut().any(|value| punch(value, nth)),
        Value::Object(map) => map.values_mut().any(|value| punch(value, nth)),
        _ => false,
    }
}

/// The genuine file with its halves of characters replaced, to take apart.
fn genuine() -> Value {
    serde_json::from_str(&repair_surrogates(FILES[1].0)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_stands_in_a_record_costs_that_record_at_most(
        list in prop_oneof![Just("tasks"), Just("exports")],
        element in any::<prop::sample::Index>(),
        part in any::<prop::sample::Index>(),
        replacement in any_json(),
    ) {
        let mut file = genuine();
        let whole = import(file.to_string()).unwrap();
        let all = file[list].as_array_mut().unwrap();
        let victim = element.get_mut(all);
        let id = victim["id"].clone();
        let mut nth = part.index(400);
        // A number beyond the parts there are stands for the whole element.
        if !punch(victim, &mut nth) {
            *victim = HOLE.into();
        }
        let legacy = import(file.to_string().replace(&format!("\"{HOLE}\""), &replacement)).unwrap();
        prop_assert_eq!(&legacy.config, &whole.config);
        for task in whole.tasks.iter().filter(|task| list == "exports" || task.summary.id != id) {
            let same = legacy.tasks.iter().find(|it| it.summary.id == task.summary.id).unwrap();
            prop_assert_eq!((&same.summary, &same.side, &same.log), (&task.summary, &task.side, &task.log));
        }
        for export in whole.exports.iter().filter(|export| list == "tasks" || export.id != id) {
            prop_assert!(legacy.exports.contains(export));
        }
    }

    #[test]
    fn whatever_stands_in_the_configuration_costs_no_record(
        key in prop_oneof![Just("sandboxRoot"), Just("allowedTools"), Just("timeoutMs"), Just("presetId")],
        replacement in any_json(),
    ) {
        let mut file = genuine();
        file["config"][key] = HOLE.into();
        let legacy = import(file.to_string().replace(&format!("\"{HOLE}\""), &replacement)).unwrap();
        prop_assert_eq!((legacy.tasks.len(), legacy.exports.len()), (11, 7));
        prop_assert!(legacy.config.allow_remember_choice);
    }

    #[test]
    fn no_bytes_are_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..200), from in any::<prop::sample::Index>()) {
        let _ = import(&bytes);
        // In the middle of what is well-formed.
        let mut file = FILES[1].0.as_bytes().to_vec();
        let from = from.index(file.len());
        let to = (from + bytes.len()).min(file.len());
        file.splice(from..to, bytes);
        let _ = import(file);
    }

    #[test]
    fn a_file_that_was_cut_off_is_refused_whole(to in any::<prop::sample::Index>()) {
        let text = FILES[0].0.trim_end();
        prop_assert!(import(&text.as_bytes()[..to.index(text.len())]).is_err());
    }
}
