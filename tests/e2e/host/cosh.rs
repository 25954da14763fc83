//! Tasks whose agent is `cosh`: our own `cosh-core`, in a sandbox. Each test with a daemon of root's, with the core in it and in a
//! process of its own, and with an ordinary user's.

use std::fs;
use std::path::Path;

use cofferdam_tests::host::{Core, HostSite};
use cofferdam_tests::{files, skip};
use serde_json::{Value, json};

use super::shell::{own_time, runs};
use crate::programs;

const COSH_CORE: &str = env!("CARGO_BIN_EXE_cosh-core");

/// Each of these tests with each daemon.
macro_rules! with_each_daemon {
    ($($test:ident)+) => {
        mod as_user {
            $(#[test] fn $test() {
                if cofferdam_tests::user::is_root() && !super::is_open(super::COSH_CORE.as_ref()) {
                    super::skip!("the build's directory is closed to other users");
                }
                super::$test(super::HostSite::of_ordinary_user(super::programs()));
            })+
        }
        mod embedded {
            $(#[test] fn $test() { super::$test(super::super::site(super::Core::Embedded)); })+
        }
        mod sidecar {
            $(#[test] fn $test() { super::$test(super::super::site(super::Core::Sidecar)); })+
        }
    };
}

with_each_daemon! {
    a_conversation_goes_on_from_turn_to_turn_and_after_a_restart_and_is_listed_where_sessions_are
    a_turn_that_is_cancelled_is_interrupted_and_stays_in_the_conversation
    what_a_cancelled_turn_says_at_last_does_not_make_it_a_completed_one
    a_conversation_that_cannot_be_loaded_says_so_and_is_gone_on_with_when_it_can
    a_turn_that_cannot_be_stored_says_so_and_what_was_heard_of_it_is_kept
    tools_are_called_if_the_task_allows_them
    a_program_that_is_not_there_is_said_to_be
}

/// Whether others may search the directories on the way.
fn is_open(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.ancestors().skip(1).all(|dir| dir.metadata().unwrap().permissions().mode() & 0o001 != 0)
}

/// Has the mock answer.
fn with_mock(site: &HostSite) {
    let text = "[ai]\nactive_provider = \"demo\"\n[ai.providers.demo]\ntype = \"mock\"\nmodel = \"mock-history\"\n\
                [session]\nauto_persist = true\npersist_dir = \"~/.copilot-shell/cosh-core/sessions\"\n";
    site.give("home/.copilot-shell/config.toml", text);
}

/// Has a script answer; what it is asked is in `$request`, and the last that the user said in `$last`.
fn with_script(site: &HostSite, output: &str, script: &str) {
    let script = site
        .give("bin/provider", &format!("request=$(cat)\nlast=${{request##*'\"role\":\"user\"'}}\n{script}"));
    let text = format!(
        "[ai]\nactive_provider = \"demo\"\n[ai.providers.demo]\ntype = \"command\"\noutput = \"{output}\"\n\
         command = [\"/bin/sh\", \"{}\"]\n",
        script.display()
    );
    site.give("home/.copilot-shell/config.toml", &text);
}

/// Puts a program in the place of `cosh-core`, which can become it with `core "$@"`.
fn with_core(site: HostSite, script: &str) -> HostSite {
    let path = site.give("bin/core", &format!("#!/bin/sh\ncore() {{ exec {COSH_CORE} \"$@\"; }}\n{script}"));
    files::chmod(&path, 0o755);
    site.with_variable("COSH_CORE_PATH", path.to_str().unwrap())
}

/// The id of the only task there is.
fn only_task(site: &HostSite) -> String {
    site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned()
}

/// Waits until a task's error says all of this: the turn's end is told before what went wrong.
fn fails_with(site: &HostSite, id: &str, texts: [&str; 2]) {
    let says = |row: &Value| {
        let error = row["error"].as_str().unwrap_or_default();
        texts.iter().all(|text| error.contains(text))
    };
    assert_eq!(site.until(id, says)["status"], "failed");
}

/// The data of an answer about sessions of the sandbox root.
fn sessions(site: &HostSite, action: &str, id: Option<&str>) -> Value {
    let request = json!({"action": action, "workspace_scope": site.root(), "session_id": id});
    let answer = site.session_control(COSH_CORE, &request);
    assert_eq!(answer["ok"], true, "{answer}");
    answer["data"].clone()
}

fn a_conversation_goes_on_from_turn_to_turn_and_after_a_restart_and_is_listed_where_sessions_are(
    site: HostSite,
) {
    with_mock(&site);
    let daemon = site.start_with_cosh();
    let ran = site.run(&["task", "run", "one", "--wait"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "mock history: one\n"), "{ran:?}");
    let id = only_task(&site);
    assert_eq!(site.ok(&["task", "tell", &id, "two", "--wait"]), "mock history: one | two\n");
    let row = site.row(&id);
    assert_eq!((&row["sandboxProbe"], &row["turns"]), (&"denied".into(), &2.into()), "{row}");
    daemon.stop();
    let _daemon = site.start();
    assert_eq!(site.row(&id)["canResume"], true);
    site.ok(&["task", "resume", &id]);
    assert_eq!(site.ok(&["task", "tell", &id, "three", "--wait"]), "mock history: one | two | three\n");

    let listed = sessions(&site, "list", None);
    let listed = listed["sessions"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    let session = &listed[0];
    assert_eq!(
        (&session["health"], &session["first_prompt"], &session["model"]),
        (&"ready".into(), &"one".into(), &"mock-history".into())
    );
    let named = row["sessionId"].as_str().unwrap();
    assert_eq!(named, format!("pod-session-{}", session["session_id"].as_str().unwrap()));
    let inspected = sessions(&site, "inspect", session["session_id"].as_str());
    // What it is told about its surroundings, and three times two.
    assert_eq!(inspected["session"]["message_count"], 7, "{inspected}");
}

fn a_turn_that_is_cancelled_is_interrupted_and_stays_in_the_conversation(site: HostSite) {
    let time = own_time();
    with_script(
        &site,
        "text",
        &format!(
            "case $last in *hold*) printf begun; exec sleep {time};; esac\n\
             printf %s \"$request\" | grep -o '\"role\":\"user\"' | wc -l"
        ),
    );
    let _daemon = site.start_with_cosh();
    let id = site.task("hold");
    while !runs(&time) {
        std::thread::yield_now();
    }
    site.ok(&["task", "cancel", &id]);
    site.until(&id, |row| row["status"] == "cancelled");
    assert_eq!(site.ok(&["task", "tell", &id, "how many", "--wait"]).trim(), "2");
    assert!(!runs(&time));
    assert!(site.ok(&["task", "logs", &id]).contains("begun"));
}

fn what_a_cancelled_turn_says_at_last_does_not_make_it_a_completed_one(site: HostSite) {
    // It ends the turn well, but only when it is interrupted.
    let time = own_time();
    let site = with_core(
        site,
        &format!(
            r#"
[ -e late ] && core "$@"
touch late
while read -r line; do
    case $line in
    *'"interrupt"'*)
        echo '{{"type":"assistant","message":{{"content":[{{"type":"text","text":"late words"}}]}}}}'
        echo '{{"type":"result","subtype":"success","is_error":false,"result":"completed","session_id":"x"}}'
        exit 0;;
    *'"user"'*) sleep {time} < /dev/null > /dev/null 2>&1 & ;;
    esac
done"#
        ),
    );
    with_mock(&site);
    let _daemon = site.start_with_cosh();
    let id = site.task("one");
    while !runs(&time) {
        std::thread::yield_now();
    }
    site.ok(&["task", "cancel", &id]);
    let row = site.until(&id, |row| row["status"] == "cancelled" && row["lastText"] == "late words");
    assert_eq!(row["error"], "", "{row}");
    assert!(!runs(&time));
    let told = site.ok(&["task", "tell", &id, "two", "--wait"]);
    assert!(told.starts_with("mock history: ") && told.ends_with("two\n"), "{told}");
    assert_eq!(site.row(&id)["status"], "completed");
}

