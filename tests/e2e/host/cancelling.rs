//! Turns that somebody cancels, and turns that are out of time.

use cofferdam_tests::host::Core;

use super::{site, with_either_core};

with_either_core! {
    a_turn_that_is_cancelled_ends_and_its_agent_can_be_told_more
    a_queued_task_is_cancelled_before_it_begins
    a_turn_out_of_time_is_ended
    an_agent_that_minds_no_end_of_its_time_is_ended_itself
}

fn a_turn_that_is_cancelled_ends_and_its_agent_can_be_told_more(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&[]);
    let mut waiting = site.spawn(&["task", "run", "say before\nhold", "--wait"]);
    let first = String::from_utf8(waiting.next_line().unwrap()).unwrap();
    let id = first.split(' ').next().unwrap();
    site.until(id, |row| row["status"] == "running");
    site.ok(&["task", "cancel", id, "--reason", "enough"]);
    assert_eq!(waiting.wait().0, 130);
    let row = site.until(id, |row| row["status"] == "cancelled");
    assert_eq!(row["live"], true);
    assert_eq!(site.ok(&["task", "tell", id, "say after", "--wait"]), "after\n");
}

fn a_queued_task_is_cancelled_before_it_begins(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&["maxConcurrent=1"]);
    site.task("hold");
    let queued = site.task("say never");
    assert!(site.ok(&["task", "cancel", &queued]).contains("cancelled"));
    let row = site.until(&queued, |row| row["status"] == "cancelled");
    assert_eq!(row["turns"], 0);
}

fn a_turn_out_of_time_is_ended(core: Core) {
    let site = site(core).scaled(100);
    let _daemon = site.start_with(&["timeoutMs=30000"]);
    let ran = site.run(&["task", "run", "say before\nhold", "--wait"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (124, "before\n"), "{ran:?}");
    assert_eq!(site.json(&["task", "list"])[0]["status"], "timeout");
}

fn an_agent_that_minds_no_end_of_its_time_is_ended_itself(core: Core) {
    let site = site(core).scaled(100);
    let _daemon = site.start_with(&["timeoutMs=30000"]);
    let ran = site.run(&["task", "run", "stubborn\nhold", "--wait"]);
    assert_eq!(ran.code, 124, "{ran:?}");
    let id = site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned();
    site.until(&id, |row| row["live"] == false);
}
