//! Tasks that are started, queued and told more.

use cofferdam_tests::host::Core;
use serde_json::Value;

use super::{site, with_either_core};

with_either_core! {
    a_task_is_carried_out_and_its_last_word_and_files_can_be_read
    the_exit_status_tells_how_a_turn_ended
    a_task_waits_for_a_slot_and_is_carried_out_when_there_is_one
    an_agent_is_told_more_and_each_turn_is_waited_for
    what_cannot_be_started_is_refused_and_says_what_to_do
}

fn a_task_is_carried_out_and_its_last_word_and_files_can_be_read(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&[]);
    let script = "say first\nwrite notes/a.txt some\x1b[2J text\nsay last\x1b[2J word";
    let ran = site.run(&["task", "run", script, "--label", "a label", "--subdir", "below", "--wait"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "last\\u{1b}[2J word\n"), "{ran:?}");
    let tasks = site.json(&["task", "list", "--status", "completed"]);
    let id = tasks[0]["id"].as_str().unwrap();
    assert!(ran.stderr.ends_with(&format!("{id} completed\n")), "{ran:?}");
    let row = site.row(&id[..12]);
    assert_eq!((&row["label"], &row["turns"], &row["live"]), (&"a label".into(), &1.into(), &true.into()));
    assert_eq!(row["taskDir"], site.root().join("below").join(id).to_str().unwrap());
    let files = site.json(&["task", "files", id]);
    let paths: Vec<_> =
        files["entries"].as_array().unwrap().iter().map(|row| row["relPath"].clone()).collect();
    assert_eq!(paths, ["notes", "notes/a.txt"]);
    assert_eq!(site.ok(&["task", "read", id, "notes/a.txt"]), "some\\u{1b}[2J text\n");
    let logs = site.ok(&["task", "logs", id]);
    assert!(logs.contains("\n> say first\n") && logs.contains("\nfirst\n"), "{logs}");
    assert!(!logs.contains('\x1b'));
}

fn the_exit_status_tells_how_a_turn_ended(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&[]);
    for (script, code, status) in [
        ("say ok", 0, "completed"),
        ("end error it broke", 1, "failed: "),
        ("end aborted", 130, "cancelled"),
        ("end interrupted", 130, "interrupted"),
        ("die it fell over", 1, "failed: "),
    ] {
        let ran = site.run(&["task", "run", script, "--follow"]);
        assert_eq!(ran.code, code, "{script}: {ran:?}");
        let last = ran.stderr.lines().last().unwrap();
        assert!(last.contains(&format!(" {status}")), "{script}: {ran:?}");
    }
}

fn a_task_waits_for_a_slot_and_is_carried_out_when_there_is_one(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&["maxConcurrent=1"]);
    let first = site.task("hold");
    let mut second = site.spawn(&["task", "run", "say second", "--follow"]);
    let line = |program: &mut cofferdam_tests::program::LineProgram| {
        String::from_utf8(program.next_line().unwrap()).unwrap().trim_end().to_owned()
    };
    let said = line(&mut second);
    let (id, rest) = said.split_once(' ').unwrap();
    assert_eq!(rest, "queued, place 1");
    assert_eq!(
        site.ok(&["task", "run", "say third"]).trim_end().split_once("  ").unwrap().1,
        "queued, place 2"
    );
    site.ok(&["task", "cancel", &first]);
    let mut lines = vec![line(&mut second)];
    while !lines.last().unwrap().ends_with("completed") {
        lines.push(line(&mut second));
    }
    assert!(lines.contains(&"second".to_owned()) && lines.contains(&format!("{id} running")), "{lines:?}");
    assert_eq!(second.wait().0, 0);
    assert_eq!(site.row(&first)["status"], "cancelled");
}

fn an_agent_is_told_more_and_each_turn_is_waited_for(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&[]);
    assert_eq!(site.ok(&["task", "run", "say one", "--wait"]), "one\n");
    let id = site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(site.ok(&["task", "tell", &id, "say two", "--wait"]), "two\n");
    let followed = site.ok(&["task", "tell", &id, "say three\nsay four", "--follow"]);
    assert!(followed.contains("three\nfour\n") && !followed.contains("two"), "{followed}");
    assert_eq!(site.run(&["task", "tell", &id, "end error no", "--wait"]).code, 1);
    let row = site.row(&id);
    assert_eq!((&row["turns"], &row["status"]), (&Value::from(4), &Value::from("failed")));
    // One turn at a time.
    site.ok(&["task", "tell", &id, "hold"]);
    site.until(&id, |row| row["status"] == "running");
    let busy = site.run(&["task", "tell", &id, "say no"]);
    assert!(busy.code == 1 && busy.stderr.contains("TASK_BUSY"), "{busy:?}");
}

fn what_cannot_be_started_is_refused_and_says_what_to_do(core: Core) {
    let site = site(core);
    let _daemon = site.start();
    let refused = site.run(&["task", "run", "say no", "--preset", "fake", "--wait"]);
    assert!(refused.code == 1 && refused.stderr.contains("config set sandboxRoot="), "{refused:?}");
    let root = format!("sandboxRoot={}", site.root().display());
    site.ok(&["config", "set", &root]);
    for (line, code) in [
        (&["--preset", "nobody"][..], "CONFIG_INVALID"),
        (&["--preset", "fake-broken"], "CONFIG_INVALID"),
        (&["--preset", "fake", "--subdir", "../out"], "BAD_SUBDIR"),
    ] {
        let refused = site.run(&[&["task", "run", "say no"], line].concat());
        assert!(refused.code == 1 && refused.stderr.contains(code), "{line:?}: {refused:?}");
    }
    assert_eq!(site.json(&["task", "list"]), Value::Array(Vec::new()));
}
