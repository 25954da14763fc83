//! What a restart of the daemon leaves of tasks, and how they go on.

use cofferdam_tests::host::Core;

use super::{site, with_either_core};

with_either_core! {
    an_ended_task_is_resumed_after_a_restart_and_told_more
    a_task_that_was_in_a_turn_is_interrupted_and_whoever_followed_it_is_told
    a_daemon_that_is_stopped_keeps_what_was_heard_of_a_turn
    a_task_whose_agent_remembers_nothing_is_not_resumed
    looking_at_a_task_is_not_running_it
    a_task_that_waited_for_its_turn_begins_when_it_is_resumed
}

fn an_ended_task_is_resumed_after_a_restart_and_told_more(core: Core) {
    let site = site(core);
    let daemon = site.start_with(&[]);
    site.ok(&["task", "run", "write a some text\nsay one", "--wait"]);
    let id = site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(daemon.stop().0, 0);
    let _daemon = site.start();
    let row = site.row(&id);
    assert_eq!(
        (&row["status"], &row["live"], &row["canResume"]),
        (&"completed".into(), &false.into(), &true.into())
    );
    let resumed = site.json(&["task", "resume", &id]);
    assert_eq!(resumed["live"], true);
    assert_eq!(site.ok(&["task", "tell", &id, "say two", "--wait"]), "two\n");
    assert_eq!(site.row(&id)["turns"], 2);
    assert_eq!(site.ok(&["task", "read", &id, "a"]), "some text\n");
}

fn a_task_that_was_in_a_turn_is_interrupted_and_whoever_followed_it_is_told(core: Core) {
    let site = site(core);
    let daemon = site.start_with(&[]);
    let mut following = site.spawn(&["task", "run", "say before\nhold", "--follow"]);
    let first = String::from_utf8(following.next_line().unwrap()).unwrap();
    let id = first.split(' ').next().unwrap();
    site.until(id, |row| row["lastText"] == "before");
    daemon.kill();
    let _daemon = site.start();
    let mut lines = Vec::new();
    while let Some(line) = following.next_line() {
        lines.push(String::from_utf8(line).unwrap());
    }
    assert_eq!(following.wait().0, 130, "{lines:?}");
    assert!(lines.last().unwrap().starts_with(&format!("{id} interrupted")), "{lines:?}");
    // Its conversation is there, and whoever tells it something brings its agent back.
    assert_eq!(site.ok(&["task", "tell", id, "say after", "--wait"]), "after\n");
}

fn a_daemon_that_is_stopped_keeps_what_was_heard_of_a_turn(core: Core) {
    let site = site(core);
    let daemon = site.start_with(&[]);
    let id = site.task("say before\ntool read a file\nhold");
    site.until(&id, |row| row["lastText"] == "before");
    assert_eq!(daemon.stop().0, 0);
    let _daemon = site.start();
    let row = site.row(&id);
    assert_eq!((&row["status"], &row["lastText"]), (&"interrupted".into(), &"before".into()));
    let logs = site.ok(&["task", "logs", &id]);
    assert!(logs.contains("\nbefore\n") && logs.contains("a file\n"), "{logs}");
}

fn a_task_whose_agent_remembers_nothing_is_not_resumed(core: Core) {
    let site = site(core);
    let daemon = site.start_with(&[]);
    site.ok(&["task", "run", "say one", "--preset", "fake-forgetful", "--wait"]);
    let id = site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned();
    daemon.stop();
    let _daemon = site.start();
    assert_eq!(site.row(&id)["canResume"], false);
    let refused = site.run(&["task", "resume", &id]);
    assert!(refused.code == 1 && refused.stderr.contains("TASK_NOT_RESUMABLE"), "{refused:?}");
    let opened = site.json(&["task", "open", &id]);
    assert_eq!(opened["live"], false);
    assert_eq!(site.row(&id)["status"], "completed");
}

fn looking_at_a_task_is_not_running_it(core: Core) {
    let site = site(core);
    let daemon = site.start_with(&["maxConcurrent=1", "queueEnabled=false"]);
    site.ok(&["task", "run", "say one", "--wait"]);
    let id = site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned();
    daemon.stop();
    let _daemon = site.start();
    for verb in ["open", "resume"] {
        let looked = site.json(&["task", verb, &id]);
        assert_eq!(
            (&looked["live"], &looked["task"]["status"]),
            (&true.into(), &"completed".into()),
            "{verb}"
        );
        assert_eq!(site.row(&id)["status"], "completed");
    }
    // The one slot is free: without a queue this would be refused.
    assert_eq!(site.ok(&["task", "run", "say two", "--wait"]), "two\n");
    assert_eq!(site.ok(&["task", "tell", &id, "say three", "--wait"]), "three\n");
    assert_eq!(site.row(&id)["turns"], 2);
}

fn a_task_that_waited_for_its_turn_begins_when_it_is_resumed(core: Core) {
    let site = site(core);
    let daemon = site.start_with(&["maxConcurrent=1"]);
    let first = site.task("hold");
    site.until(&first, |row| row["status"] == "running");
    let waiting = site.task("write a some text\nsay done");
    assert_eq!(site.row(&waiting)["status"], "queued");
    daemon.kill();
    let _daemon = site.start();
    assert_eq!(site.row(&waiting)["status"], "interrupted");
    assert_eq!(site.json(&["task", "open", &waiting])["live"], false, "nobody has said that it is to run");
    let shown = site.ok(&["task", "show", &waiting]);
    assert!(shown.contains("cofferdam task resume begins it"), "{shown}");
    site.ok(&["task", "resume", &waiting]);
    let row = site.until(&waiting, |row| row["status"] == "completed");
    assert_eq!((&row["turns"], &row["lastText"], &row["error"]), (&1.into(), &"done".into(), &"".into()));
    assert_eq!(site.ok(&["task", "read", &waiting, "a"]), "some text\n");
}