/// Where the conversations are in the home of a sandbox.
const STORED: &str = "\"$HOME\"/.copilot-shell/cosh-core/sessions/*/*.json";

fn a_conversation_that_cannot_be_loaded_says_so_and_is_gone_on_with_when_it_can(site: HostSite) {
    let damage =
        format!("[ -e damage ] && for file in {STORED}; do echo damaged > \"$file\"; done; core \"$@\"");
    let site = with_core(site, &damage);
    with_mock(&site);
    let _daemon = site.start_with_cosh();
    site.ok(&["task", "run", "one", "--wait"]);
    let id = only_task(&site);
    // In the task's directory, in which the program runs.
    let mark = Path::new(site.row(&id)["taskDir"].as_str().unwrap()).join("damage");
    files::write(&mark, "");
    let ran = site.run(&["task", "tell", &id, "two", "--wait"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    fails_with(&site, &id, ["session recovery failed [corrupt]", "start a new one"]);
    fs::remove_file(&mark).unwrap();
    let told = site.ok(&["task", "tell", &id, "three", "--wait"]);
    assert!(told.starts_with("mock history: one | ") && told.ends_with("three\n"), "{told}");
}

fn a_turn_that_cannot_be_stored_says_so_and_what_was_heard_of_it_is_kept(site: HostSite) {
    // Somebody else writes into the same conversation while the provider answers.
    with_script(
        &site,
        "text",
        &format!(
            "case $last in *meddle*) sed -i 's/\"generation\": [0-9]*/\"generation\": 77/' {STORED}; echo meddled; exit;; esac\n\
             printf %s \"$request\" | grep -o '\"role\":\"user\"' | wc -l"
        ),
    );
    let _daemon = site.start_with_cosh();
    assert_eq!(site.ok(&["task", "run", "one", "--wait"]).trim(), "1");
    let id = only_task(&site);
    let ran = site.run(&["task", "tell", &id, "meddle", "--wait"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    fails_with(&site, &id, ["session persistence failed [conflict]", "Resolve"]);
    assert_eq!(site.ok(&["task", "tell", &id, "three", "--wait"]).trim(), "3");
}

/// Has the shell leave a file; says what became of that.
const CALLS: &str = r#"
case $request in
*'"role":"tool"'*) cat <<'END' ;;
{"type":"message_start"}
{"type":"content_block_start","index":0,"content_block":{"type":"text"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"done"}}
{"type":"content_block_stop","index":0}
{"type":"message_stop"}
END
*) cat <<'END' ;;
{"type":"message_start"}
{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"shell"}}
{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"command\": \"echo text > made; echo made\"}"}}
{"type":"content_block_stop","index":0}
{"type":"message_stop"}
END
esac
"#;

