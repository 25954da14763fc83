//! Following a task, and no longer wanting to.

use cofferdam_protocol::host::{EntryKind, HostEvent};
use cofferdam_tests::host::Core;
use nix::sys::signal::Signal;

use super::{site, with_either_core};

with_either_core! {
    whoever_stops_following_leaves_the_task_running_and_is_told_how_to_cancel_it
    logs_are_followed_from_their_beginning_to_the_end_of_the_turn
    with_json_every_line_is_an_event
}

fn whoever_stops_following_leaves_the_task_running_and_is_told_how_to_cancel_it(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&[]);
    for how in ["--follow", "--wait"] {
        let mut following = site.spawn(&["task", "run", "say before\nhold", how]);
        let first = String::from_utf8(following.next_line().unwrap()).unwrap();
        let id = first.split(' ').next().unwrap();
        site.until(id, |row| row["lastText"] == "before");
        following.signal(Signal::SIGINT);
        let mut said = String::new();
        while let Some(line) = following.next_line() {
            said.push_str(&String::from_utf8(line).unwrap());
        }
        assert!(said.contains(&format!("cofferdam task cancel {id}")), "{said}");
        assert_eq!(following.wait().0, 130);
        assert_eq!(site.row(id)["status"], "running");
        site.ok(&["task", "cancel", id]);
    }
}

fn logs_are_followed_from_their_beginning_to_the_end_of_the_turn(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&[]);
    let id = site.task("say one\nhold");
    let mut following = site.spawn(&["task", "logs", &id, "--follow"]);
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line| line != "one\n") {
        lines.push(String::from_utf8(following.next_line().unwrap()).unwrap());
    }
    site.ok(&["task", "cancel", &id]);
    while let Some(line) = following.next_line() {
        lines.push(String::from_utf8(line).unwrap());
    }
    assert_eq!(following.wait().0, 130);
    assert!(lines.contains(&format!("{id} cancelled\n")), "{lines:?}");
    assert_eq!(lines.iter().filter(|line| *line == "one\n").count(), 1, "{lines:?}");
}

fn with_json_every_line_is_an_event(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&[]);
    let out = site.ok(&["task", "run", "say one\nthink two", "--follow", "--format", "json"]);
    let events: Vec<HostEvent> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = |kind, text: &str| {
        let is_it = |event: &HostEvent| matches!(event, HostEvent::TaskEntry { entry, .. } if entry.kind == kind && entry.text == text);
        events.iter().any(is_it)
    };
    assert!(said(EntryKind::Assistant, "one") && said(EntryKind::Thinking, "two"), "{events:?}");
}
