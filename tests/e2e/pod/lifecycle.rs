//! From `initialize` to the end: what each of them promises, in whatever order a host comes with them.

use std::time::{SystemTime, UNIX_EPOCH};

use cofferdam_protocol::pod::{Config, INTERRUPTED};
use cofferdam_tests::files;
use cofferdam_tests::pod::{held, reserve, told, turn, with};
use serde_json::{Value, json};

use super::{only_these_keys, site, site_of_ordinary_user};

/// The configuration of a new database, as the protocol's golden lines freeze it.
fn defaults() -> Value {
    serde_json::to_value(Config::default()).unwrap()
}

#[test]
fn initialize_of_a_new_database_answers_the_defaults_and_nothing_else() {
    let site = site_of_ordinary_user();
    let mut pod = site.spawn();
    let result = pod.ok("initialize", site.initialize());
    let names = "protocol coreVersion schemaVersion dbPath config tasks exports diagnostics";
    only_these_keys(&result, names);
    assert_eq!(result["protocol"], 1);
    assert_eq!(result["coreVersion"], "0.2.0");
    assert_eq!(result["schemaVersion"], 1);
    assert_eq!(result["dbPath"], json!(site.db()));
    assert_eq!(result["config"], defaults());
    assert_eq!(result["tasks"], json!([]));
    assert_eq!(result["exports"], json!([]));
    for diagnostic in result["diagnostics"].as_array().unwrap() {
        only_these_keys(diagnostic, "at level message");
        assert_ne!(diagnostic["level"], "error", "{diagnostic}");
    }
    assert_eq!(pod.ok("config.get", json!({}))["config"], defaults());
    assert!(site.db().is_file());
}

#[test]
fn before_initialize_state_methods_say_what_is_missing() {
    let site = site();
    let mut pod = site.spawn();
    for (method, params) in [
        ("task.list", json!({})),
        ("config.get", json!({})),
        ("config.set", json!({"patch": {}})),
        ("task.get", json!({"taskId": "a"})),
        ("task.reserve", reserve("a")),
        ("task.heartbeat", held("a")),
        ("task.bulkCleanup", json!({})),
        ("export.list", json!({})),
    ] {
        let error = pod.refused("CORE_UNAVAILABLE", method, params);
        assert_eq!(error["data"], json!({"reason": "NOT_INITIALIZED"}), "{method}");
    }
    let diagnostics = pod.ok("diagnostics.get", json!({}));
    assert_eq!(diagnostics["initialized"], false);
    assert_eq!(diagnostics["config"], json!(null));
    assert_eq!(diagnostics["dbPath"], "");
}

#[test]
fn another_protocol_touches_nothing_and_the_right_one_may_still_come() {
    let site = site();
    let mut pod = site.spawn();
    for protocol in [0, 2, -1, 1_i64 << 40] {
        let error = pod.refused(
            "PROTOCOL_MISMATCH",
            "initialize",
            with(&site.initialize(), json!({"protocol": protocol})),
        );
        assert_eq!(error["data"], json!({"expected": 1, "actual": protocol}));
    }
    for protocol in [json!("1"), json!(1.5), json!(null), json!([1])] {
        pod.refused("BAD_REQUEST", "initialize", with(&site.initialize(), json!({"protocol": protocol})));
    }
    let mut without = site.initialize();
    without.as_object_mut().unwrap().remove("protocol");
    pod.refused("BAD_REQUEST", "initialize", without);
    assert_eq!(files::names(site.path("db")), Vec::<String>::new());
    pod.ok("initialize", site.initialize());
    pod.ok("task.list", json!({}));
}

#[test]
fn the_database_path_must_be_absolute_and_the_directories_above_it_are_made() {
    let site = site();
    let mut pod = site.spawn();
    for path in [json!("pod.db"), json!("./db/pod.db"), json!(""), json!(5), json!(null)] {
        pod.refused("BAD_REQUEST", "initialize", with(&site.initialize(), json!({"dbPath": path})));
    }
    let mut without = site.initialize();
    without.as_object_mut().unwrap().remove("dbPath");
    pod.refused("BAD_REQUEST", "initialize", without);
    assert_eq!(files::names(site.path("cwd")), Vec::<String>::new());
    let deep = site.path("home/new/isolation-pod/pod.db");
    pod.ok("initialize", json!({"protocol": 1, "dbPath": deep}));
    assert!(deep.is_file());
}

