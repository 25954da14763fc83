//! The life of one task: which call is taken in which status, and what it makes of the task.

use cofferdam_tests::files;
use cofferdam_tests::pod::{Sidecar, ended, held, told, turn, with};
use serde_json::{Value, json};

use super::{differing, one_of_each, site};

/// A verdict of the self-test.
fn check(task: &str, probe: &str) -> Value {
    let check = json!({
        "mode": "workspace-write", "root": "/r", "probe": probe, "fsDenied": probe == "denied", "note": "", "at": 1,
    });
    with(&held(task), json!({"check": check}))
}

/// The request changes nothing and tells nobody.
#[track_caller]
fn changes_nothing(pod: &mut Sidecar, method: &str, params: Value) {
    let task = params["taskId"].as_str().unwrap().to_owned();
    let before = pod.task(&task);
    pod.heard();
    let result = pod.ok(method, params.clone());
    assert_eq!(result["task"], before, "{method} {params}");
    assert_eq!(pod.task(&task), before, "{method} {params}");
    assert_eq!(told(&pod.heard()), Vec::<String>::new(), "{method} {params}");
}

#[test]
fn marks_move_a_task_once_and_then_change_nothing() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.reserve("a");
    changes_nothing(&mut pod, "task.markStarting", held("a"));
    let running = pod.ok("task.markRunning", held("a"))["task"].clone();
    assert_eq!(running["status"], "running");
    assert_eq!(told(&pod.heard()), ["changed a running"]);
    changes_nothing(&mut pod, "task.markRunning", held("a"));
    changes_nothing(&mut pod, "task.markStarting", held("a"));
    changes_nothing(&mut pod, "task.heartbeat", held("a"));
}

#[test]
fn a_turn_has_a_number_a_count_and_a_deadline() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.reserve("a");
    let task = pod.ok("task.turnStarted", turn("a", 1))["task"].clone();
    assert_eq!(task["status"], "running");
    assert_eq!(task["turns"], 1);
    let (begun, deadline) = (task["startedAt"].as_i64().unwrap(), task["turnDeadline"].as_i64().unwrap());
    assert!((deadline - begun - 600_000).abs() < 1000, "{task}");
    changes_nothing(&mut pod, "task.turnStarted", turn("a", 1));
    let task = pod.complete("a");
    assert_eq!(task["status"], "completed");
    assert_eq!(task["turnDeadline"], 0);
    assert!(task["endedAt"].as_i64().unwrap() >= begun);
}

#[test]
fn a_follow_up_goes_on_where_the_task_had_ended() {
    let site = site();
    let mut pod = site.start_rooted();
    for (task, reason) in [("a", "completed"), ("b", "error"), ("c", "interrupted"), ("d", "aborted")] {
        pod.run(task);
        pod.ok("task.turnEnded", ended(task, 1, reason));
        let again = pod.ok("task.turnStarted", turn(task, 2))["task"].clone();
        assert_eq!(again["status"], "running", "{reason}");
        assert_eq!(again["turns"], 2, "{reason}");
        assert!(again["turnDeadline"].as_i64().unwrap() > 0, "{reason}");
        let done = pod.ok("task.turnEnded", ended(task, 2, "completed"))["task"].clone();
        assert_eq!(done["status"], "completed", "{reason}");
        assert_eq!(done["turns"], 2, "{reason}");
    }
}

#[test]
fn the_reason_of_a_turns_end_decides_the_status() {
    let site = site();
    let mut pod = site.start_with(json!({"maxTasks": 5000}));
    let cases = [
        (json!({"reason": "completed"}), "completed"),
        (json!({"reason": "aborted"}), "cancelled"),
        (json!({"reason": "aborted", "timedOut": true}), "timeout"),
        (json!({"reason": "completed", "timedOut": true}), "timeout"),
        (json!({"timedOut": true}), "timeout"),
        (json!({"reason": "error"}), "failed"),
        (json!({"reason": "blocked"}), "failed"),
        (json!({"reason": "max-tokens"}), "completed"),
        (json!({"reason": "forked"}), "completed"),
        (json!({"reason": "interrupted"}), "interrupted"),
        (json!({"reason": "completed", "timedOut": false}), "completed"),
    ];
    for (i, (params, status)) in cases.into_iter().enumerate() {
        let task = format!("t{i}");
        pod.run(&task);
        let ended = pod.ok("task.turnEnded", with(&turn(&task, 1), params.clone()))["task"].clone();
        assert_eq!(ended["status"], status, "{params}");
        assert!(ended["endedAt"].as_i64().unwrap() > 0, "{params}");
        assert_eq!(ended["turnDeadline"], 0, "{params}");
        let explained = matches!(status, "failed" | "timeout");
        assert_eq!(ended["error"].as_str().unwrap().is_empty(), !explained, "{ended}");
    }
}

