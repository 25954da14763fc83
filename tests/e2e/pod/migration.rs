//! The predecessor's file: taken over once, as much of it as makes sense, and never changed.

use cofferdam_protocol::pod::INTERRUPTED;
use cofferdam_tests::files;
use cofferdam_tests::pod::{PodSite, Sidecar, held, with};
use serde_json::{Value, json};

use super::site;

/// A file of version 0.1.3 and what it means.
const V0_1_3: (&str, &str) = (
    include_str!("../../../storage/src/pod/legacy/vectors/legacy-isolation-pod-v0.1.3.json"),
    include_str!("../../../storage/src/pod/legacy/vectors/legacy-isolation-pod-v0.1.3.expected.json"),
);
/// A file of version 0.1.0 and what it means.
const V0_1_0: (&str, &str) = (
    include_str!("../../../storage/src/pod/legacy/vectors/legacy-isolation-pod-v0.1.0.json"),
    include_str!("../../../storage/src/pod/legacy/vectors/legacy-isolation-pod-v0.1.0.expected.json"),
);

/// A sidecar that has taken over such a file.
fn migrated(site: &PodSite, file: &str) -> Sidecar {
    files::write(site.legacy(), file);
    site.start()
}

/// The transcript of a migrated task.
#[track_caller]
fn log(pod: &mut Sidecar, task: &str) -> Vec<Value> {
    pod.ok("task.legacyLog", json!({"taskId": task}))["entries"].as_array().unwrap().clone()
}

/// The diagnostics of that level.
fn diagnostics(pod: &mut Sidecar, level: &str) -> Vec<String> {
    let report = pod.ok("diagnostics.get", json!({}));
    let all = report["diagnostics"].as_array().unwrap().iter().filter(|it| it["level"] == level);
    all.map(|it| it["message"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn comes_out_as_expected((file, expected): (&str, &str)) {
    let site = site();
    let mut pod = migrated(&site, file);
    let expected: Value = serde_json::from_str(expected).unwrap();
    let tasks = expected["tasks"].as_array().unwrap();
    assert_eq!(pod.tasks().len(), tasks.len());
    for expected in tasks {
        let id = expected["id"].as_str().unwrap();
        let task = pod.task(id);
        for (key, value) in expected.as_object().unwrap() {
            match key.as_str() {
                "legacyLogCount" => assert_eq!(log(&mut pod, id).len(), *value, "{id}"),
                "legacyLogKinds" => {
                    let kinds: Vec<_> = log(&mut pod, id).iter().map(|entry| entry["kind"].clone()).collect();
                    assert_eq!(&json!(kinds), value, "{id}");
                }
                // The time of the import stands in for one that is not known.
                "endedAt" if *value == 0 => {}
                _ => assert_eq!(&task[key], value, "{id}: {key}"),
            }
        }
    }
    let exports = pod.ok("export.list", json!({}))["exports"].as_array().unwrap().clone();
    let expected = expected["exports"].as_array().unwrap();
    assert_eq!(exports.len(), expected.len());
    for expected in expected {
        let export = exports.iter().find(|export| export["id"] == expected["id"]);
        let export = export.unwrap_or_else(|| panic!("{} is missing", expected["id"]));
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&export[key], value, "{}: {key}", expected["id"]);
        }
    }
    assert_eq!(files::read(site.legacy()), file.as_bytes(), "the file is not changed");
    // What was deleted does not come back.
    let id = tasks[0]["id"].as_str().unwrap();
    pod.ok("task.delete", json!({"taskId": id}));
    pod.shutdown();
    let mut pod = site.start();
    assert_eq!(pod.tasks().len(), tasks.len() - 1);
    pod.refused("TASK_NOT_FOUND", "task.get", json!({"taskId": id}));
}

#[test]
fn a_file_of_version_0_1_3_comes_out_as_expected() {
    comes_out_as_expected(V0_1_3);
}

#[test]
fn a_file_of_version_0_1_0_comes_out_as_expected() {
    comes_out_as_expected(V0_1_0);
}

#[test]
fn a_transcript_comes_out_entry_by_entry_with_half_an_emoji_replaced() {
    let site = site();
    let mut pod = migrated(&site, V0_1_3.0);
    let expected: Value = serde_json::from_str(V0_1_3.1).unwrap();
    let id = expected["tasks"][0]["id"].as_str().unwrap();
    let entries = log(&mut pod, id);
    for entry in &entries {
        super::only_these_keys(entry, "seq type kind time text think");
    }
    let cut = |entry: &&Value| entry["text"].as_str().unwrap().ends_with('\u{fffd}');
    let cut: Vec<_> = entries.iter().filter(cut).map(|entry| entry["seq"].clone()).collect();
    assert_eq!(cut, [6]);
    let seqs: Vec<_> = entries.iter().map(|entry| entry["seq"].as_i64().unwrap()).collect();
    assert!(seqs.is_sorted(), "{seqs:?}");
}

#[test]
fn a_migrated_task_can_be_looked_at_and_deleted_but_not_worked_with() {
    let site = site();
    let mut pod = migrated(&site, V0_1_3.0);
    let check = json!({"mode": "workspace-write", "root": "", "probe": "denied", "fsDenied": true, "at": 1});
    let id = "pod-mabc001";
    let before = pod.task(id);
    for (method, params) in [
        ("task.reattach", json!({})),
        ("task.markStarting", json!({})),
        ("task.markRunning", json!({})),
        ("task.turnStarted", json!({"turn": 3})),
        ("task.turnEnded", json!({"turn": 2, "reason": "completed"})),
        ("task.setLastText", json!({"text": "x"})),
        ("task.setSandboxCheck", json!({"check": check})),
        ("task.setAvailableTools", json!({"tools": []})),
        ("task.setError", json!({"code": "X", "message": "x"})),
        ("task.heartbeat", json!({})),
        ("task.cancel", json!({})),
        ("sandbox.prepare", json!({})),
    ] {
        pod.refused("LEGACY_READONLY", method, with(&held(id), params));
    }
    assert_eq!(pod.task(id), before);
    let session = pod.ok("task.bySession", json!({"sessionId": "pod-session-pod-mabc001"}));
    assert_eq!(session["task"]["id"], id);
    pod.ok("task.delete", json!({"taskId": id}));
    pod.refused("TASK_NOT_FOUND", "task.legacyLog", json!({"taskId": id}));
    let before = pod.ok("export.list", json!({}));
    assert!(pod.ok("task.bulkCleanup", json!({"statuses": ["completed"]}))["deleted"].as_u64().unwrap() > 0);
    assert_eq!(pod.ok("export.list", json!({})), before, "export records stay");
}

#[test]
fn a_task_of_today_has_no_transcript() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.finish("a");
    assert_eq!(pod.ok("task.legacyLog", json!({"taskId": "a"})), json!({"entries": []}));
}

