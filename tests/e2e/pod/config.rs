//! The configuration: what a patch may change, what it says about the rest, and which sandbox roots there can be.

use cofferdam_tests::files;
use cofferdam_tests::pod::{PodSite, Sidecar, reserve, with};
use serde_json::{Value, json};

use super::{differing, site, site_of_ordinary_user};

/// Sets a patch; returns which keys it changed to what, and how many messages came.
#[track_caller]
fn set(pod: &mut Sidecar, patch: Value) -> (Value, Vec<String>) {
    let before = pod.ok("config.get", json!({}))["config"].clone();
    let result = pod.ok("config.set", json!({"patch": patch}));
    let after = &result["config"];
    assert_eq!(&pod.ok("config.get", json!({}))["config"], after, "what is answered is what is so");
    let changed = differing(&before, after).into_iter().map(|key| (key.to_owned(), after[key].clone()));
    let messages = result["messages"].as_array().unwrap();
    (changed.collect(), messages.iter().map(|message| message.as_str().unwrap().to_owned()).collect())
}

#[test]
fn numbers_are_clamped_with_a_message_each() {
    let site = site();
    let mut pod = site.start();
    for (patch, expected, messages) in [
        (
            json!({"maxConcurrent": 99, "timeoutMs": 1, "retentionDays": -1, "previewBytes": 1, "previewChars": 5}),
            json!({"maxConcurrent": 8, "timeoutMs": 30_000, "previewBytes": 16_384, "previewChars": 200}),
            5,
        ),
        (
            json!({"maxConcurrent": 0, "timeoutMs": 9_000_000, "retentionDays": 4000, "previewBytes": 1 << 30}),
            json!({"maxConcurrent": 1, "timeoutMs": 7_200_000, "retentionDays": 3650, "previewBytes": 1_048_576}),
            4,
        ),
        (
            json!({"previewChars": 20_001, "maxTasks": 0, "maxExports": 5001}),
            json!({"previewChars": 20_000, "maxTasks": 1, "maxExports": 5000}),
            3,
        ),
        (json!({"maxTasks": 5001, "maxExports": -5}), json!({"maxTasks": 5000, "maxExports": 1}), 2),
        (json!({"maxConcurrent": 2.9}), json!({"maxConcurrent": 2}), 1),
        (json!({"maxConcurrent": 1e300}), json!({"maxConcurrent": 8}), 1),
        (
            json!({"maxConcurrent": 5, "timeoutMs": 60_000}),
            json!({"maxConcurrent": 5, "timeoutMs": 60_000}),
            0,
        ),
        // What is so already needs no remark.
        (json!({"maxConcurrent": 5}), json!({}), 0),
        (json!({}), json!({}), 0),
    ] {
        let (changed, said) = set(&mut pod, patch.clone());
        assert_eq!(changed, expected, "{patch}");
        assert_eq!(said.len(), messages, "{patch}: {said:?}");
    }
}

#[test]
fn what_is_of_the_wrong_kind_is_ignored_with_a_message_that_names_the_key() {
    let site = site();
    let mut pod = site.start();
    let patch = json!({"logLevel": "loud", "sandboxProbeMode": "x", "unknown": 1, "allowWrites": "yes"});
    let (changed, said) = set(&mut pod, patch);
    assert_eq!(changed, json!({}));
    assert_eq!(said.len(), 4, "{said:?}");
    for (key, value) in [
        ("maxConcurrent", json!("5")),
        ("timeoutMs", json!(null)),
        ("readContext", json!(1)),
        ("queueEnabled", json!(null)),
        ("presetId", json!(5)),
        ("logLevel", json!("INFO")),
        ("sandboxProbeMode", json!(true)),
        ("sandboxRoot", json!(["/x"])),
        ("allowedTools", json!("read")),
        ("maxconcurrent", json!(5)),
    ] {
        let (changed, said) = set(&mut pod, json!({key: value, "maxTasks": 100}));
        assert!(changed.get(key).is_none(), "{key}: {changed}");
        assert_eq!(said.len(), 1, "{key}: {said:?}");
        assert!(said[0].contains(key), "{key}: {said:?}");
    }
    assert_eq!(pod.ok("config.get", json!({}))["config"]["maxTasks"], 100, "the rest of the patch applies");
}

