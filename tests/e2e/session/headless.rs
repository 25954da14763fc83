//! Conversations over the built program: what recordings do not show, or where ours does better.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use cofferdam_tests::files::{fifo, names, read, remove, symlink, write};
use cofferdam_tests::program::LineProgram;
use cofferdam_tests::session::{Headless, SessionSite, id};
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::scripts::{SHELL_CALL, SLOW, hold};
use super::site;

fn mock_site() -> SessionSite {
    let site = site();
    site.use_mock();
    site
}

/// The only session that is stored.
fn only(site: &SessionSite) -> String {
    let listed = site.listed();
    assert_eq!(listed.len(), 1, "{listed:?}");
    listed.into_iter().next().unwrap()
}

fn result(lines: &[Value]) -> &Value {
    let last = lines.last().unwrap();
    assert_eq!(last["type"], "result", "{lines:?}");
    last
}

/// Waits until a provider or tool has written its process id; then that.
fn pid_in(path: &Path) -> String {
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => std::thread::yield_now(),
        }
    }
}

/// Whether a process does not run any more. Nobody may have asked yet how it ended.
fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

#[test]
fn an_interrupt_while_the_provider_answers_ends_the_turn_and_the_provider() {
    let site = site();
    site.use_script(SLOW);
    hold(&site);
    let mut core = site.converse(&[]);
    core.say("count");
    while core.next("stream_event")["event"]["delta"]["text"] != "one " {}
    let pid = pid_in(&site.home().join("pid"));
    core.request("interrupt");
    let cancelled = core.line().unwrap();
    let id = cancelled["session_id"].clone();
    let expected = json!({
        "type": "result", "subtype": "error", "is_error": true, "result": "provider request cancelled",
        "errors": ["provider request cancelled"], "session_id": id,
    });
    assert_eq!(cancelled, expected);
    while !is_gone(&pid) {
        std::thread::yield_now();
    }
    let said = json!([{"role": "user", "content": "count"}]);
    assert_eq!(site.stored(id.as_str().unwrap())["messages"], said);
    remove(site.home().join("hold"));
    assert_eq!(core.answer_to("count again"), "one two three");
    core.end();
    core.ends(0);
}

