//! Every recorded conversation of the existing program, held again with ours.
//!
//! Ids of new conversations, times, references into an audit log and the list of tools may differ. Where a provider was
//! recorded that is a service, a script answers the same.

use std::collections::BTreeSet;
use std::path::Path;

use cofferdam_tests::files::{Locked, names, read, write};
use cofferdam_tests::program::LineProgram;
use cofferdam_tests::session::{Headless, SessionSite, recorded};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::scripts::{SHELL_CALL, SLOW};
use super::site;

/// What is done beside a conversation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    /// Somebody else writes the session all the time.
    Locked,
    /// Somebody else writes the session until the first result.
    LockedAtFirst,
    /// Somebody else has written the session after it was loaded.
    Moved,
}

/// A stored conversation in which the user said that.
fn stored(site: &SessionSite, id: &str, said: &[&str]) {
    let messages: Vec<Value> = said
        .iter()
        .flat_map(|text| {
            [json!({"role": "user", "content": text}), json!({"role": "assistant", "content": "yes"})]
        })
        .collect();
    let envelope = json!({
        "schema_version": 1, "session_id": id, "workspace_scope": site.workspace(), "created_at_ms": 1,
        "updated_at_ms": 2, "model": "mock-history", "generation": said.len(), "messages": messages,
        "compaction_revision": 0,
    });
    write(site.stored_at(id), envelope.to_string());
}

/// Replaces what depends on the place, in both directions the same.
fn here(site: &SessionSite, text: &str) -> String {
    text.replace("/w/demo", site.workspace().to_str().unwrap())
        .replace("/w/other", site.path("other").to_str().unwrap())
        .replace("/w/absent", site.path("absent").to_str().unwrap())
}

/// Takes out what may differ.
fn comparable(line: &mut Value) {
    line.as_object_mut().unwrap().remove("duration_ms");
    line.as_object_mut().unwrap().remove("tools");
    if let Some(request) = line.get_mut("request").and_then(Value::as_object_mut) {
        request.remove("audit_ref");
    }
}

