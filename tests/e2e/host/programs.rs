//! Agents that are programs and print JSON, and programs that do not do as they should.

use std::fs;

use cofferdam_tests::host::HostSite;
use cofferdam_tests::{files, skip};
use serde_json::{Value, json};

use super::shell::{Daemon, only_task, own_time, peak_kib, runs, site, with_either_daemon};

with_either_daemon! {
    what_is_printed_as_json_is_shown_and_its_verdict_counts
    a_tool_that_is_not_allowed_ends_the_turn
    a_line_without_an_end_ends_the_turn
    however_much_is_printed_little_is_kept
    whoever_waits_for_more_input_gets_none
    presets_can_be_looked_at_and_the_sample_be_used
    a_program_in_the_users_home_is_said_to_be_hidden_there
}

/// Programs that print what they are told.
const PRESETS: &str = r#"
[[presets]]
id = "says"
argv_first = ["cat"]
argv_follow_up = ["cat"]
prompt = "stdin"
output = "jsonl"
tools = { Bash = "bash", Write = "write" }

[[presets]]
id = "works"
argv_first = ["sh", "-c", "cat; sleep \"$1\"; echo late > late", "sh", "{allowed_tools}"]
prompt = "stdin"
output = "jsonl"

[[presets]]
id = "endless"
argv_first = ["sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x; sleep \"$1\"", "sh", "{prompt}"]
output = "jsonl"

[[presets]]
id = "flood"
argv_first = ["sh", "-c", "head -c 134217728 /dev/zero | tr '\\0' x | fold -b -w 1000000; echo", "{prompt}"]
output = "jsonl"

[[presets]]
id = "reads"
argv_first = ["sh", "-c", "read -r line; echo \"read: $? $line\"", "{prompt}"]
"#;

/// Runs a preset, and returns its task; the exit code tells how that ended.
fn run(site: &HostSite, preset: &str, text: &str) -> (i32, Value) {
    let ran = site.run(&["task", "run", text, "--preset", preset, "--wait"]);
    (ran.code, site.json(&["task", "list"])[0].clone())
}

/// Runs one whose turn fails, and waits until the task says so, with these words.
#[track_caller]
fn fails(site: &HostSite, preset: &str, text: &str, says: &str) -> String {
    let (code, row) = run(site, preset, text);
    assert_eq!(code, 1, "{row}");
    let id = row["id"].as_str().unwrap().to_owned();
    says_why(site, &id, says);
    id
}

/// What went wrong is told after the turn's end.
fn says_why(site: &HostSite, id: &str, says: &str) {
    site.until(id, |row| row["error"].as_str().unwrap().contains(says));
}

fn lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn assistant(blocks: Value) -> Value {
    json!({ "type": "assistant", "session_id": "s", "message": { "role": "assistant", "content": blocks } })
}

fn a_program_in_the_users_home_is_said_to_be_hidden_there(site: HostSite) {
    fs::create_dir_all(site.path("home/bin")).unwrap();
    let program = site.give("home/bin/mine", "#!/bin/sh\necho ran\n");
    files::chmod(&program, 0o755);
    let preset = format!("[[presets]]\nid = \"mine\"\nargv_first = [{program:?}, \"{{prompt}}\"]\n");
    let site = site.with_presets(&preset);
    let _daemon = site.start_with_shell();
    let id = fails(&site, "mine", "do it", "hidden, unless the preset's from_home names it");
    assert!(!site.row(&id)["error"].as_str().unwrap().contains("cannot be made"));
}

fn what_is_printed_as_json_is_shown_and_its_verdict_counts(site: HostSite) {
    let site = site.with_presets(PRESETS);
    let _daemon = site.start_with_shell();
    let call = json!([
        { "type": "text", "text": "I look" },
        { "type": "tool_use", "id": "c", "name": "Bash", "input": { "command": "ls" } },
    ]);
    let gave = json!([{ "type": "tool_result", "tool_use_id": "c", "content": "a b" }]);
    let success =
        json!({ "type": "result", "subtype": "success", "is_error": false, "result": "two\u{1b}[2J" });
    let said = lines(&[
        json!({ "type": "system", "subtype": "init", "session_id": "s", "tools": ["Bash", "Write"] }),
        assistant(call),
        json!({ "type": "user", "message": { "role": "user", "content": gave } }),
        assistant(json!([{ "type": "text", "text": "two" }])),
        success,
    ]);
    let (code, row) = run(&site, "says", &said);
    assert_eq!((code, &row["status"], &row["lastText"]), (0, &"completed".into(), &"two".into()), "{row}");
    let id = row["id"].as_str().unwrap();
    let logs = site.ok(&["task", "logs", id]);
    for part in ["I look", "bash {\"command\":\"ls\"}", "a b"] {
        assert!(logs.contains(part), "{part}: {logs}");
    }
    let tell = |line: Value| site.run(&["task", "tell", id, &lines(&[line]), "--wait"]).code;
    // Its own verdict counts, and without one its exit code, which is 0.
    let failed =
        json!({ "type": "result", "subtype": "success", "is_error": true, "result": "Not logged in" });
    assert_eq!(tell(failed), 1);
    says_why(&site, id, "Not logged in");
    assert_eq!(tell(assistant(json!([{ "type": "text", "text": "no verdict" }]))), 0);
    assert_eq!(tell(json!("please log in first")), 1);
    says_why(&site, id, "no JSON object");
    says_why(&site, id, "please log in first");
}

