//! How a sidecar ends: asked to, with its host, or because nobody listens.

use std::process::Command;
use std::time::Duration;

use cofferdam_tests::pod::{Sidecar, reserve, with};
use nix::sys::signal::Signal;
use serde_json::json;

use super::site;

/// Twice what it promises, for a machine that is busy.
const SOON: Duration = Duration::from_secs(4);

#[test]
fn shutdown_is_answered_and_what_comes_after_it_is_not_run() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.run("a");
    pod.heard();
    let after = json!({"id": "after", "method": "task.reserve", "params": reserve("b")});
    pod.send_bytes(format!("{{\"id\":\"9\",\"method\":\"shutdown\",\"params\":{{}}}}\n{after}\n"));
    assert_eq!(pod.line(), Some(json!({"id": "9", "result": {"ok": true}})));
    assert_eq!(pod.line(), None);
    assert_eq!(pod.wait().0, 0);
    assert_eq!(site.in_root(), ["a"]);
    let mut pod = site.start();
    assert_eq!(pod.status("a"), "interrupted");
    pod.refused("TASK_NOT_FOUND", "task.get", json!({"taskId": "b"}));
}

#[test]
fn shutdown_works_before_initialize() {
    site().spawn().shutdown();
}

#[test]
fn everything_before_a_shutdown_is_answered_and_durable() {
    let site = site();
    let mut pod = site.start_rooted();
    let lines: String = (0..50)
        .map(|i| json!({"id": format!("{i}"), "method": "task.reserve", "params": reserve(&format!("t{i}"))}))
        .chain([json!({"id": "50", "method": "shutdown"})])
        .map(|line| format!("{line}\n"))
        .collect();
    pod.send_bytes(lines);
    for i in 0..=50 {
        let line = pod.answer(&i.to_string());
        assert!(line.get("result").is_some(), "{line}");
    }
    assert_eq!(pod.wait().0, 0);
    assert_eq!(site.start().tasks().len(), 50);
}

#[test]
fn the_end_of_input_is_the_end_at_any_time() {
    let site = site();
    let mut fresh = site.spawn();
    fresh.end();
    assert!(fresh.ends_within(SOON));
    assert_eq!(fresh.wait().0, 0);

    let mut pod = site.start_rooted();
    pod.run("a");
    pod.end();
    assert!(pod.ends_within(SOON));
    assert_eq!(pod.wait().0, 0);
    assert_eq!(site.start().status("a"), "interrupted");
}

#[test]
fn a_last_line_without_newline_is_run() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.send_bytes(json!({"id": "last", "method": "task.reserve", "params": reserve("a")}).to_string());
    pod.end();
    assert_eq!(pod.answer("last")["result"]["startNow"], true);
    assert_eq!(pod.wait().0, 0);
    let mut pod = site.start();
    assert_eq!(pod.status("a"), "interrupted");
    pod.send_bytes(r#"{"id":"half","method":"hea"#);
    pod.end();
    assert_eq!(pod.wait().0, 0, "half a request is no reason to fail");
}

#[test]
fn whatever_was_sent_before_the_end_of_input_is_answered() {
    let site = site();
    let mut pod = site.start_rooted();
    let ids: Vec<_> = (0..20).map(|i| pod.send("task.reserve", reserve(&format!("t{i}")))).collect();
    pod.end();
    for id in ids {
        assert!(pod.answer(&id).get("result").is_some());
    }
    assert_eq!(pod.wait().0, 0);
    assert_eq!(site.start().tasks().len(), 20);
}

#[test]
fn a_host_that_does_not_read_does_not_keep_it_from_ending() {
    let site = site();
    let mut pod = Sidecar::spawn_unheard(&mut site.command());
    // More answers than a pipe holds, to fewer bytes of requests than a pipe holds.
    let requests = "{\"id\":\"1\",\"method\":\"health\"}\n".repeat(1500);
    pod.send_bytes(requests);
    pod.end();
    assert!(pod.ends_within(SOON));
    assert_eq!(pod.wait().0, 0);
}

#[test]
fn a_host_that_hung_up_ends_it_as_the_end_of_input_does() {
    let site = site();
    let mut pod = Sidecar::spawn_unheard(&mut site.command());
    pod.hang_up();
    pod.send("initialize", site.initialize());
    assert!(pod.ends_within(SOON));
    assert_eq!(pod.wait().0, 0);
    site.start();
}

#[test]
fn a_signal_that_asks_it_to_stop_leaves_a_sound_database() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let site = site();
        let mut pod = site.start_rooted();
        pod.run("a");
        pod.signal(signal);
        assert!(pod.ends_within(SOON), "{signal}");
        pod.wait();
        assert_eq!(site.start().status("a"), "interrupted", "{signal}");
    }
}

#[test]
fn the_death_of_the_parent_ends_it_though_somebody_else_holds_its_input_open() {
    let site = site();
    let program = site.command();
    // This process holds both ends of the pipes; the shell is the host that the sidecar watches.
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", r#"exec 3<&0; "$0" <&3 3<&- & wait"#]).arg(program.get_program());
    shell.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(site.path("cwd"));
    let mut host = Sidecar::spawn(&mut shell);
    host.ok("initialize", with(&site.initialize(), json!({"hostPid": host.pid()})));
    host.ok("config.set", json!({"patch": {"sandboxRoot": site.root()}}));
    host.run("a");
    host.heard();
    host.signal(Signal::SIGKILL);
    assert_eq!(host.line(), None, "its output ends with it");
    // The database is free again.
    assert_eq!(site.start().status("a"), "interrupted");
}

#[test]
fn a_host_pid_that_is_not_the_parent_is_not_watched() {
    let site = site();
    let mut other = Command::new("true").spawn().unwrap();
    let pid = other.id();
    other.wait().unwrap();
    let mut pod = site.spawn();
    pod.ok("initialize", with(&site.initialize(), json!({"hostPid": pid})));
    assert!(!pod.ends_within(Duration::from_millis(300)));
    pod.ok("task.list", json!({}));
}

/// What its descriptors are.
fn descriptors(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    // One may be closed while this looks.
    let links = entries.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    links.map(|link| link.to_string_lossy().into_owned()).collect()
}

#[test]
fn it_opens_no_socket_of_any_kind() {
    let site = site();
    let mut pod = site.start_rooted();
    let ids: Vec<_> = (0..300).map(|i| pod.send("task.reserve", reserve(&format!("t{i}")))).collect();
    // Before, while and after it works.
    for at in [0, 100, 299] {
        pod.answer(&ids[at]);
        let open = descriptors(pod.pid());
        assert!(open.iter().any(|link| link.ends_with("/pod.db")), "{open:?}");
        let polls = |link: &String| link.starts_with("socket:") || link.contains("eventpoll");
        assert!(!open.iter().any(polls), "{open:?}");
    }
}