fn tools_are_called_if_the_task_allows_them(site: HostSite) {
    with_script(&site, "events", CALLS);
    let _daemon = site.start_with_cosh();
    for (allowed, is_made) in [("bash", true), ("read", false)] {
        site.ok(&["config", "set", &format!("allowedTools={allowed}")]);
        let ran = site.run(&["task", "run", "make it", "--wait"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
        let row = &site.json(&["task", "list"])[0];
        let id = row["id"].as_str().unwrap();
        assert_eq!(Path::new(row["taskDir"].as_str().unwrap()).join("made").exists(), is_made);
        let logs = site.ok(&["task", "logs", id]);
        assert_eq!(logs.contains("bash {\"command\":\"echo text > made; echo made\"}"), is_made, "{logs}");
        assert_eq!(logs.contains("this task does not allow bash"), !is_made, "{logs}");
    }
}

fn a_program_that_is_not_there_is_said_to_be(site: HostSite) {
    let site = site.with_variable("COSH_CORE_PATH", "/no/such/cosh-core");
    let _daemon = site.start_with_cosh();
    let ran = site.run(&["task", "run", "one", "--wait"]);
    assert!(ran.code == 1 && ran.stderr.contains("CONFIG_INVALID"), "{ran:?}");
    assert!(ran.stderr.contains("/no/such/cosh-core"), "{ran:?}");
}
