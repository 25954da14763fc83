//! Tasks that are removed, one by one and many at once.

use cofferdam_tests::host::Core;
use serde_json::Value;

use super::{site, with_either_core};

with_either_core! {
    a_task_is_removed_with_or_without_its_files
    a_task_in_a_turn_is_cancelled_before_it_is_removed
    many_tasks_are_removed_by_how_they_ended
}

fn ids(tasks: &Value) -> Vec<&str> {
    tasks.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect()
}

fn a_task_is_removed_with_or_without_its_files(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&[]);
    for (scope, record, files) in [("record", false, true), ("files", true, false), ("all", false, false)] {
        site.ok(&["task", "run", "write a text", "--wait"]);
        let id = site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned();
        let dir = site.root().join(&id);
        assert!(dir.join("a").exists());
        let nobody = site.run(&["task", "clean", &id, "--scope", scope]);
        assert!(nobody.code == 1 && nobody.stderr.contains(dir.to_str().unwrap()), "{nobody:?}");
        site.ok(&["task", "clean", &id, "--scope", scope, "--yes"]);
        let left = site.json(&["task", "list"]);
        assert_eq!((ids(&left).contains(&id.as_str()), dir.exists()), (record, files), "{scope}");
    }
}

fn a_task_in_a_turn_is_cancelled_before_it_is_removed(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&[]);
    let mut waiting = site.spawn(&["task", "run", "write a text\nhold", "--wait"]);
    let first = String::from_utf8(waiting.next_line().unwrap()).unwrap();
    let id = first.split(' ').next().unwrap();
    site.until(id, |row| row["status"] == "running");
    site.ok(&["task", "clean", id, "--scope", "all", "--yes"]);
    assert!(!site.root().join(id).exists());
    assert_eq!(site.json(&["task", "list"]), Value::Array(Vec::new()));
    // It was cancelled, or gone before anybody could say so.
    assert!([1, 130].contains(&waiting.wait().0));
}

fn many_tasks_are_removed_by_how_they_ended(core: Core) {
    let site = site(core);
    let _daemon = site.start_with(&[]);
    site.ok(&["task", "run", "write a text", "--wait"]);
    site.run(&["task", "run", "end error no", "--wait"]);
    site.run(&["task", "run", "end aborted", "--wait"]);
    let tasks = site.json(&["task", "list"]);
    let all = ids(&tasks);
    let none = site.ok(&["task", "clean", "--status", "completed", "--older-than", "1d", "--yes"]);
    assert_eq!(none, "No tasks to remove.\n");
    let told = site.ok(&["task", "clean", "--status", "completed,failed", "--files", "--yes"]);
    assert_eq!(told, "Removed 2 task(s).\n");
    let left = site.json(&["task", "list"]);
    assert_eq!(ids(&left), &all[..1]);
    assert_eq!(left[0]["status"], "cancelled");
    assert!(!site.root().join(all[2]).exists() && site.root().join(all[0]).exists());
}