fn a_tool_that_is_not_allowed_ends_the_turn(site: HostSite) {
    let time = own_time();
    let presets = PRESETS.replace("{allowed_tools}", &time);
    let site = site.with_presets(&presets);
    let _daemon = site.start_with_shell();
    for name in ["write", "Bash", "mcp__x__y"] {
        let call = json!([{ "type": "tool_use", "id": "c", "name": name, "input": {} }]);
        let says = format!("the tool {name}, which the task does not allow");
        let id = fails(&site, "works", &lines(&[assistant(call)]), &says);
        assert!(!fs::exists(site.root().join(id).join("late")).unwrap());
        while runs(&time) {
            std::thread::yield_now();
        }
    }
}

fn a_line_without_an_end_ends_the_turn(site: HostSite) {
    let site = site.with_presets(PRESETS);
    let _daemon = site.start_with_shell();
    let time = own_time();
    fails(&site, "endless", &time, "more than 4 MiB");
    assert!(!runs(&time));
}

fn however_much_is_printed_little_is_kept(site: HostSite) {
    let site = site.with_presets(PRESETS);
    let daemon = site.start_with_shell();
    fails(&site, "flood", "x", "no JSON object");
    let script = "head -c 1073741824 /dev/zero; echo; echo the end";
    let ran = site.run(&["task", "run", script, "--wait"]);
    assert!(ran.code == 0 && ran.stdout.ends_with("the end\n"), "{}", ran.stdout.len());
    let peak = peak_kib(&daemon);
    assert!(peak < 150 << 10, "{peak}");
}

fn whoever_waits_for_more_input_gets_none(site: HostSite) {
    let site = site.with_presets(PRESETS);
    let _daemon = site.start_with_shell();
    let (code, row) = run(&site, "reads", "x");
    assert_eq!((code, &row["lastText"]), (0, &"read: 1 ".into()), "{row}");
}

fn presets_can_be_looked_at_and_the_sample_be_used(site: HostSite) {
    // It needs no daemon.
    let sample = site.ok(&["task", "presets", "--sample"]);
    // Whatever is installed here.
    let programs = ["claude", "codex", "gemini", "qwen", "opencode", "cursor-agent", "goose", "aider"];
    let toml = programs.iter().fold(sample, |toml, program| {
        toml.replace(&format!("\"{program}\", "), &format!("\"no-{program}\", "))
    });
    let needy = "[[presets]]\nid = \"needy\"\nargv_first = [\"sh\", \"{prompt}\"]\nneeds = [\"bash\", \"read\", \"edit\"]\n";
    let site = site.with_presets(&format!("{toml}\n{needy}"));
    let _daemon = site.start_with_shell();
    let presets = site.json(&["task", "presets"]);
    let of = |id: &str| presets.as_array().unwrap().iter().find(|preset| preset["id"] == id).unwrap().clone();
    assert_eq!((&of("shell")["chosen"], &of("shell")["usable"]), (&true.into(), &true.into()));
    for id in ["claude", "codex", "gemini", "qwen", "opencode", "cursor", "goose", "aider"] {
        let why = of(id)["why"].as_str().unwrap_or_default().to_owned();
        assert!(
            of(id)["usable"] == false && why.contains("is not found in the daemon's PATH; install it"),
            "{id}: {why}"
        );
    }
    assert_eq!((&of("needy")["broken"], &of("needy")["usable"]), (&false.into(), &false.into()));
    assert_eq!(of("needy")["lacks"], json!(["read", "edit"]));
    let shown = site.ok(&["task", "presets"]);
    assert!(shown.contains("not allowed: read, edit"), "{shown}");
    let refused = site.run(&["task", "run", "anything", "--preset", "nobody"]);
    assert!(refused.code == 1 && refused.stderr.contains("cofferdam task presets"), "{refused:?}");
    assert!(site.json(&["task", "list"]).as_array().unwrap().is_empty());
    // One whose program is not there says so.
    let id = fails(&site, "shell", "exec no-such-program", "no-such-program");
    assert_eq!(only_task(&site), id);
}