/// Holds a recorded conversation again.
fn replay(name: &str, meanwhile: Meanwhile, prepare: impl FnOnce(&SessionSite)) -> SessionSite {
    let site = site();
    let text = String::from_utf8(recorded(&format!("headless/{name}.jsonl"), Path::new("/w/demo"))).unwrap();
    let mut events = text.lines().map(|line| serde_json::from_str::<Value>(&here(&site, line)).unwrap());

    let run = events.next().unwrap();
    let config = run["config"].as_str().unwrap();
    match config {
        slow if slow.contains("/slow") => site.use_script(SLOW),
        call if call.contains("/sh\"") => site.use_script(SHELL_CALL),
        mock => site.configure(mock),
    }
    prepare(&site);
    let argv: Vec<&str> = run["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let resumed = argv.iter().skip_while(|word| **word != "--resume").nth(1).copied();
    let mut lock: Option<Locked> = match meanwhile {
        Meanwhile::Locked | Meanwhile::LockedAtFirst => Some(site.lock(resumed.unwrap())),
        _ => None,
    };
    let mut command = site.core(&argv[1..]);
    command.current_dir(site.workspace());
    let mut core = Headless::of(LineProgram::spawn(&mut command, "cosh-core"));
    // The recorded id of a new conversation, and ours.
    let mut fresh: Option<(String, String)> = None;

    for (number, event) in events.enumerate() {
        let place = format!("{name}.jsonl:{}", number + 2);
        match event["dir"].as_str().unwrap() {
            "in" if event["eof"] == true => core.end(),
            "in" => match event["raw"].as_str() {
                Some(raw) => core.send_line(raw),
                None => core.send(event["line"].clone()),
            },
            "out" => {
                let mut line = core.line().unwrap_or_else(|| panic!("{place}: the end instead of {event}"));
                let id = |line: &Value| line["session_id"].as_str().map(str::to_owned);
                if let (None, None, Some(theirs), Some(ours)) =
                    (&fresh, resumed, id(&event["line"]), id(&line))
                {
                    fresh = Some((theirs, ours));
                }
                let mut expected = event["line"].clone();
                if let Some((theirs, ours)) = &fresh {
                    expected = serde_json::from_str(&expected.to_string().replace(theirs, ours)).unwrap();
                }
                if meanwhile == Meanwhile::LockedAtFirst && line["type"] == "result" {
                    lock = None;
                }
                if meanwhile == Meanwhile::Moved && line["subtype"] == "init" {
                    let mut stored = site.stored(resumed.unwrap());
                    stored["generation"] = json!(2);
                    write(site.stored_at(resumed.unwrap()), stored.to_string());
                }
                comparable(&mut line);
                comparable(&mut expected);
                assert_eq!(line, expected, "{place}");
            }
            "signal" => core.signal(event["name"].as_str().unwrap().parse::<Signal>().unwrap()),
            "exit" => {
                assert_eq!(core.line(), None, "{place}");
                let expected = event["code"].as_i64().or(event["signal"].as_i64().map(|signal| -signal));
                let (code, stderr) = core.wait();
                assert_eq!(Some(i64::from(code)), expected, "{place}: {stderr}");
            }
            other => panic!("{place}: {other}"),
        }
    }
    drop(lock);
    site
}

/// Conversations that begin with an empty store.
const FROM_NOTHING: &[&str] = &[
    "auto-persist-off-interactive",
    "auto-persist-off-one-shot",
    "bare-one-shot",
    "control-requests",
    "eof-during-turn",
    "eof-while-approval-pending",
    "interactive-two-turns-shutdown",
    "interactive-without-initialize-eof",
    "interrupt-while-approval-pending",
    "invalid-tool-selection",
    "malformed-content-array",
    "malformed-line",
    "malformed-unknown-subtype",
    "malformed-unknown-type",
    "one-shot",
    "pipelined-lines",
    "provider-error-interactive",
    "provider-error-one-shot",
    "redacted-secret",
    "resume-invalid-id",
    "resume-not-found",
    "resume-not-found-interactive",
    "tool-approved",
    "tool-denied",
    "tool-host-executed",
    "user-foreign-session-id",
    "workspace-missing",
    "workspace-missing-resume",
];

/// Those that need something to be there; each has a test below.
const PREPARED: &[&str] = &[
    "persist-conflict-generation-moved",
    "persist-conflict-lock-held",
    "persist-conflict-then-ok",
    "provider-error-and-persist-conflict",
    "resume-corrupt",
    "resume-incompatible-version",
    "resume-legacy-array",
    "resume-ok",
    "resume-one-shot",
    "resume-scope-mismatch",
    "signal-sigint-during-turn",
    "signal-sigterm-during-turn",
];

/// Those in which ours does better on purpose. The existing program does not read its input while a provider answers;
/// ours notices the interrupt, and ends the turn: see `headless`.
const DIFFERENT: &[&str] = &["interrupt-while-streaming"];

#[test]
fn no_recording_is_left_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/sessions/headless");
    let there: BTreeSet<String> = names(folder).into_iter().collect();
    let held = FROM_NOTHING.iter().chain(PREPARED).chain(DIFFERENT);
    assert_eq!(there, held.map(|name| format!("{name}.jsonl")).collect());
}

#[test]
fn conversations_that_begin_with_nothing_go_as_recorded() {
    for name in FROM_NOTHING {
        replay(name, Meanwhile::Nothing, |_| {});
    }
}

const ONE: &str = "00000000-0000-4000-8000-000000000006";
const TWO: &str = "00000000-0000-4000-8000-000000000007";
const THREE: &str = "00000000-0000-4000-8000-000000000008";

