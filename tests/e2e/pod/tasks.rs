//! All tasks at once: lists, sizes, pruning, and deleting many.

use cofferdam_protocol::pod::MAX_RESPONSE_LINE;
use cofferdam_tests::pod::{PodSite, Sidecar, ended, held, reserve, told, with};
use cofferdam_tests::process::resident_kib;
use serde_json::{Value, json};

use super::site;

/// The ids of a list's tasks.
fn ids(tasks: &[Value]) -> Vec<&str> {
    tasks.iter().map(|task| task["id"].as_str().unwrap()).collect()
}

/// Runs each of these tasks to its end.
#[track_caller]
fn end_each(pod: &mut Sidecar, tasks: &[(&str, &str)]) {
    for (task, reason) in tasks {
        pod.run(task);
        pod.ok("task.turnEnded", ended(task, 1, reason));
    }
}

#[test]
fn a_list_has_the_newest_first() {
    let site = site();
    let mut pod = site.start_rooted();
    for task in ["a", "c", "b"] {
        pod.reserve(task);
    }
    let list = pod.ok("task.list", json!({}));
    assert_eq!(ids(list["tasks"].as_array().unwrap()), ["b", "c", "a"]);
    assert!(list.get("truncated").is_none(), "{list}");
    assert_eq!(pod.task("c"), list["tasks"][1]);
}

#[test]
fn a_task_is_found_by_its_session() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.reserve("a");
    let a = pod.task("a");
    assert_eq!(pod.ok("task.bySession", json!({"sessionId": "s-a"})), json!({"task": a}));
    for unknown in ["a", "s-", "S-A", "s-a "] {
        assert_eq!(pod.ok("task.bySession", json!({"sessionId": unknown})), json!({"task": null}));
    }
}

#[test]
fn a_list_cuts_long_texts_which_a_single_task_shows_whole() {
    let site = site();
    let mut pod = site.start_rooted();
    let description = "描".repeat(20_000);
    pod.ok("task.reserve", with(&reserve("a"), json!({"description": description})));
    assert_eq!(pod.task("a")["description"], description);
    let listed = pod.tasks()[0]["description"].as_str().unwrap().to_owned();
    assert_eq!(listed.chars().count(), 2000);
    assert!(description.starts_with(&listed));
    pod.ok("task.setError", with(&held("a"), json!({"message": "x".repeat(5000)})));
    assert_eq!(pod.tasks()[0]["error"].as_str().unwrap().len(), 2000);
    pod.kill();
    assert_eq!(site.start().task("a")["description"], description);
}

#[test]
fn no_line_is_longer_than_four_mebibytes_and_a_list_that_would_be_loses_its_oldest_rows() {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 1, "maxTasks": 5000}));
    // Four bytes a character on the wire.
    let description = "😀".repeat(2000);
    let requests: Vec<_> = (0..1500)
        .map(|i| {
            let texts = json!({"description": description, "label": "x".repeat(120)});
            pod.send("task.reserve", with(&reserve(&format!("t{i}")), texts))
        })
        .collect();
    for id in &requests {
        assert!(pod.answer(id).get("result").is_some());
    }
    pod.heard();
    let check = |result: &Value| {
        assert_eq!(result["truncated"], true);
        let tasks = result["tasks"].as_array().unwrap();
        let listed = ids(tasks);
        assert!(listed.len() < 1500 && listed.len() > 300, "{} rows", listed.len());
        let newest: Vec<_> = (0..1500).rev().take(listed.len()).map(|i| format!("t{i}")).collect();
        assert_eq!(listed, newest, "the newest rows, none missing between");
        let bytes = result.to_string().len();
        assert!(bytes > MAX_RESPONSE_LINE / 4, "{bytes} bytes: as much is shown as has room");
    };
    // The host of these tests refuses a longer line.
    check(&pod.ok("task.list", json!({})));
    check(&pod.ok("initialize", site.initialize()));
    let cleaned = pod.ok("task.bulkCleanup", json!({"statuses": ["queued"]}));
    assert_eq!(cleaned["deleted"], 500);
    assert_eq!(cleaned["more"], true);
    assert_eq!(pod.status("t1499"), "queued");
    assert!(resident_kib(pod.pid()) < 400 << 10, "{} KiB", resident_kib(pod.pid()));
}