#[test]
fn a_signal_ends_the_program_at_once_with_its_provider() {
    for (signal, code) in [(Signal::SIGINT, 0), (Signal::SIGTERM, -15)] {
        let site = site();
        site.use_script(SLOW);
        hold(&site);
        let mut core = site.converse(&[]);
        core.say("count");
        let pid = pid_in(&site.home().join("pid"));
        core.signal(signal);
        core.ends(code);
        while !is_gone(&pid) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn an_interrupt_ends_the_command_that_runs() {
    let site = site();
    let work = site.path("elsewhere");
    fifo(work.join("hold"));
    site.use_script(&SHELL_CALL.replace("echo hello", "sleep 3600 & echo $! > pid; read x < hold"));
    let mut core = site.converse(&[]);
    core.say("go");
    let request = core.next("control_request");
    core.respond(request["request_id"].as_str().unwrap(), json!({"behavior": "allow"}));
    let pid = pid_in(&work.join("pid"));
    core.request("interrupt");
    assert_eq!(core.line().unwrap()["message"]["content"][0]["content"], "Interrupted by user");
    assert_eq!(core.line().unwrap()["subtype"], "success");
    while !is_gone(&pid) {
        std::thread::yield_now();
    }
    core.end();
    core.ends(0);
}

#[test]
fn a_command_runs_where_the_persons_shell_is() {
    let site = site();
    site.use_script(&SHELL_CALL.replace("echo hello", "pwd"));
    let mut core = site.converse(&[]);
    let there = site.workspace();
    for (context, expected) in [(Value::Null, site.path("elsewhere")), (json!({"cwd": there}), there.clone())]
    {
        let message = json!({"role": "user", "content": "go"});
        core.send(json!({"type": "user", "message": message, "shell_context": context}));
        let request = core.next("control_request");
        core.respond(request["request_id"].as_str().unwrap(), json!({"behavior": "allow"}));
        let outcome = core.next("user")["message"]["content"][0].clone();
        assert_eq!(outcome["content"], format!("{}\n", expected.display()));
        core.next("result");
        // The script is done with a conversation that holds a result.
        core.end();
        core.ends(0);
        core = site.converse(&[]);
    }
}

#[test]
fn a_line_that_is_not_utf_8_is_malformed() {
    let site = mock_site();
    let mut core = site.converse(&[]);
    core.send_line(b"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"\xff\"}}");
    let lines = core.ends(1);
    assert_eq!(result(&lines)["error_code"], "InvalidJsonlInput");
    assert_eq!(lines.len(), 1);
}

#[test]
fn lines_may_be_blank_long_or_without_an_end() {
    let site = mock_site();
    let mut core = site.converse(&[]);
    let user = |text: &str| json!({"type": "user", "message": {"role": "user", "content": text}}).to_string();
    core.send_bytes(format!("\n  \r\n\t{}\r\n", user("a")));
    assert_eq!(core.next("assistant")["message"]["content"][0]["text"], "mock history: a");
    core.next("result");
    let long = "x".repeat(3 << 20);
    assert_eq!(core.answer_to(&long).len(), "mock history: a | ".len() + long.len());
    core.send_bytes(user("last"));
    core.end();
    let lines = core.ends(0);
    assert_eq!(result(&lines)["subtype"], "success");
    assert_eq!(site.stored(&only(&site))["messages"].as_array().unwrap().len(), 6);
}

#[test]
fn a_client_that_does_not_read_is_not_read_from_for_ever_and_loses_nothing() {
    let site = mock_site();
    let mut core = LineProgram::spawn_unheard(&mut site.core(&["--headless", "--bare"]), "cosh-core");
    let mut stdin = core.take_stdin();
    rustix::fs::fcntl_setfl(&stdin, OFlags::NONBLOCK).unwrap();
    let user = |text: &str| json!({"type": "user", "message": {"role": "user", "content": text}}).to_string();
    // An answer that nobody takes, and more lines than are read ahead.
    let long = user(&"x".repeat(3 << 20));
    let padding = json!({"type": "registry_request", "padding": "x".repeat(64 << 10)});
    let lines = format!("{long}\n{}{}\n", format!("{padding}\n").repeat(256), user("last"));
    let mut sent = 0;
    // Until the program has taken nothing for that long.
    let enough = Timespec::try_from(Duration::from_secs(1)).unwrap();
    while poll(&mut [PollFd::new(&stdin, PollFlags::OUT)], Some(&enough)).unwrap() == 1 {
        sent += stdin.write(&lines.as_bytes()[sent..(sent + 4096).min(lines.len())]).unwrap();
        assert!(sent < lines.len(), "everything was taken, though nothing was read");
    }
    rustix::fs::fcntl_setfl(&stdin, OFlags::empty()).unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&lines.as_bytes()[sent..]).unwrap());
    core.listen();
    let said = Headless::of(core).ends(0);
    writer.join().unwrap();
    assert_eq!(said.iter().filter(|line| line["subtype"] == "success").count(), 2);
}