#[test]
fn a_session_that_somebody_else_writes_is_a_conflict_as_recorded() {
    let hello = |site: &SessionSite, id: &str| stored(site, id, &["hello"]);
    let site = replay("persist-conflict-lock-held", Meanwhile::Locked, |site| hello(site, ONE));
    assert_eq!(site.stored(ONE)["generation"], 1);
    replay("provider-error-and-persist-conflict", Meanwhile::Locked, |site| hello(site, THREE));
    let site = replay("persist-conflict-then-ok", Meanwhile::LockedAtFirst, |site| hello(site, ONE));
    assert_eq!(site.stored(ONE)["generation"], 2);
    assert_eq!(site.stored(ONE)["messages"].as_array().unwrap().len(), 6);
    let site = replay("persist-conflict-generation-moved", Meanwhile::Moved, |site| hello(site, TWO));
    assert_eq!(site.stored(TWO)["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn what_cannot_be_resumed_is_refused_as_recorded() {
    let id = |n: u32| format!("00000000-0000-4000-8000-{n:012}");
    replay("resume-corrupt", Meanwhile::Nothing, |site| write(site.stored_at(&id(2)), "{broken"));
    let change = |n: u32, key: &'static str, value: fn(&SessionSite) -> Value| {
        move |site: &SessionSite| {
            stored(site, &id(n), &["hello"]);
            let mut envelope = site.stored(&id(n));
            envelope[key] = value(site);
            write(site.stored_at(&id(n)), envelope.to_string());
        }
    };
    replay("resume-incompatible-version", Meanwhile::Nothing, change(3, "schema_version", |_| json!(99)));
    let elsewhere = change(4, "workspace_scope", |site| json!(site.path("other")));
    replay("resume-scope-mismatch", Meanwhile::Nothing, elsewhere);
}

#[test]
fn what_can_be_resumed_goes_on_as_recorded() {
    let id = "8afd2430-6940-4aec-b6d1-e377a891aea1";
    let said = ["first message", "second message", "third message"];
    let site = replay("resume-ok", Meanwhile::Nothing, |site| stored(site, id, &said[..2]));
    assert_eq!(site.stored(id)["generation"], 3);
    replay("resume-one-shot", Meanwhile::Nothing, |site| stored(site, id, &said));

    let id = "00000000-0000-4000-8000-000000000101";
    let old = |site: &SessionSite| site.legacy().join(format!("{id}.json"));
    let site = replay("resume-legacy-array", Meanwhile::Nothing, |site| {
        write(old(site), recorded("legacy/two-messages.json", &site.workspace()));
    });
    assert!(!old(&site).exists());
    let expected: Value =
        serde_json::from_slice(&recorded("written/resumed-legacy.json", &site.workspace())).unwrap();
    let stored = site.stored(id);
    for key in ["schema_version", "session_id", "workspace_scope", "model", "generation", "messages"] {
        assert_eq!(stored[key], expected[key], "{key}");
    }
}

#[test]
fn signals_do_what_they_did_and_nothing_is_kept_of_the_turn() {
    for name in ["signal-sigint-during-turn", "signal-sigterm-during-turn"] {
        let site = replay(name, Meanwhile::Nothing, super::scripts::hold);
        assert!(!site.scope().exists(), "{name}");
    }
}

#[test]
fn what_a_tool_was_called_with_is_stored_as_recorded() {
    let site = replay("tool-denied", Meanwhile::Nothing, |_| {});
    let id = &site.listed()[0];
    let stored = site.stored(id);
    let call = json!({
        "id": "call-1", "type": "function",
        "function": {"name": "shell", "arguments": "{\"command\":\"echo hello\"}"},
    });
    let expected = json!([
        {"role": "user", "content": "run echo hello"},
        {"role": "assistant", "content": "Running it.", "tool_calls": [call]},
        {"role": "tool", "content": "Tool call denied: not now", "tool_call_id": "call-1"},
        {"role": "assistant", "content": "Done."},
    ]);
    assert_eq!(stored["messages"], expected);
    assert_eq!(stored["model"], "stub-model");
    assert!(!String::from_utf8(read(site.stored_at(id))).unwrap().ends_with('\n'));
}
