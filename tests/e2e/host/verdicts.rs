//! What becomes of a task by what the test of its sandbox found. Where the finding is forced, a script stands in for the
//! supervisor.

use std::path::Path;

use cofferdam_tests::host::{Core, HostSite};

use super::{site, with_either_core};

with_either_core! {
    a_verdict_decides_whether_the_agent_is_told_anything
    without_landlock_the_test_has_failed_and_no_program_runs_in_either_mode
    a_verdict_says_what_is_not_stopped
}

/// Confines nothing, finds what `finding` says, and has `ran` tell that it was told to run a program.
fn supervisor(finding: &str, ran: &Path) -> String {
    let ran = ran.display();
    format!(
        r#"#!/bin/sh
say() {{ echo "$1" >&0; }}
read -r order
case $order in
    *'"probe":{{'*) say '{{"report":"ready","layers":[]}}'; say '{finding}' ;;
    *)
        : > {ran}
        say '{{"report":"ready","layers":[]}}'
        say '{{"report":"started"}}'
        say '{{"report":"exited","code":0,"signal":null}}'
        ;;
esac
"#
    )
}

/// Runs a task in a mode; returns its exit status, the fields of its row that say why, and its log.
#[track_caller]
fn run(site: &HostSite, mode: &str) -> (i32, [String; 3], String) {
    site.ok(&["config", "set", &format!("sandboxProbeMode={mode}")]);
    let ran = site.run(&["task", "run", "echo something", "--wait"]);
    let row = site.json(&["task", "list"])[0].clone();
    let id = row["id"].as_str().unwrap();
    let text = |key: &str| row[key].as_str().unwrap_or_else(|| panic!("{key}: {row}")).to_owned();
    (ran.code, ["status", "sandboxProbe", "error"].map(text), site.ok(&["task", "logs", id]))
}

fn a_verdict_decides_whether_the_agent_is_told_anything(core: Core) {
    let table = [
        ("denied", "strict", true),
        ("denied", "warn", true),
        ("allowed", "strict", false),
        ("allowed", "warn", false),
        ("ambiguous", "strict", false),
        ("ambiguous", "warn", true),
        ("failed", "strict", false),
        ("failed", "warn", true),
    ];
    for (probe, mode, runs) in table {
        let site = site(core);
        let ran = site.path("ran");
        let finding =
            format!(r#"{{"report":"probe","probe":"{probe}","fsDenied":false,"note":"this was forced"}}"#);
        let site = site.with_supervisor(&supervisor(&finding, &ran));
        let _daemon = site.start_with_shell();
        let (code, [status, shown, error], logs) = run(&site, mode);
        let expected = if runs { (0, "completed") } else { (1, "failed") };
        assert_eq!((code, status.as_str()), expected, "{probe} {mode}: {error}");
        assert_eq!(shown, probe, "{mode}");
        assert_eq!(ran.exists(), runs, "{probe} {mode}");
        // What runs in spite of it says so in its log.
        let said = if runs { &logs } else { &error };
        assert!(said.contains("this was forced"), "{probe} {mode}: {said}");
        assert_eq!(error.is_empty(), runs, "{probe} {mode}: {error}");
    }
}

fn without_landlock_the_test_has_failed_and_no_program_runs_in_either_mode(core: Core) {
    for mode in ["strict", "warn"] {
        let site = site(core);
        let script = r#"#!/bin/sh
read -r order
echo '{"report":"failed","message":"this kernel has no Landlock"}' >&0
"#;
        let site = site.with_supervisor(script);
        let _daemon = site.start_with_shell();
        let (code, [status, probe, error], _) = run(&site, mode);
        assert_eq!((code, status.as_str(), probe.as_str()), (1, "failed", "failed"), "{mode}: {error}");
        assert!(error.contains("no Landlock"), "{mode}: {error}");
    }
}

fn a_verdict_says_what_is_not_stopped(core: Core) {
    let site = site(core);
    let _daemon = site.start_with_shell();
    let (code, [status, probe, error], logs) = run(&site, "strict");
    assert_eq!((code, status.as_str(), probe.as_str()), (0, "completed", "denied"), "{error}");
    let (held, open) = logs.split_once("not stopped here: ").unwrap_or_else(|| panic!("{logs}"));
    assert!(held.contains("sandbox: every write outside was refused. Landlock: version"), "{logs}");
    let open = open.lines().next().unwrap();
    assert!(open.contains("taking locks on files that can be read; the network"), "{logs}");
}