#[test]
fn a_client_that_is_gone_does_not_keep_a_turn_from_being_stored() {
    let site = mock_site();
    let workspace = site.workspace();
    let mut command = site.core(&["--headless", "--workspace", workspace.to_str().unwrap()]);
    let mut core = LineProgram::spawn_unheard(&mut command, "cosh-core");
    core.hang_up();
    core.send_line(json!({"type": "user", "message": {"role": "user", "content": "hi"}}).to_string());
    core.end();
    let (code, _) = core.wait();
    assert_eq!(code, 1);
    assert_eq!(site.stored(&only(&site))["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn what_cannot_be_resumed_is_said_in_one_line_with_the_text_that_was_given() {
    let site = mock_site();
    site.put(&id(1), "{broken", 1);
    let code = |text: &str| {
        let lines = site.one_shot(&["--resume", text, "hello"]);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!(lines[0]["session_error_phase"], "load");
        assert_eq!(lines[0]["session_id"], text);
        lines[0]["session_error_code"].as_str().unwrap().to_owned()
    };
    for bad in ["", "BAD", " ", "../x", "00000000-0000-4000-8000-00000000000A"] {
        assert_eq!(code(bad), "invalid_id", "{bad:?}");
    }
    assert_eq!(code("00000000-0000-0000-0000-000000000000"), "not_found");
    assert_eq!(code(id(1).as_str()), "corrupt");
    assert_eq!(read(site.file(1)), b"{broken");
}

#[test]
fn a_directory_that_is_gone_between_two_turns_is_made_again() {
    let site = mock_site();
    let mut core = site.converse(&[]);
    core.answer_to("one");
    remove(site.scope());
    core.answer_to("two");
    core.end();
    core.ends(0);
    let stored = site.stored(&only(&site));
    assert_eq!(stored["messages"].as_array().unwrap().len(), 4);
}

#[test]
fn a_root_that_is_a_link_is_followed() {
    let site = mock_site();
    let real = site.other("real");
    std::fs::create_dir_all(site.root().parent().unwrap()).unwrap();
    symlink(&real, site.root());
    site.one_shot(&["hello"]);
    let session = only(&site);
    let scope = site.scope();
    let name = scope.file_name().unwrap();
    assert!(names(real.join(name)).contains(&format!("{session}.json")));
}

#[test]
fn without_persistence_nothing_is_written_and_older_sessions_can_be_looked_at() {
    let site = mock_site();
    site.put_ready(&id(1), 1);
    let before = read(site.file(1));
    site.configure(
        r#"
            [ai]
            active_provider = "demo"
            [ai.providers.demo]
            type = "mock"
            [session]
            auto_persist = false
        "#,
    );
    let mut core = site.converse(&[]);
    let init = core.initialize();
    assert_eq!(init["session_resumable"], false);
    assert_eq!(core.answer_to("new"), "mock history: new");
    core.end();
    core.ends(0);
    assert_eq!(site.listed(), [id(1).as_str()]);
    let lines = site.one_shot(&["--resume", init["session_id"].as_str().unwrap(), "again"]);
    assert_eq!(lines[0]["session_error_code"], "not_found");
    let lines = site.one_shot(&["--resume", id(1).as_str(), "again"]);
    assert_eq!(lines[0]["session_resumable"], false);
    let text = &lines[lines.len() - 2]["message"]["content"][0]["text"];
    assert_eq!(text, "mock history: hello | again");
    assert_eq!(read(site.file(1)), before);
}

#[test]
fn bare_means_without_the_projects_settings_and_without_keeping_anything() {
    let site = mock_site();
    write(site.workspace().join(".copilot-shell/config.toml"), "[ai]\nactive_model = \"of-the-project\"");
    let lines = site.one_shot(&["--bare", "hello"]);
    assert_eq!((&lines[0]["model"], &lines[0]["session_resumable"]), (&json!("mock-history"), &json!(false)));
    assert!(site.listed().is_empty());
    let mut core = site.converse(&[]);
    assert_eq!(core.initialize()["model"], "of-the-project");
}

#[test]
fn secrets_are_neither_stored_nor_shown_to_the_provider_again() {
    let site = site();
    let secret = "sk-A1b2C3d4A1b2C3d4A1b2C3d4A1b2C3d4";
    let call = format!(r#"{{\"command\": \"true\", \"password\": \"{secret}\"}}"#);
    site.use_script(&SHELL_CALL.replace(r#"{\"command\": \"echo hello\"}"#, &call));
    let mut core = site.converse(&[]);
    core.say(&format!("use api_key={secret} please"));
    let request = core.next("control_request");
    assert_eq!(request["request"]["input"]["password"], secret, "who decides sees what is decided about");
    core.respond("req-0", json!({"behavior": "deny"}));
    assert_eq!(core.next("user")["message"]["content"][0]["content"], "Tool call denied: no reason given");
    core.next("result");
    let session = only(&site);
    let stored = String::from_utf8(read(site.stored_at(&session))).unwrap();
    assert!(!stored.contains(secret), "{stored}");
    let messages = site.stored(&session)["messages"].clone();
    assert_eq!(messages[0]["content"], "use api_key=<redacted> please");
    let arguments = &messages[1]["tool_calls"][0]["function"]["arguments"];
    assert_eq!(arguments, r#"{"command":"true","password":"<redacted>"}"#);
    core.end();
    core.ends(0);
    site.use_mock();
    let mut core = site.converse(&["--resume", &session]);
    assert_eq!(core.answer_to("more"), "mock history: use api_key=<redacted> please | more");
}

#[test]
fn a_stored_model_is_kept_unless_another_is_asked_for() {
    let site = mock_site();
    let model_of = |arguments: &[&str]| {
        let mut core = site.converse(&[&["--resume", id(1).as_str()], arguments].concat());
        let model = core.initialize()["model"].as_str().unwrap().to_owned();
        core.answer_to("hi");
        core.end();
        core.ends(0);
        model
    };
    site.put_ready(&id(1), 1);
    assert_eq!(model_of(&[]), "m");
    assert_eq!(site.stored(id(1).as_str())["model"], "m");
    assert_eq!(model_of(&["--model", "m2"]), "m2");
    assert_eq!(site.stored(id(1).as_str())["model"], "m2");

    let mut stored = site.stored(id(1).as_str());
    stored["model"] = json!("");
    write(site.file(1), stored.to_string());
    assert_eq!(model_of(&[]), "mock-history");

    stored["model"] = json!("\u{1f600}".repeat(1 << 18));
    write(site.file(1), stored.to_string());
    assert!(model_of(&[]).len() <= 256);
}

#[test]
fn the_first_that_names_a_model_decides() {
    let site = site();
    let config =
        |model: &str| format!("[ai]\nactive_provider = \"a\"\n{model}\n[ai.providers.a]\ntype = \"mock\"");
    let model = |arguments: &[&str], variable: Option<&str>| {
        let workspace = site.workspace();
        let arguments = [&["--headless", "--workspace", workspace.to_str().unwrap()], arguments].concat();
        let mut command = site.core(&arguments);
        command.envs(variable.map(|value| ("COSH_MODEL", value)));
        let mut core = Headless::of(LineProgram::spawn(&mut command, "cosh-core"));
        core.initialize()["model"].as_str().unwrap().to_owned()
    };
    site.configure(&config(""));
    assert_eq!(model(&[], None), "qwen-max");
    site.configure(&(config("") + "\nmodel = \"of-the-provider\""));
    assert_eq!(model(&[], None), "of-the-provider");
    site.configure(&(config("active_model = \"active\"") + "\nmodel = \"of-the-provider\""));
    assert_eq!(model(&[], None), "active");
    assert_eq!(model(&[], Some("of-the-environment")), "of-the-environment");
    assert_eq!(model(&["--model", "asked"], Some("of-the-environment")), "asked");
}

#[test]
fn the_kind_of_mock_is_that_of_the_active_model_at_the_start() {
    let site = mock_site();
    let lines = site.one_shot(&["--model", "mock-partial-error", "hello"]);
    assert_eq!(result(&lines)["result"], "recoverable mock provider error");
    let session = only(&site);
    assert_eq!(site.stored(&session)["model"], "mock-partial-error");
    assert_eq!(site.stored(&session)["messages"].as_array().unwrap().len(), 1);
    // The stored model is a name only.
    let lines = site.one_shot(&["--resume", &session, "more"]);
    assert_eq!(result(&lines)["subtype"], "success");
    let lines = site.one_shot(&["--bare", "--model", "mock-compact-summary", "hello"]);
    let text = &lines[lines.len() - 2]["message"]["content"][0]["text"];
    assert_eq!(text, "## Objective and constraints\n- deterministic mock summary");
}

#[test]
fn a_failed_turn_is_stored_and_the_session_is_valid() {
    let site = mock_site();
    let lines = site.one_shot(&["--model", "mock-partial-error", "will fail"]);
    assert!(result(&lines).get("session_error_code").is_none());
    let session = only(&site);
    let answer = site.data(json!({"action": "validate", "session_id": session}));
    assert_eq!(answer["session"]["first_prompt"], "will fail");
    assert_eq!(answer["session"]["message_count"], 1);
}

#[test]
fn a_program_that_writes_text_is_a_provider_and_the_environment_may_choose_it() {
    let site = site();
    site.configure(
        r#"
            [ai.providers.upper]
            type = "command"
            command = ["sh", "-c", "grep -o '\"content\":\"[^\"]*\"' | tail -n 1 | cut -d '\"' -f 4 | tr a-z A-Z"]
        "#,
    );
    let workspace = site.workspace();
    let mut command = site.core(&["--headless", "--workspace", workspace.to_str().unwrap()]);
    let mut core = Headless::of(LineProgram::spawn(command.env("COSH_AI_PROVIDER", "upper"), "cosh-core"));
    assert_eq!(core.answer_to("hello"), "HELLO\n");
    assert_eq!(core.answer_to("you"), "YOU\n");
    core.end();
    core.ends(0);
}

#[test]
fn without_a_provider_each_turn_fails_and_says_what_to_do() {
    let site = site();
    let lines = site.one_shot(&["hello"]);
    assert!(result(&lines)["result"].as_str().unwrap().starts_with("no provider is configured"));
    assert_eq!(lines.len(), 1);
    assert_eq!(site.stored(&only(&site))["messages"].as_array().unwrap().len(), 1);
}

#[test]
fn a_turn_whose_generation_cannot_grow_is_not_kept() {
    let site = mock_site();
    site.put_ready(&id(1), 1);
    let text = String::from_utf8(read(site.file(1))).unwrap();
    write(site.file(1), text.replace("\"generation\": 3", "\"generation\": 18446744073709551615"));
    let before = read(site.file(1));
    let lines = site.one_shot(&["--resume", id(1).as_str(), "more"]);
    assert_eq!(result(&lines)["session_error_code"], "corrupt");
    assert_eq!(result(&lines)["session_error_phase"], "persist");
    assert_eq!(read(site.file(1)), before);
}

#[test]
fn arguments_that_make_no_sense_say_nothing_on_standard_output() {
    let site = site();
    for arguments in
        [&["--headless", "--frobnicate"][..], &["--headless", "one", "two"], &["--headless", "mcp"]]
    {
        let output = site.core(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(output.stdout, b"", "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_prompt_may_be_empty_or_begin_with_a_dash() {
    let site = mock_site();
    for (arguments, expected) in [(&[""][..], "mock history: "), (&["--", "-x"], "mock history: -x")] {
        let lines = site.one_shot(&[&["--bare"], arguments].concat());
        assert_eq!(lines[lines.len() - 2]["message"]["content"][0]["text"], expected);
    }
}

#[test]
fn lines_are_spoken_wherever_no_person_is_and_the_workspace_is_where_one_is() {
    let site = mock_site();
    let mut command = site.core(&[]);
    command.current_dir(site.workspace());
    let mut core = Headless::of(LineProgram::spawn(&mut command, "cosh-core"));
    assert_eq!(core.answer_to("hi"), "mock history: hi");
    only(&site);
}

#[test]
fn a_program_without_a_core_beside_it_is_one_itself() {
    let site = mock_site();
    let workspace = site.workspace();
    let core = site.core(&["cosh-core", "--headless", "--workspace", workspace.to_str().unwrap(), "hi"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_cofferdam"));
    command.args(core.get_args()).env_clear().env("HOME", site.home());
    let mut headless = Headless::of(LineProgram::spawn(&mut command, "cofferdam"));
    headless.end();
    assert_eq!(result(&headless.ends(0))["subtype"], "success");
    only(&site);
}