#[test]
fn an_unknown_reason_fails_the_task_and_warns() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.run("a");
    let task = pod.ok("task.turnEnded", ended("a", 1, "weird"))["task"].clone();
    assert_eq!(task["status"], "failed");
    assert!(task["error"].as_str().unwrap().contains("weird"), "{task}");
    assert!(told(&pod.heard()).contains(&"warning".to_owned()));
}

#[test]
fn a_turns_end_without_a_reason_or_a_number_is_a_bad_request() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.run("a");
    for params in [
        json!({"turn": 1}),
        json!({"turn": 1, "timedOut": false}),
        json!({"turn": 1, "reason": 5}),
        json!({"turn": -1, "reason": "completed"}),
        json!({"turn": 1.5, "reason": "completed"}),
        json!({"turn": "1", "reason": "completed"}),
        json!({"turn": null, "reason": "completed"}),
        json!({"reason": "completed"}),
    ] {
        pod.refused("BAD_REQUEST", "task.turnEnded", with(&held("a"), params));
    }
    for params in [json!({}), json!({"turn": -1}), json!({"turn": 0.5}), json!({"turn": null})] {
        pod.refused("BAD_REQUEST", "task.turnStarted", with(&held("a"), params));
    }
    assert_eq!(pod.status("a"), "running");
}

#[test]
fn a_late_end_of_an_older_turn_leaves_the_open_one_alone() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.finish("a");
    pod.ok("task.turnStarted", turn("a", 2));
    changes_nothing(&mut pod, "task.turnEnded", ended("a", 1, "error"));
    assert_eq!(pod.status("a"), "running");
    // A newer one than the open one means that a start was missed.
    let task = pod.ok("task.turnEnded", ended("a", 5, "completed"))["task"].clone();
    assert_eq!(task["status"], "completed");
    assert_eq!(task["turns"], 3);
}

#[test]
fn the_agents_numbers_may_skip_and_start_again() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.reserve("a");
    for (i, number) in [7, 8, 1, 3, 0].into_iter().enumerate() {
        let task = pod.ok("task.turnStarted", turn("a", number))["task"].clone();
        assert_eq!(task["turns"], i + 1, "turn {number}");
        pod.ok("task.turnEnded", ended("a", number, "completed"));
    }
}

#[test]
fn what_has_ended_keeps_its_status_whatever_is_said_of_its_end_later() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.finish("a");
    changes_nothing(&mut pod, "task.turnEnded", ended("a", 1, "error"));
    changes_nothing(&mut pod, "task.turnEnded", ended("a", 9, "error"));
    changes_nothing(&mut pod, "task.cancel", json!({"taskId": "a"}));
    pod.ok("task.setError", with(&held("a"), json!({"code": "X", "message": "late"})));
    let task = pod.task("a");
    assert_eq!(task["status"], "completed");
}

