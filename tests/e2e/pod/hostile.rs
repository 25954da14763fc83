//! What a host, or somebody beside it, does that no program should: nothing is lost, made up or left hanging.

use std::time::Duration;

use cofferdam_tests::files;
use cofferdam_tests::pod::{Sidecar, held, reserve, turn};
use serde_json::json;

use super::site;

#[test]
fn every_beginning_of_a_request_is_answered_once_and_changes_nothing() {
    let site = site();
    let mut pod = site.start_rooted();
    let line = json!({"id": "é", "method": "task.reserve", "params": reserve("a")}).to_string();
    // The whole line is a request, and so is none of its beginnings.
    for end in 1..line.len() {
        pod.send_line(&line.as_bytes()[..end]);
    }
    for end in 1..line.len() {
        let answer = pod.line().unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!("BAD_REQUEST")), "{end}");
    }
    assert_eq!(pod.tasks(), Vec::<serde_json::Value>::new());
    assert_eq!(site.in_root(), Vec::<String>::new());
}

#[test]
fn a_host_that_closes_stdin_and_left_more_unread_than_is_held_does_not_keep_it_from_ending() {
    let site = site();
    let mut pod = Sidecar::spawn_unheard(&mut site.command());
    let stdin = pod.take_stdin();
    rustix::pipe::fcntl_setpipe_size(&stdin, 1 << 20).unwrap();
    let mut stdin = std::io::BufWriter::new(stdin);
    // An unknown method is answered under its id: more than 8 MiB, so that some stay in the pipe.
    let line = format!("{}\n", json!({"id": "i".repeat(200_000), "method": "no.such"}));
    for _ in 0..46 {
        std::io::Write::write_all(&mut stdin, line.as_bytes()).unwrap();
    }
    drop(stdin);
    assert!(pod.ends_within(Duration::from_secs(4)));
    assert_eq!(pod.wait().0, 0);
}

#[test]
fn nothing_is_said_to_be_done_once_the_database_was_removed() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.reserve("a");
    files::remove(site.db());
    pod.refused("DB_ERROR", "task.turnStarted", turn("a", 1));
    let error = pod.refused("DB_ERROR", "task.reserve", reserve("b"));
    assert!(error["message"].as_str().unwrap().contains("removed or replaced"), "{error}");
    // What needs no saving still works.
    pod.ok("task.heartbeat", held("a"));
    assert_eq!(pod.status("a"), "starting");
    assert_eq!(site.in_root(), ["a"]);
    pod.shutdown();
}
