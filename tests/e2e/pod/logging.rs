//! The log beside the database: that it is there, as much of it as is wanted, and nothing of what tasks are about.

use cofferdam_tests::files;
use cofferdam_tests::pod::{PodSite, Sidecar, ended, held, reserve, turn, with};
use serde_json::json;

use super::site;

fn log(site: &PodSite) -> String {
    String::from_utf8(files::read(site.path("db/core.log"))).unwrap()
}

/// Has a task live its whole life, every text of which says `secret`.
#[track_caller]
fn a_secret_life(pod: &mut Sidecar, task: &str) {
    let texts = json!({"description": "a secret", "label": "secret label", "mainSessionId": "m"});
    pod.ok("task.reserve", with(&reserve(task), texts.clone()));
    pod.refused("TASK_BUSY", "task.reserve", with(&reserve(task), texts));
    pod.ok("task.turnStarted", turn(task, 1));
    pod.ok("task.setLastText", with(&held(task), json!({"text": "secret text"})));
    pod.refused("BAD_REQUEST", "task.setLastText", with(&held(task), json!({"text": ["secret"]})));
    pod.ok("task.turnEnded", with(&ended(task, 1, "error"), json!({"lastText": "secret end"})));
    pod.ok("task.setError", with(&held(task), json!({"code": "X", "message": "secret error"})));
    pod.send_line(r#"{"id":"x","method":"task.get","params":{"taskId":"secret""#);
    assert_eq!(pod.answer_without_id()["error"]["code"], "BAD_REQUEST");
}

#[test]
fn nothing_of_what_a_task_is_about_is_logged_at_any_level() {
    let site = site();
    let mut pod = site.start_with(json!({"logLevel": "trace"}));
    a_secret_life(&mut pod, "a");
    pod.kill();
    // A second life of the same database: what is loaded is not logged either.
    let mut pod = site.start();
    a_secret_life(&mut pod, "b");
    let stderr = pod.shutdown();
    assert!(!stderr.is_empty(), "stderr has the log too");
    for (place, text) in [("stderr", stderr), ("core.log", log(&site))] {
        assert!(!text.contains("secret"), "{place}: {text}");
    }
}

#[test]
fn the_log_lies_beside_the_database_and_goes_on_after_a_restart() {
    let site = site();
    site.start().shutdown();
    let first = log(&site);
    assert!(!first.is_empty());
    site.start().shutdown();
    let second = log(&site);
    assert!(second.starts_with(&first), "nothing is overwritten");
    assert!(second.len() > first.len());
}

#[test]
fn the_log_of_a_sidecar_that_was_killed_says_which_version_worked_on_which_database() {
    let site = site();
    site.start().kill();
    let log = log(&site);
    assert!(log.contains("0.2.0") && log.contains("/pod.db"), "{log}");
}

#[test]
fn the_level_changes_while_it_runs_and_is_kept() {
    let site = site();
    let mut pod = site.start_rooted();
    let growth = |pod: &mut Sidecar, level: &str, task: &str| {
        pod.configure(json!({"logLevel": level}));
        let before = log(&site).len();
        a_secret_life(pod, task);
        pod.heard();
        log(&site).len() - before
    };
    let trace = growth(&mut pod, "trace", "a");
    assert_eq!(growth(&mut pod, "off", "b"), 0);
    let error = growth(&mut pod, "error", "c");
    assert!(trace > error, "{trace} bytes, then {error}");
    pod.configure(json!({"logLevel": "off"}));
    pod.shutdown();
    let mut pod = site.start();
    let before = log(&site).len();
    a_secret_life(&mut pod, "d");
    pod.shutdown();
    assert_eq!(log(&site).len(), before);
}