#[test]
fn what_a_host_says_of_itself_may_be_odd() {
    for odd in [
        json!({"hostPid": null, "platform": "amiga", "legacyJsonPath": null}),
        json!({"hostPid": "x", "platform": 5, "legacyJsonPath": ""}),
        json!({"hostPid": -1, "features": ["export.progress", "unheard.of"], "later": {"than": "this"}}),
        json!({"hostPid": 1_i64 << 40, "features": []}),
    ] {
        let site = site();
        let mut pod = site.spawn();
        pod.ok("initialize", with(&site.initialize(), odd));
        pod.ok("task.list", json!({}));
    }
}

#[test]
fn a_host_of_another_version_is_a_warning() {
    let site = site();
    let mut pod = site.spawn();
    let result = pod.ok("initialize", with(&site.initialize(), json!({"pluginVersion": "0.3.9"})));
    let warns = |list: &Value| {
        let list = list.as_array().unwrap();
        list.iter().any(|it| it["level"] == "warn" && it["message"].as_str().unwrap().contains("0.3.9"))
    };
    assert!(warns(&result["diagnostics"]), "{result}");
    assert!(warns(&pod.ok("diagnostics.get", json!({}))["diagnostics"]));
}

#[test]
fn a_second_initialize_shows_what_is_and_interrupts_nothing() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.run("a");
    pod.heard();
    let result = pod.ok("initialize", site.initialize());
    assert_eq!(result["tasks"][0]["id"], "a");
    assert_eq!(result["tasks"][0]["status"], "running");
    assert_eq!(result["config"]["sandboxRoot"], json!(site.root()));
    assert_eq!(told(&pod.heard()), Vec::<String>::new());
    pod.ok("task.heartbeat", held("a"));

    let other = with(&site.initialize(), json!({"dbPath": site.path("db/other.db")}));
    pod.refused("BAD_REQUEST", "initialize", other);
    assert!(!site.path("db/other.db").exists());
    pod.ok("task.heartbeat", held("a"));
}

#[test]
fn a_restart_interrupts_what_ran_and_what_waited_and_clears_the_leases() {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 2}));
    pod.finish("done");
    pod.run("a");
    pod.reserve("starting");
    pod.reserve("queued");
    let before = now();
    let done = pod.task("done");
    pod.kill();

    let mut pod = site.spawn();
    let result = pod.ok("initialize", site.initialize());
    let tasks = result["tasks"].as_array().unwrap();
    let ids: Vec<_> = tasks.iter().map(|task| task["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["queued", "starting", "a", "done"], "newest first");
    for task in &tasks[..3] {
        assert_eq!(task["status"], "interrupted", "{task}");
        assert_eq!(task["error"], INTERRUPTED, "{task}");
        assert_eq!(task["error"], "宿主重启，任务已中断");
        assert!(task["endedAt"].as_i64().unwrap() >= before, "{task}");
        assert_eq!(task["queuedPosition"], 0, "{task}");
        assert_eq!(task["turnDeadline"], 0, "{task}");
    }
    assert_eq!(tasks[3], done);
    for task in ["a", "starting", "queued", "done"] {
        pod.refused("STALE_LEASE", "task.heartbeat", held(task));
        pod.refused("STALE_LEASE", "task.turnStarted", turn(task, 2));
    }
    assert_eq!(told(&pod.heard()), Vec::<String>::new(), "nothing is dispatched");
}

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

#[test]
fn diagnostics_count_what_is_there() {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 2}));
    pod.finish("done");
    for task in ["a", "b", "c"] {
        pod.reserve(task);
    }
    let report = pod.ok("diagnostics.get", json!({}));
    for key in ["protocol", "schemaVersion", "coreVersion", "pid", "initialized", "uptimeMs"] {
        assert!(!report[key].is_null(), "{key}: {report}");
    }
    assert_eq!(report["dbPath"], json!(site.db()));
    assert!(report["dbSizeBytes"].as_u64().unwrap() > 0);
    assert_eq!(report["counts"]["tasks"]["completed"], 1);
    assert_eq!(report["counts"]["tasks"]["starting"], 2);
    assert_eq!(report["counts"]["tasks"]["queued"], 1);
    assert_eq!(report["counts"]["tasks"]["failed"], 0);
    assert_eq!(report["counts"]["exports"], 0);
    assert_eq!(report["counts"]["leases"], 4);
    assert_eq!(report["queue"], json!({"length": 1, "running": 2, "max": 2}));
    assert_eq!(report["config"]["maxConcurrent"], 2);
    assert_eq!(report["logPath"], json!(site.path("db/core.log")));
    assert!(report["diagnostics"].as_array().unwrap().len() <= 50);
}