#[test]
fn many_are_deleted_by_status_completed_ones_if_none_is_named() {
    let site = site();
    let mut pod = site.start_rooted();
    end_each(&mut pod, &[("a", "completed"), ("b", "error"), ("c", "completed"), ("d", "interrupted")]);
    let hour = json!({"statuses": ["completed", "failed"], "olderThanMs": 3_600_000});
    assert_eq!(pod.ok("task.bulkCleanup", hour), json!({"results": [], "deleted": 0}));
    let result = pod.ok("task.bulkCleanup", json!({}));
    let row = |task| json!({"taskId": task, "ok": true, "code": "", "message": ""});
    assert_eq!(result, json!({"results": [row("a"), row("c")], "deleted": 2}));
    assert_eq!(ids(&pod.tasks()), ["d", "b"]);
    let result = pod.ok("task.bulkCleanup", json!({"statuses": ["failed", "interrupted"]}));
    assert_eq!(result["deleted"], 2);
    assert_eq!(site.in_root(), ["a", "b", "c", "d"], "the files stay");
    assert_eq!(pod.ok("task.bulkCleanup", json!({}))["deleted"], 0);
}

#[test]
fn what_to_delete_must_be_said_clearly() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.finish("a");
    for params in [
        json!({"statuses": []}),
        json!({"statuses": ["done"]}),
        json!({"statuses": ["completed", 5]}),
        json!({"statuses": "completed"}),
        json!({"olderThanMs": "5"}),
        json!({"statuses": [], "deleteFiles": true}),
    ] {
        pod.refused("BAD_REQUEST", "task.bulkCleanup", params);
    }
    assert_eq!(ids(&pod.tasks()), ["a"]);
}

#[test]
fn active_and_queued_tasks_are_deleted_when_they_are_named() {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 2}));
    pod.run("a");
    pod.reserve("b");
    pod.reserve("c");
    pod.reserve("d");
    assert_eq!(pod.ok("task.bulkCleanup", json!({"statuses": ["queued"]}))["deleted"], 2);
    pod.reserve("e");
    pod.heard();
    assert_eq!(pod.ok("task.bulkCleanup", json!({"statuses": ["running"]}))["deleted"], 1);
    assert_eq!(told(&pod.heard()), ["changed e starting", "dispatch e"], "its slot is free");
    pod.refused("TASK_NOT_FOUND", "task.heartbeat", held("a"));
    assert_eq!(ids(&pod.tasks()), ["e", "b"]);
}

/// A sidecar in which these tasks ended one after the other, the last of them interrupted by a restart.
fn three_ended_and_one_interrupted(site: &PodSite) -> Sidecar {
    let mut pod = site.start_with(json!({"maxConcurrent": 1}));
    for task in ["a", "b", "c"] {
        pod.finish(task);
    }
    pod.run("d");
    pod.reserve("e");
    pod
}

#[test]
fn a_start_prunes_the_oldest_ended_tasks_and_no_files() {
    let site = site();
    let mut pod = three_ended_and_one_interrupted(&site);
    pod.configure(json!({"maxTasks": 2}));
    assert_eq!(pod.tasks().len(), 5, "not before a start");
    pod.kill();
    let mut pod = site.start();
    assert_eq!(ids(&pod.tasks()), ["e", "d"]);
    assert_eq!(site.in_root(), ["a", "b", "c", "d", "e"]);
    pod.configure(json!({"maxTasks": 1}));
    pod.shutdown();
    assert_eq!(ids(&site.start().tasks()), ["e"]);
}

#[test]
fn records_older_than_the_days_they_are_kept_go_at_the_next_start() {
    let site = site();
    // 2020 and 2020 plus a bit: ended long ago, by way of an import.
    let old = |id: &str, at: i64| json!({"id": id, "label": id, "status": "completed", "createdAt": at, "endedAt": at, "log": []});
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_millis()).unwrap();
    let day = 86_400_000;
    let tasks =
        [old("ancient", 1), old("eleven", now - 11 * day), old("nine", now - 9 * day), old("new", now)];
    let file = json!({"version": 1, "config": {}, "tasks": tasks, "exports": []});
    cofferdam_tests::files::write(site.legacy(), file.to_string());
    let mut pod = site.start();
    assert_eq!(pod.tasks().len(), 4, "0 days: for ever");
    pod.configure(json!({"retentionDays": 10}));
    pod.shutdown();
    let mut left: Vec<_> =
        site.start().tasks().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect();
    left.sort();
    assert_eq!(left, ["new", "nine"]);
}