#[test]
fn the_tools_are_trimmed_told_apart_and_never_none() {
    let site = site();
    let mut pod = site.start();
    let (changed, said) = set(&mut pod, json!({"allowedTools": []}));
    assert_eq!((changed, said.len()), (json!({}), 1));
    let (changed, said) = set(&mut pod, json!({"allowedTools": [" ", 5, null]}));
    assert_eq!((changed, said.len()), (json!({}), 1));
    let (changed, said) = set(&mut pod, json!({"allowedTools": ["read", "read", " ", 3]}));
    assert_eq!(changed, json!({"allowedTools": ["read"]}));
    assert!(said.len() <= 1, "one message a key: {said:?}");
    let many: Vec<_> = (0..300).map(|i| format!("tool{i}")).collect();
    let (changed, said) = set(&mut pod, json!({"allowedTools": many}));
    assert_eq!(changed["allowedTools"].as_array().unwrap().len(), 256);
    assert_eq!(said.len(), 1, "{said:?}");
    let (changed, said) = set(&mut pod, json!({"allowedTools": [" glob ", "grep"]}));
    assert_eq!(changed, json!({"allowedTools": ["glob", "grep"]}), "{said:?}");
}

#[test]
fn a_patch_that_is_no_object_is_a_bad_request() {
    let site = site();
    let mut pod = site.start();
    for method in ["config.set", "config.validate"] {
        for params in [json!({"patch": 5}), json!({"patch": []}), json!({"patch": null}), json!({})] {
            pod.refused("BAD_REQUEST", method, params);
        }
    }
}

#[test]
fn validate_tells_the_same_as_set_and_keeps_nothing() {
    let site = site();
    let mut pod = site.start();
    let before = pod.ok("config.get", json!({}))["config"].clone();
    let patch = json!({
        "patch": {"maxConcurrent": 2, "timeoutMs": 1, "sandboxRoot": "/", "logLevel": "loud", "presetId": "p"},
    });
    let validated = pod.ok("config.validate", patch.clone());
    assert_eq!(validated["config"]["maxConcurrent"], 2);
    assert_eq!(pod.ok("config.get", json!({}))["config"], before);
    assert_eq!(pod.ok("config.set", patch), validated);
}

#[test]
fn the_configuration_survives_a_restart_and_a_kill() {
    let site = site();
    let mut pod = site.start_rooted();
    let all = json!({
        "allowWrites": false,
        "allowedTools": ["read", "日本語"],
        "timeoutMs": 45_000,
        "readContext": false,
        "maxConcurrent": 7,
        "queueEnabled": false,
        "enableExport": false,
        "allowRememberChoice": true,
        "presetId": "code",
        "maxTasks": 9,
        "maxExports": 8,
        "retentionDays": 7,
        "previewBytes": 20_000,
        "previewChars": 300,
        "exportVerify": false,
        "sandboxProbeMode": "warn",
        "autoResumeOnOpen": false,
        "logLevel": "off",
    });
    let config = pod.configure(all);
    pod.shutdown();
    let mut pod = site.start();
    assert_eq!(pod.ok("config.get", json!({}))["config"], config);
    let config = pod.configure(json!({"maxConcurrent": 4}));
    pod.kill();
    assert_eq!(site.start().ok("config.get", json!({}))["config"], config);
}