#[test]
fn each_call_has_statuses_in_which_it_is_taken() {
    let site = site();
    let mut pod = one_of_each(&site);
    let cases: [(&str, Value, &str); 13] = [
        ("task.markStarting", held("queued"), "TASK_BUSY"),
        ("task.markStarting", held("ended"), "TASK_NOT_RESUMABLE"),
        ("task.markRunning", held("queued"), "TASK_BUSY"),
        ("task.markRunning", held("ended"), "TASK_NOT_RESUMABLE"),
        ("task.turnStarted", turn("queued", 1), "TASK_BUSY"),
        ("task.turnEnded", ended("queued", 1, "completed"), "BAD_REQUEST"),
        ("task.reattach", held("queued"), "TASK_BUSY"),
        ("task.delete", json!({"taskId": "running"}), "TASK_RUNNING"),
        ("task.delete", json!({"taskId": "starting"}), "TASK_RUNNING"),
        ("sandbox.prepare", json!({"taskId": "ended"}), "TASK_NOT_RESUMABLE"),
        ("task.legacyLog", json!({"taskId": "none"}), "TASK_NOT_FOUND"),
        ("task.bySession", json!({"sessionId": ""}), "BAD_REQUEST"),
        ("task.bySession", json!({"sessionId": 5}), "BAD_REQUEST"),
    ];
    let before = pod.tasks();
    pod.heard();
    for (method, params, code) in cases {
        pod.refused(code, method, params);
    }
    assert_eq!(pod.tasks(), before);
    assert_eq!(told(&pod.heard()), Vec::<String>::new());
    for task in ["queued", "starting", "running"] {
        let prepared = pod.ok("sandbox.prepare", json!({"taskId": task}));
        assert_eq!(prepared["policy"]["taskDir"], json!(site.root().join(task)));
        assert_eq!(prepared["policy"]["root"], json!(site.root()));
        assert_eq!(prepared["task"]["id"], task);
    }
    assert_eq!(pod.ok("task.delete", json!({"taskId": "ended"}))["ok"], true);
    assert!(site.root().join("ended").is_dir(), "the files stay");
}

#[test]
fn a_directory_that_another_agent_replaced_is_made_again_or_refused() {
    let site = site();
    let mut pod = site.start_rooted();
    for task in ["gone", "link"] {
        pod.reserve(task);
        std::fs::remove_dir(site.root().join(task)).unwrap();
    }
    files::symlink(site.outside(), site.root().join("link"));
    pod.ok("sandbox.prepare", json!({"taskId": "gone"}));
    assert!(site.root().join("gone").is_dir());
    pod.refused("PATH_OUTSIDE", "sandbox.prepare", json!({"taskId": "link"}));
    assert!(site.root().join("link").is_symlink(), "it is left as it is");
}

#[test]
fn texts_are_cut_between_characters() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.reserve("a");
    let text = format!("{}{}", "x".repeat(3999), "😀".repeat(500));
    let task = pod.ok("task.setLastText", with(&held("a"), json!({"text": text})))["task"].clone();
    let kept = task["lastText"].as_str().unwrap();
    assert!(kept.chars().count() <= 4000 && kept.chars().count() >= 3999, "{}", kept.chars().count());
    assert!(text.starts_with(kept));
    pod.ok("task.setLastText", with(&held("a"), json!({"text": ""})));
    assert_eq!(pod.task("a")["lastText"], "");
    pod.refused("BAD_REQUEST", "task.setLastText", with(&held("a"), json!({"text": 5})));
    pod.run("b");
    let end = with(&ended("b", 1, "completed"), json!({"lastText": "字".repeat(5000)}));
    assert_eq!(pod.ok("task.turnEnded", end)["task"]["lastText"], "字".repeat(4000));
    let error = with(&held("a"), json!({"code": "X", "message": "é".repeat(3000)}));
    assert_eq!(pod.ok("task.setError", error)["task"]["error"], "é".repeat(2000));
}

#[test]
fn of_many_texts_few_are_told_and_the_last_one_for_sure() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.run("a");
    pod.heard();
    let ids: Vec<_> = (0..200)
        .map(|i| pod.send("task.setLastText", with(&held("a"), json!({"text": format!("text {i}")}))))
        .collect();
    for (i, id) in ids.iter().enumerate() {
        assert_eq!(pod.answer(id)["result"]["task"]["lastText"], format!("text {i}"));
    }
    let mut events = 1;
    while pod.event("task.changed")["task"]["lastText"] != "text 199" {
        events += 1;
    }
    assert!(events < 100, "{events} events");
}

