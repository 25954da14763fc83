//! Conversations that outlive the daemon, and tasks that are brought back to what they were before a turn.

use std::io::Write;
use std::process::{Command, Stdio};

use cofferdam_tests::host::{Core, HostSite};
use serde_json::{Value, json};

use super::taken_back::STEPS;
use super::{site, with_either_core};

with_either_core! {
    a_conversation_is_stored_with_its_turn_and_outlives_the_daemon
    what_was_asked_is_known_of_a_turn_in_which_the_daemon_died
    files_and_conversation_are_brought_back_and_that_is_taken_back
    nothing_is_brought_back_under_an_agent_in_its_turn
    what_is_kept_of_a_task_goes_with_its_record
    the_conversation_of_an_agent_that_is_there_is_not_removed
}

/// The only task there is.
fn only_task(site: &HostSite) -> String {
    site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned()
}

/// What the sessions' own program says.
fn sessions(site: &HostSite, request: &Value) -> Value {
    let like = site.command(&[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosh-core"));
    command.arg("--session-control").stdin(Stdio::piped()).stdout(Stdio::piped());
    for (name, value) in like.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let mut program = command.spawn().unwrap();
    program.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    serde_json::from_slice(&program.wait_with_output().unwrap().stdout).unwrap()
}

fn a_conversation_is_stored_with_its_turn_and_outlives_the_daemon(core: Core) {
    let site = site(core);
    let daemon = site.start_with(&[]);
    site.ok(&["task", "run", "say one\ntool read a file", "--wait"]);
    daemon.kill();
    let id = {
        let _daemon = site.start();
        let id = only_task(&site);
        let logs = site.ok(&["task", "logs", &id]);
        assert!(logs.starts_with("! what was said before"), "{logs}");
        assert!(logs.contains("\n> say one\n> tool read a file\none\n"), "{logs}");
        // With an agent it goes on where it ended.
        assert_eq!(site.ok(&["task", "tell", &id, "say two", "--wait"]), "two\n");
        let logs = site.ok(&["task", "logs", &id]);
        assert!(logs.contains("\none\n") && logs.contains("\n> say two\n"), "{logs}");
        id
    };
    let session = site.path("state/pod/agents").join(&id).join("conversation.json");
    let copy: Value = serde_json::from_str(&std::fs::read_to_string(session).unwrap()).unwrap();
    let request = json!({"action": "list", "workspace_scope": site.root()});
    let listed = sessions(&site, &request);
    let row = &listed["data"]["sessions"][0];
    assert_eq!(row["session_id"], copy["session_id"], "{listed}");
    assert_eq!(row["first_prompt"], "say one tool read a file", "{listed}");
}

fn what_was_asked_is_known_of_a_turn_in_which_the_daemon_died(core: Core) {
    let site = site(core);
    let daemon = site.start_with(&[]);
    let id = site.task("say before\nhold");
    site.until(&id, |row| row["lastText"] == "before");
    daemon.kill();
    let _daemon = site.start();
    let logs = site.ok(&["task", "logs", &id]);
    assert!(logs.contains("\n> say before\n> hold\n"), "{logs}");
}

/// Two turns that each write a file and say something.
fn two_turns(site: &HostSite) -> String {
    site.ok(&["task", "run", "write a one\nsay one", "--wait"]);
    let id = only_task(site);
    site.ok(&["task", "tell", &id, "write a two\nwrite b new\nsay two", "--wait"]);
    id
}

/// What is in the task's file, and whether there is the other one.
fn files(site: &HostSite, id: &str) -> (String, bool) {
    let dir = site.root().join(id);
    (std::fs::read_to_string(dir.join("a")).unwrap_or_default(), dir.join("b").exists())
}

fn before(site: &HostSite, id: &str) -> bool {
    files(site, id) == ("two".to_owned(), true)
}

fn after(site: &HostSite, id: &str) -> bool {
    files(site, id) == ("one".to_owned(), false)
}

fn files_and_conversation_are_brought_back_and_that_is_taken_back(core: Core) {
    let site = site(core);
    let daemon = site.start_with(&[]);
    let id = two_turns(&site);
    let turns = site.json(&["task", "turns", &id]);
    let rows: Vec<_> =
        turns["turns"].as_array().unwrap().iter().map(|row| (&row["turn"], &row["checkpoint"])).collect();
    assert_eq!(rows, [(&1.into(), &true.into()), (&2.into(), &true.into())]);
    let nobody = site.run(&["task", "rewind", &id, "--turn", "2"]);
    assert!(nobody.code == 1 && nobody.stderr.contains("turn 2 was asked: write a two"), "{nobody:?}");
    assert!(before(&site, &id));
    let said = site.ok(&["task", "rewind", &id, "--turn", "2", "--yes"]);
    assert!(said.contains("what it was before turn 2"), "{said}");
    assert!(after(&site, &id));
    site.ok(&["task", "rewind", &id, "--undo", "--yes"]);
    assert!(before(&site, &id));
    // Without an agent, and with the one that is brought back.
    daemon.stop();
    let _daemon = site.start();
    site.ok(&["task", "rewind", &id, "--turn", "2", "--yes"]);
    assert!(after(&site, &id));
    let logs = site.ok(&["task", "logs", &id]);
    assert!(logs.contains("\none\n") && !logs.contains("\ntwo\n"), "{logs}");
    assert_eq!(site.ok(&["task", "tell", &id, "say three", "--wait"]), "three\n");
    let turns = site.json(&["task", "turns", &id]);
    assert_eq!(turns["turns"][2]["turn"], 3, "{turns}");
    site.ok(&["task", "rewind", &id, "--turn", "1", "--yes"]);
    assert_eq!(files(&site, &id), (String::new(), false));
    let none = site.run(&["task", "rewind", &id, "--turn", "9", "--yes"]);
    assert!(none.code == 1 && none.stderr.contains("no turn 9"), "{none:?}");
}

fn nothing_is_brought_back_under_an_agent_in_its_turn(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&[]);
    let id = two_turns(&site);
    site.ok(&["task", "tell", &id, "hold"]);
    site.until(&id, |row| row["status"] == "running");
    for way in [&["--turn", "2"][..], &["--undo"]] {
        let refused = site.run(&[&["task", "rewind", &id, "--yes"], way].concat());
        assert!(refused.code == 1 && refused.stderr.contains("TASK_RUNNING"), "{refused:?}");
    }
    site.ok(&["task", "cancel", &id]);
    site.until(&id, |row| row["status"] == "cancelled");
    site.ok(&["task", "rewind", &id, "--turn", "2", "--yes"]);
    assert!(after(&site, &id));
}

fn what_is_kept_of_a_task_goes_with_its_record(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&[]);
    let id = two_turns(&site);
    let kept = ["agents", "turns"].map(|dir| site.path("state/pod").join(dir));
    let count = || kept.each_ref().map(|dir| std::fs::read_dir(dir).unwrap().count());
    assert_eq!(count(), [1, 1]);
    site.ok(&["task", "clean", &id, "--scope", "files", "--yes"]);
    let turns = site.json(&["task", "turns", &id]);
    assert_eq!(turns["turns"][0]["checkpoint"], false, "{turns}");
    site.ok(&["task", "clean", &id, "--yes"]);
    assert_eq!(count(), [0, 0]);
    two_turns(&site);
    site.ok(&["task", "clean", "--status", "completed", "--files", "--yes"]);
    assert_eq!(count(), [0, 0]);
}

