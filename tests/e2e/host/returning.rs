//! What a task found, told to the main session it was started from.

use cofferdam_tests::host::{Core, HostSite};
use cofferdam_tests::program::LineProgram;
use nix::sys::signal::Signal;
use serde_json::Value;

use super::{site, with_either_core};

with_either_core! {
    a_task_is_returned_to_an_attached_main_session_and_to_no_other
    nothing_is_told_to_a_main_session_that_nobody_tells_it
    an_attached_client_outlives_the_daemon_and_prints_nothing_twice
}

/// Attaches a client, and waits until it is.
fn attach(site: &HostSite) -> LineProgram {
    let mut client = site.spawn(&["main", "attach", "main-1", "--format", "json"]);
    assert_eq!(client.next_line().unwrap(), b"Attached: main-1; Ctrl-C ends it.\n");
    client
}

#[track_caller]
fn message(client: &mut LineProgram) -> Value {
    serde_json::from_slice(&client.next_line().unwrap()).unwrap()
}

fn a_task_is_returned_to_an_attached_main_session_and_to_no_other(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&[]);
    site.ok(&["task", "run", "write a the file\nsay the conclusion", "--main", "main-1", "--wait"]);
    let id = site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned();
    let refused = site.run(&["task", "return", &id, "--yes"]);
    assert!(refused.code == 1 && refused.stderr.contains("MAIN_SESSION_NOT_LIVE"), "{refused:?}");
    let mut client = attach(&site);
    let told = site.ok(&["task", "return", &id, "--file", "a", "--text", "look at this", "--yes"]);
    let got = message(&mut client);
    assert_eq!(told, format!("Sent to main-1: {}\n", got["id"].as_str().unwrap()));
    let text = got["text"].as_str().unwrap();
    for part in ["the conclusion", "the file", "look at this"] {
        assert!(text.contains(part), "{text}");
    }
    let other = site.run(&["task", "return", &id, "--main", "main-2", "--yes"]);
    assert!(other.code == 1 && other.stderr.contains("MAIN_SESSION_NOT_LIVE"), "{other:?}");
    client.signal(Signal::SIGINT);
    assert_eq!(client.next_line(), None);
    assert_eq!(client.wait().0, 0);
}

fn nothing_is_told_to_a_main_session_that_nobody_tells_it(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&[]);
    let mut client = attach(&site);
    for script in ["say it is done", "say it is not\nend error it broke", "die", "end aborted"] {
        site.run(&["task", "run", script, "--main", "main-1", "--wait"]);
    }
    let ended = site.json(&["task", "list"]);
    assert_eq!(ended.as_array().unwrap().len(), 4);
    let told = site.ok(&["task", "return", ended[0]["id"].as_str().unwrap(), "--yes"]);
    let first = message(&mut client);
    assert_eq!(
        told,
        format!("Sent to main-1: {}\n", first["id"].as_str().unwrap()),
        "it is the first of all"
    );
    client.signal(Signal::SIGINT);
    assert_eq!(client.next_line(), None);
}

fn an_attached_client_outlives_the_daemon_and_prints_nothing_twice(core: Core) {
    let site = site(core);
    let daemon = site.start_with(&[]);
    site.ok(&["task", "run", "say it", "--main", "main-1", "--wait"]);
    let id = site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned();
    let mut client = attach(&site);
    site.ok(&["task", "return", &id, "--yes"]);
    let first = message(&mut client);
    daemon.kill();
    assert_eq!(client.next_line().unwrap(), b"The daemon is gone; looking for it.\n");
    let _daemon = site.start();
    assert_eq!(client.next_line().unwrap(), b"Attached again: main-1\n");
    site.ok(&["task", "return", &id, "--yes"]);
    let second = message(&mut client);
    assert_ne!(first["id"], second["id"]);
    client.signal(Signal::SIGINT);
    assert_eq!(client.next_line(), None);
    assert_eq!(client.wait().0, 0);
}