#[test]
fn a_broken_file_is_an_error_to_read_about_and_imported_once_it_is_repaired() {
    for broken in ["{\"tasks\": [", "", "[]", "5", "{\"version\": 2, \"tasks\": []}", "\u{0}\u{0}"] {
        let site = site();
        let mut pod = migrated(&site, broken);
        assert!(!diagnostics(&mut pod, "error").is_empty(), "{broken}");
        assert!(pod.tasks().is_empty(), "{broken}");
        assert_eq!(files::read(site.legacy()), broken.as_bytes());
        pod.shutdown();
        let mut pod = migrated(&site, V0_1_3.0);
        assert_eq!(pod.tasks().len(), 11, "{broken}");
    }
}

#[test]
fn a_file_that_shows_up_later_is_imported_then() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.finish("a");
    pod.shutdown();
    let mut pod = migrated(&site, V0_1_0.0);
    assert_eq!(pod.tasks().len(), 8);
    assert_eq!(pod.ok("config.get", json!({}))["config"]["sandboxRoot"], json!(site.root()), "ours wins");
    assert_eq!(pod.ok("task.reattach", held("a"))["task"]["status"], "starting");
}

#[test]
fn one_bad_element_costs_that_element() {
    let site = site();
    let tasks = json!([
        5,
        {"id": "first", "label": "one", "status": "running", "createdAt": 5},
        {"id": "../x", "label": "two"},
        {"id": "first", "label": "again", "status": "completed", "createdAt": "6"},
        {"id": "odd", "label": 5, "status": "dreaming", "createdAt": -5, "turns": "many", "error": true, "allow": {}},
    ]);
    let mut pod = migrated(&site, &json!({"version": 1, "tasks": tasks}).to_string());
    let mut ids: Vec<_> = pod.tasks().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    assert_eq!(ids, ["first", "odd"]);
    assert_eq!(pod.task("first")["label"], "again", "the last one counts");
    let odd = pod.task("odd");
    assert_eq!(odd["status"], "interrupted");
    assert_eq!(odd["label"], "5");
    assert_eq!(odd["createdAt"], 0);
    assert_eq!(odd["turns"], 1);
    assert_eq!(odd["allow"], json!([]));
    assert!(odd["error"] == INTERRUPTED || odd["error"] == "true", "{odd}");
}

#[test]
fn numbers_that_json_cannot_hold_do_not_cost_the_file() {
    let site = site();
    let file =
        r#"{"version": 1, "tasks": [{"id": "a", "label": "\ud83d", "createdAt": 1e400, "startedAt": -5}]}"#;
    let mut pod = migrated(&site, file);
    let task = pod.task("a");
    assert_eq!(task["createdAt"], 0);
    assert_eq!(task["startedAt"], 0);
    assert_eq!(task["label"], "\u{fffd}");
}

#[test]
fn the_configuration_is_taken_over_by_the_rules_of_today() {
    let site = site();
    let root = site.root();
    let config = json!({
        "sandboxRoot": format!("{}/", root.display()), "timeoutMs": 30_000.5, "maxConcurrent": 99, "presetId": "standard",
        "allowedTools": ["pwsh", "read"], "allowWrites": false, "unknown": 1,
    });
    let mut pod = migrated(&site, &json!({"version": 1, "config": config}).to_string());
    let config = pod.ok("config.get", json!({}))["config"].clone();
    assert_eq!(config["sandboxRoot"], json!(root));
    assert_eq!(config["timeoutMs"], 30_000);
    assert_eq!(config["maxConcurrent"], 8);
    assert_eq!(config["presetId"], "standard");
    assert_eq!(config["allowedTools"], json!(["pwsh", "read"]));
    assert_eq!(config["allowWrites"], false);
    assert_eq!(config["maxTasks"], 200);
}

#[test]
fn of_too_many_tasks_the_newest_are_kept() {
    let site = site();
    let tasks: Vec<_> = (0..450)
        .map(|i| json!({"id": format!("t{i}"), "label": "x", "status": "completed", "createdAt": 1000 + i, "endedAt": 1000 + i}))
        .collect();
    let mut pod = migrated(&site, &json!({"version": 1, "tasks": tasks}).to_string());
    assert_eq!(pod.tasks().len(), 200);
    assert_eq!(pod.status("t449"), "completed");
    assert_eq!(pod.status("t250"), "completed");
    pod.refused("TASK_NOT_FOUND", "task.get", json!({"taskId": "t249"}));
}
