//! `cofferdam config` and `cofferdam console`.

use cofferdam_protocol::pod::{Config, PatchedConfig};
use serde_json::{Value, json};

use crate::client::host::testing::*;

/// A host with the default configuration, which takes patches as a core does.
fn host() -> Stub {
    Stub::new(|method, args| match method {
        "getState" => ok(state(&[])),
        "setConfig" => {
            let patch = args["patch"].as_object().unwrap();
            let (config, messages) = Config::default().patched(patch, |root| Ok(root.to_owned()));
            ok(PatchedConfig { config, messages })
        }
        "console/code?plain=false" => Ok(json!({"url": "http://c0.localhost:1/code#x"})),
        "console/code?plain=true" => Ok(json!({"url": "http://127.0.0.1:1/code#x"})),
        "console/sign-out" => Ok(json!({"browsers": 2})),
        other => panic!("{other}"),
    })
}

#[test]
fn one_key_is_shown_as_it_can_be_written() {
    let host = host();
    for (key, value) in [
        ("timeoutMs", "600000"),
        ("allowedTools", "pwsh,bash,read,write,edit,glob,grep"),
        ("sandboxRoot", ""),
        ("logLevel", "info"),
    ] {
        assert_eq!(host.run(&["config", "get", key]), ran(0, &format!("{value}\n"), ""));
    }
    let all = host.run(&["config", "get", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Config>(&all.out).unwrap(), Config::default());
    let none = host.run(&["config", "get", "timeout"]);
    assert!(
        none.code == 1 && none.err.starts_with("Error: there is no key timeout; there are allow"),
        "{none:?}"
    );
}

#[test]
fn what_was_applied_is_printed_and_what_was_adjusted_or_ignored_is_said() {
    let host = host();
    for (changes, code, out, err) in [
        (&["maxConcurrent=5"][..], 0, "maxConcurrent = 5\n", ""),
        (
            &["maxConcurrent=99", "nothing=1"],
            0,
            "maxConcurrent = 8\n",
            "maxConcurrent: 99 is no integer from 1 to 8; 8 is used\nnothing: there is no such key; ignored\n",
        ),
        (
            &["allowWrites=maybe"],
            1,
            "",
            "allowWrites: must be true or false; ignored\nError: nothing was changed\n",
        ),
        (&["no\x1b=1"], 1, "", "no\\u{1b}: there is no such key; ignored\nError: nothing was changed\n"),
        (&["allowedTools=bash,read"], 0, "allowedTools = bash,read\n", ""),
        (&["sandboxRoot=/pods/"], 0, "sandboxRoot = /pods\n", ""),
    ] {
        assert_eq!(host.run(&[&["config", "set"], changes].concat()), ran(code, out, err), "{changes:?}");
    }
    let json = host.run(&["config", "set", "maxTasks=7", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&json.out).unwrap()["config"]["maxTasks"], 7);
}

#[test]
fn a_change_that_is_none_asks_nothing_of_the_host() {
    let host = host();
    assert_eq!(host.run(&["config", "set", "maxTasks"]).code, 1);
    assert!(host.asked().is_empty());
}

#[test]
fn a_configuration_that_cannot_be_read_now_says_why() {
    let host = Stub::new(|_, _| {
        let mut state = state(&[]);
        (state.config, state.core.message) = (None, "the core is gone".into());
        ok(state)
    });
    let why = "Error: the configuration cannot be read now: the core is gone\n";
    assert_eq!(host.run(&["config", "get"]), ran(1, "", why));
    assert_eq!(host.run(&["config", "set", "maxTasks=7"]), ran(1, "", why));
}

#[test]
fn the_console_has_an_address() {
    let host = host();
    assert_eq!(host.run(&["console"]), ran(0, "http://c0.localhost:1/code#x\n", ""));
    let plain = host.run(&["console", "--plain"]);
    assert_eq!((plain.code, plain.out.as_str()), (0, "http://127.0.0.1:1/code#x\n"));
    assert!(plain.err.contains("do not open what an agent serves"), "{}", plain.err);
    assert_eq!(host.run(&["console", "--sign-out"]), ran(0, "Signed out: 2 browsers.\n", ""));
    let old = Stub::new(|_, _| Err((404, "NotFound", "nothing here; see openapi.json")));
    let told = "Error [NotFound]: nothing here; see openapi.json\n\
                Hint: the daemon is of an older version than this program; start it anew\n";
    assert_eq!(old.run(&["console"]), ran(1, "", told));
    let off = Stub::new(|_, _| {
        Err((404, "NotFound", "this daemon has no console; run cofferdam serve, without --http off"))
    });
    let told = "Error [NotFound]: this daemon has no console; run cofferdam serve, without --http off\n";
    assert_eq!(off.run(&["console"]), ran(1, "", told));
}

#[test]
fn without_a_daemon_a_verb_fails_and_says_how_to_start_one() {
    let host = host();
    host.hang_up();
    let ran = host.run(&["task", "list"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("control.sock") && ran.err.contains("cofferdam serve"), "{}", ran.err);
}
