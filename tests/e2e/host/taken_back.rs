//! A task whose agent is a program in a sandbox and keeps a home, brought back to before one of its turns, whatever becomes of
//! the daemon meanwhile: each test with a daemon of root's and with an ordinary user's.

use std::collections::BTreeMap;

use cofferdam_tests::host::HostSite;
use cofferdam_tests::skip;
use serde_json::json;

use super::shell::{Daemon, only_task, site, with_either_daemon};

with_either_daemon! {
    files_home_and_conversation_come_back_together_wherever_the_daemon_dies
}

const KEEPS: &str = r#"
[[presets]]
id = "keeps"
argv_first = ["sh"]
argv_follow_up = ["sh"]
prompt = "stdin"
keep_home = true
"#;

/// The steps of a rewind at which a daemon can be told to die.
const STEPS: [&str; 8] = [
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