#[test]
fn tools_are_kept_up_to_256() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.reserve("a");
    let tools: Vec<_> = (0..300).map(|i| format!("tool{i}")).collect();
    let task = pod.ok("task.setAvailableTools", with(&held("a"), json!({"tools": tools})))["task"].clone();
    assert_eq!(task["availableTools"], json!(tools[..256]));
    pod.refused("BAD_REQUEST", "task.setAvailableTools", with(&held("a"), json!({"tools": "read"})));
}

#[test]
fn a_verdict_is_kept_and_an_unknown_one_refused() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.run("a");
    let before = pod.task("a");
    let task = pod.ok("task.setSandboxCheck", check("a", "denied"))["task"].clone();
    assert_eq!(differing(&before, &task), ["fsDenied", "sandboxMode", "sandboxProbe"]);
    assert_eq!(task["sandboxProbe"], "denied");
    assert_eq!(task["sandboxMode"], "workspace-write");
    assert_eq!(task["fsDenied"], true);
    for bad in [
        json!({"mode": "workspace-write", "probe": "x", "fsDenied": true}),
        json!({"mode": "x", "probe": "denied", "fsDenied": true}),
        json!({"probe": "denied"}),
        json!("denied"),
        json!(null),
    ] {
        pod.refused("BAD_REQUEST", "task.setSandboxCheck", with(&held("a"), json!({"check": bad})));
    }
    assert_eq!(pod.task("a"), task);
}

#[test]
fn a_sandbox_that_is_not_proven_fails_a_task_or_warns_as_configured() {
    let cases = [
        ("strict", "allowed", "failed", false),
        ("warn", "allowed", "failed", false),
        ("strict", "ambiguous", "failed", false),
        ("warn", "ambiguous", "running", true),
        ("strict", "failed", "failed", false),
        ("warn", "failed", "running", true),
        ("strict", "skipped-no-parent", "running", true),
        ("warn", "skipped-no-parent", "running", true),
        ("strict", "denied", "running", false),
    ];
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 8}));
    for (i, (mode, probe, status, warned)) in cases.into_iter().enumerate() {
        pod.configure(json!({"sandboxProbeMode": mode}));
        let task = format!("t{i}");
        pod.run(&task);
        pod.heard();
        let checked = pod.ok("task.setSandboxCheck", check(&task, probe))["task"].clone();
        assert_eq!(checked["status"], status, "{mode} {probe}");
        assert_eq!(checked["sandboxProbe"], probe, "{mode} {probe}");
        assert_eq!(checked["error"].as_str().unwrap().is_empty(), status != "failed", "{mode} {probe}");
        let events = told(&pod.heard());
        assert_eq!(events.contains(&"warning".to_owned()), warned, "{mode} {probe}: {events:?}");
    }
}

#[test]
fn an_error_fails_a_task_that_has_not_ended() {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 2}));
    pod.run("running");
    pod.reserve("starting");
    pod.reserve("queued");
    for task in ["queued", "running", "starting"] {
        let error = with(&held(task), json!({"code": "X", "message": "boom"}));
        let failed = pod.ok("task.setError", error)["task"].clone();
        assert_eq!(failed["status"], "failed", "{task}");
        assert_eq!(failed["error"], "boom", "{task}");
        assert!(failed["endedAt"].as_i64().unwrap() > 0, "{task}");
    }
}

#[test]
fn a_cancelled_turn_goes_on_until_it_ends() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.run("a");
    let task = pod.ok("task.cancel", json!({"taskId": "a"}))["task"].clone();
    assert_eq!(task["status"], "running");
    let ended_task = pod.ok("task.turnEnded", ended("a", 1, "aborted"))["task"].clone();
    assert_eq!(ended_task["status"], "cancelled");
    // An end of its own that comes first counts.
    pod.run("b");
    pod.ok("task.cancel", json!({"taskId": "b"}));
    assert_eq!(pod.complete("b")["status"], "completed");
    // And the next turn is not cancelled for that.
    pod.ok("task.turnStarted", turn("b", 2));
    assert_eq!(pod.ok("task.turnEnded", ended("b", 2, "completed"))["task"]["status"], "completed");
}