/// Fails unless the sandbox root is refused with that code while the rest of the patch applies.
#[track_caller]
fn root_is_refused(pod: &mut Sidecar, root: &Value, code: &str) {
    for (method, others) in [("config.validate", 4), ("config.set", 5)] {
        let before = pod.ok("config.get", json!({}))["config"]["sandboxRoot"].clone();
        let result = pod.ok(method, json!({"patch": {"sandboxRoot": root, "maxConcurrent": others}}));
        assert_eq!(result["config"]["sandboxRoot"], before, "{root}");
        assert_eq!(result["config"]["maxConcurrent"], others, "{root}");
        let messages = result["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 1, "{root}: {messages:?}");
        let start = format!("sandboxRoot: {code}");
        assert!(messages[0].as_str().unwrap().starts_with(&start), "{root}: {messages:?}");
    }
}

#[test]
fn what_must_not_be_written_to_is_no_sandbox_root_nor_is_what_contains_it() {
    let mut site = site();
    files::mkdir(site.path("a/dsh"));
    site.set("DSH_HOME", site.path("a/dsh").display());
    let mut pod = site.start_rooted();
    for protected in ["home", "cwd", "db", "a/dsh"] {
        for above in site.path(protected).ancestors() {
            root_is_refused(&mut pod, &json!(above), "ROOT_PROTECTED");
        }
        root_is_refused(&mut pod, &json!(format!("{}//", site.path(protected).display())), "ROOT_PROTECTED");
    }
    // A link to it is it.
    files::symlink(site.path("home"), site.path("link"));
    files::symlink(site.path(""), site.path("outside/up"));
    for link in ["link", "outside/up", "outside/up/link", "outside/up/a"] {
        root_is_refused(&mut pod, &json!(site.path(link)), "ROOT_PROTECTED");
    }
    // Below is not above.
    for below in ["home/pods", "cwd/pods", "a/dsh/pods", "a/other", "homestead"] {
        let result = pod.ok("config.set", json!({"patch": {"sandboxRoot": site.path(below)}}));
        assert_eq!(result["config"]["sandboxRoot"], json!(site.path(below)), "{result}");
    }
}

#[test]
fn without_dsh_home_it_is_where_the_database_says_or_in_the_home() {
    let site = site();
    root_is_refused(&mut site.start_rooted(), &json!(site.path("home/.dsh")), "ROOT_PROTECTED");
    let mut pod = site.spawn();
    let db = site.path("elsewhere/profile/isolation-pod/pod.db");
    pod.ok("initialize", with(&site.initialize(), json!({"dbPath": db})));
    for protected in ["elsewhere/profile/isolation-pod", "elsewhere/profile", "elsewhere"] {
        root_is_refused(&mut pod, &json!(site.path(protected)), "ROOT_PROTECTED");
    }
    pod.configure(json!({"sandboxRoot": site.path("elsewhere/pods")}));
}

#[test]
fn a_sandbox_root_is_absolute_and_called_by_its_shortest_name() {
    let site = site();
    let mut pod = site.start();
    let root = site.root();
    let config = pod.configure(json!({"sandboxRoot": format!("{}///", root.display())}));
    assert_eq!(config["sandboxRoot"], json!(root));
    for relative in ["rel/dir", ".", "..", "~", "E:\\pod-work", "a\u{0}b"] {
        root_is_refused(&mut pod, &json!(relative), "BAD_ROOT");
    }
    // A root can be taken away again.
    assert_eq!(pod.configure(json!({"sandboxRoot": ""}))["sandboxRoot"], "");
    pod.refused("NO_SANDBOX_ROOT", "task.reserve", reserve("a"));
}

#[test]
fn a_root_that_became_protected_is_refused_when_a_task_is_reserved() {
    let site = site();
    let pod = site.start_rooted();
    pod.shutdown();
    // Now the home lies in it.
    let command = &mut site.command();
    command.env("HOME", site.root().join("home"));
    let mut pod = Sidecar::spawn(command);
    pod.ok("initialize", site.initialize());
    pod.refused("ROOT_PROTECTED", "task.reserve", reserve("a"));
    assert_eq!(site.in_root(), Vec::<String>::new());
}

#[test]
fn a_root_that_was_removed_is_made_again_and_one_that_cannot_be_made_is_bad() {
    let site = site_of_ordinary_user();
    let mut pod = site.start_rooted();
    pod.reserve("a");
    files::remove(site.root());
    pod.reserve("b");
    assert_eq!(site.in_root(), ["b"]);
    files::remove(site.root());
    files::write(site.root(), "a file");
    pod.refused("BAD_ROOT", "task.reserve", reserve("c"));
    files::remove(site.root());
    files::mkdir(site.root());
    files::chmod(site.root(), 0o500);
    let error = pod.refused("BAD_ROOT", "task.reserve", reserve("c"));
    assert!(error["data"].get("os").is_some(), "{error}");
    no_such_task(&site, &mut pod, "c");
}

#[track_caller]
fn no_such_task(site: &PodSite, pod: &mut Sidecar, task: &str) {
    pod.refused("TASK_NOT_FOUND", "task.get", json!({"taskId": task}));
    assert!(!site.root().join(task).exists());
}