fn the_conversation_of_an_agent_that_is_there_is_not_removed(core: Core) {
    let site = site(core);
    let daemon = site.start_with(&[]);
    two_turns(&site);
    let root = site.root();
    let clear = ["session", "clear", "--all", "--yes", "--workspace", root.to_str().unwrap()];
    let stored = || site.json(&["session", "list", "--workspace", root.to_str().unwrap()]).to_string();
    site.run(&clear);
    assert!(stored().contains("write a one"), "{}", stored());
    daemon.stop();
    let _daemon = site.start();
    site.ok(&clear);
    assert!(!stored().contains("write a one"), "{}", stored());
}

#[test]
fn a_daemon_that_dies_at_any_step_of_a_rewind_finishes_it_when_it_comes_again() {
    let site = site(Core::Embedded);
    let daemon = site.start_with(&[]);
    let id = two_turns(&site);
    daemon.stop();
    for step in STEPS {
        let mut daemon = site.start_faulty(&format!("{step}=kill"));
        let died = site.run(&["task", "rewind", &id, "--turn", "2", "--yes"]);
        assert_eq!(died.code, 1, "{step}: {died:?}");
        daemon.wait();
        let daemon = site.start();
        let turns = site.json(&["task", "turns", &id]);
        assert_eq!(turns["undo"]["turn"], 2, "{step}: {turns}");
        assert!(after(&site, &id), "{step}");
        let logs = site.ok(&["task", "logs", &id]);
        assert!(logs.contains("\none\n") && !logs.contains("\ntwo\n"), "{step}: {logs}");
        site.ok(&["task", "rewind", &id, "--undo", "--yes"]);
        assert!(before(&site, &id), "{step}");
        assert!(site.ok(&["task", "logs", &id]).contains("\ntwo\n"), "{step}");
        daemon.stop();
    }
}
