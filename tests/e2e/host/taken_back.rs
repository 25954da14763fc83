//! A task whose agent is a program in a sandbox and keeps a home, brought back to before one of its turns, whatever becomes of
//! the daemon meanwhile: each test with a daemon of root's and with an ordinary user's.

use std::collections::BTreeMap;

use cofferdam_tests::host::HostSite;
use cofferdam_tests::{files, skip, user};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::shell::{Daemon, KEEPS, only_task, own_time, site, with_either_daemon};

with_either_daemon! {
    files_home_and_conversation_come_back_together_wherever_the_daemon_dies
}

/// The steps of a rewind at which a daemon can be told to die.
pub(super) const STEPS: [&str; 8] = [
    "rewind.intent",
    "rewind.kept",
    "rewind.kept#2",
    "rewind.files",
    "rewind.agent",
    "rewind.conversation",
    "rewind.turns",
    "rewind.done",
];

/// What there is of a task: its files, what its agent has kept at home, and what was said.
fn seen(site: &HostSite, id: &str) -> (BTreeMap<String, String>, String, String) {
    let entries = std::fs::read_dir(site.root().join(id)).unwrap().flatten();
    let read = |entry: std::fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), std::fs::read_to_string(entry.path()).unwrap())
    };
    let home = site.path("state/pod/agents").join(id).join("home/memory");
    let said = site.ok(&["task", "logs", id]);
    let said = said.lines().filter(|line| line.starts_with("said "));
    (entries.map(read).collect(), std::fs::read_to_string(home).unwrap(), said.collect())
}

fn files_home_and_conversation_come_back_together_wherever_the_daemon_dies(site: HostSite) {
    let site = site.with_presets(KEEPS);
    let daemon = site.start_with_shell();
    site.ok(&["task", "run", "echo 1 > a; echo 1 > ~/memory; echo said 1", "--preset", "keeps", "--wait"]);
    let id = only_task(&site);
    let second = seen(&site, &id);
    site.ok(&["task", "tell", &id, "echo 2 > a; echo new > b; echo 2 >> ~/memory; echo said 2", "--wait"]);
    site.ok(&["task", "tell", &id, "rm a; echo 3 > c; echo 3 > ~/memory; echo said 3", "--wait"]);
    let last = seen(&site, &id);
    assert_eq!((&second.1[..], &second.2[..], &last.1[..]), ("1\n", "said 1", "3\n"));
    assert_eq!(last.0.keys().collect::<Vec<_>>(), ["b", "c"]);
    daemon.stop();
    let to_second = ["task", "rewind", &id, "--turn", "2", "--yes"];
    let undo = ["task", "rewind", &id, "--undo", "--yes"];
    for step in STEPS {
        for (line, there, done) in [
            (&to_second[..], &second, json!({"of": "rewind", "turn": 2, "brings": [2, 3], "takes": []})),
            (&undo, &last, json!({"of": "undo", "turn": 2, "brings": [], "takes": [2, 3]})),
        ] {
            let mut daemon = site.start_faulty(&format!("{step}=kill"));
            let died = site.run(line);
            assert_eq!(died.code, 1, "{step}: {died:?}");
            daemon.wait();
            let daemon = site.start();
            let turns = site.json(&["task", "turns", &id]);
            for key in ["of", "turn", "brings", "takes"] {
                assert_eq!(turns["undo"][key], done[key], "{step}: {turns}");
            }
            assert_eq!(&seen(&site, &id), there, "{step}: {line:?}");
            daemon.stop();
        }
    }
    // It goes on from there, in its sandbox.
    let _daemon = site.start();
    site.ok(&to_second);
    assert_eq!(site.ok(&["task", "tell", &id, "cat a ~/memory; echo 4 >> ~/memory", "--wait"]), "1\n1\n");
    site.ok(&undo);
    assert_eq!(site.ok(&["task", "tell", &id, "cat c ~/memory", "--wait"]), "3\n3\n");
    let turns = site.json(&["task", "turns", &id]);
    let stand: Vec<_> = turns["turns"].as_array().unwrap().iter().map(|row| &row["stands"]).collect();
    assert_eq!(stand, [true, true, true, false, true], "{turns}");
}

/// The process of a daemon's own from which the one with such an argument descends.
fn supervisor_of(argument: &str, daemon: u32) -> Pid {
    let has = |process: &String| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
    };
    let parent = |process: &str| -> Option<String> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        Some(stat.rsplit(')').next()?.split_whitespace().nth(1)?.to_owned())
    };
    let mut process = files::names("/proc").into_iter().find(has).unwrap();
    loop {
        let above = parent(&process).unwrap();
        if above == daemon.to_string() {
            return Pid::from_raw(process.parse().unwrap());
        }
        process = above;
    }
}

#[test]
fn a_killed_supervisor_leaves_no_copy_of_the_users_own_that_a_checkpoint_could_keep() {
    if !user::is_root() {
        skip!("copies are made for another user, which takes root");
    }
    let site = site(Daemon::Roots).with_presets(&format!("{KEEPS}from_home = [\".tool/key\"]\n"));
    files::mkdir(site.path("home/.tool"));
    files::write(site.path("home/.tool/key"), "secret\n");
    let daemon = site.start_with_shell();
    let time = own_time();
    let script = format!("echo mine > ~/.tool/mine; cat ~/.tool/key; sleep {time}; true");
    site.ok(&["task", "run", &script, "--preset", "keeps"]);
    let id = only_task(&site);
    site.until(&id, |row| row["lastText"] == "secret");
    let tool = site.path("state/pod/agents").join(&id).join("home/.tool");
    assert_eq!(std::fs::read_to_string(tool.join("key")).unwrap(), "secret\n");
    kill(supervisor_of(&time, daemon.pid()), Signal::SIGKILL).unwrap();
    site.until(&id, |row| row["status"] == "failed");
    assert_eq!(files::names(&tool), ["mine"]);
}
