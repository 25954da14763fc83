//! `cofferdam session`: stored conversations for people, with and without a daemon.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use cofferdam_tests::files::write;
use cofferdam_tests::session::{SessionSite, id};
use cofferdam_tests::site::{Daemon, Ran, run};
use serde_json::{Value, json};

/// A place with three conversations; number 3 is damaged.
fn site() -> SessionSite {
    let site = SessionSite::new(env!("CARGO_BIN_EXE_cofferdam"));
    site.put_ready(&id(1), 100);
    site.put_ready(&id(2), 200);
    site.put(&id(3), "{broken", 300);
    site
}

/// `cofferdam session …` in the site's workspace, told of no daemon but one of this site.
fn session(site: &SessionSite, arguments: &[&str]) -> Command {
    let mut command = site.core(&["session"]);
    command
        .args(arguments)
        .current_dir(site.workspace())
        .env("COFFERDAM_STATE_DIR", site.path("state"))
        .env("WS_CKPT_SOCKET", site.path("socket"))
        .env("TZ", "UTC")
        .stdin(Stdio::null());
    command
}

#[track_caller]
fn done(site: &SessionSite, arguments: &[&str]) -> String {
    let Ran { code, stdout, stderr } = run(&mut session(site, arguments));
    assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
    stdout
}

#[track_caller]
fn failed(site: &SessionSite, arguments: &[&str]) -> String {
    let Ran { code, stdout, stderr } = run(&mut session(site, arguments));
    assert_eq!((code, &*stdout), (1, ""), "{arguments:?}: {stderr}");
    stderr
}

/// Runs a command whose question is answered through a pipe.
fn answered(mut command: Command, answer: &str) -> Ran {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn conversations_are_listed_newest_first_as_a_table_or_as_json() {
    let site = site();
    let table = done(&site, &["list"]);
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[0].starts_with("SESSION ") && lines[0].contains("UPDATED(UTC+0)"), "{table}");
    assert!(lines[1].starts_with(id(3).as_str()) && lines[1].ends_with("corrupt"), "{table}");
    assert!(lines[2].starts_with(id(2).as_str()) && lines[2].ends_with("ready    hello"), "{table}");
    assert_eq!(lines.last(), Some(&"Total: 3 conversation(s)"));

    let first: Value = serde_json::from_str(&done(&site, &["list", "-n", "2", "--format", "json"])).unwrap();
    assert_eq!(first["sessions"].as_array().unwrap().len(), 2);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = done(&site, &["list", "--cursor", cursor, "--format", "json"]);
    let rest: Value = serde_json::from_str(&rest).unwrap();
    assert_eq!(rest["sessions"][0]["session_id"], json!(id(1)));
    assert_eq!(rest["next_cursor"], Value::Null);

    let some = run(&mut session(&site, &["list", "-n", "1"]));
    assert!(some.stderr.contains("There are more"), "{some:?}");
}

#[test]
fn conversations_of_other_workspaces_are_listed_with_where_they_belong() {
    let site = site();
    let other = site.other("other");
    let listed = done(&site, &["-w", other.to_str().unwrap(), "list"]);
    assert_eq!(listed, "No conversations found.\n");
    let listed = done(&site, &["list", "-w", other.to_str().unwrap(), "--all-workspaces"]);
    assert!(listed.contains(&format!("scope mismatch  {}", site.workspace().display())), "{listed}");
}

#[test]
fn one_conversation_is_shown_checked_and_exported() {
    let site = site();
    let (good, bad) = (id(1).to_string(), id(3).to_string());
    assert!(done(&site, &["show", &good]).contains("Health:       ready\n"));
    assert!(done(&site, &["show", &bad]).contains("Health:       corrupt\n"));
    assert_eq!(done(&site, &["validate", &good]), format!("{good} can be resumed: 2 message(s)\n"));
    let refused = failed(&site, &["validate", &bad]);
    assert!(refused.starts_with("Error: [corrupt] ") && refused.contains("\nHint: "), "{refused}");

    let markdown = done(&site, &["export", &good]);
    assert!(markdown.ends_with("\n## User\n\nhello\n\n\n## Assistant\n\nyes\n"), "{markdown}");
    let whole: Value = serde_json::from_str(&done(&site, &["export", &good, "--format", "json"])).unwrap();
    assert_eq!(whole["generation"], 3);
    assert!(failed(&site, &["export", &bad]).starts_with("Error: [corrupt] "));
    assert!(failed(&site, &["show", "BAD"]).starts_with("Error: [invalid_id] "));
}

#[test]
fn nothing_is_removed_without_consent_to_the_exact_plan() {
    let site = site();
    let (one, three) = (id(1).to_string(), id(3).to_string());
    let no = answered(session(&site, &["clear", &one, &three, &one]), "n\n");
    assert_eq!((no.code, &*no.stdout), (0, ""));
    let plan = format!("  {one}  hello\n  {three}\nRemove 2 conversation(s) for good?");
    assert!(no.stderr.contains(&plan), "{no:?}");
    let all = answered(session(&site, &["clear", "--all"]), "n\n");
    assert!(all.stderr.contains(&format!("  {one}  hello\n")), "{all:?}");
    // Nobody is asked about what cannot be carried out.
    let bad = answered(session(&site, &["clear", &one, "BAD"]), "y\n");
    assert_eq!((bad.code, &*bad.stdout), (1, ""));
    assert!(bad.stderr.starts_with("Error: [invalid_id] invalid session ID: BAD\nHint: "), "{bad:?}");
    assert!(failed(&site, &["clear", "--all"]).contains("--yes"));
    assert!(done(&site, &["list"]).ends_with("Total: 3 conversation(s)\n"));

    let yes = answered(session(&site, &["clear", &one, &three]), "y\n");
    assert_eq!((yes.code, &*yes.stdout), (0, "Removed 2 conversation(s).\n"));
    assert_eq!(done(&site, &["clear", "--all", "--yes"]), "Removed 1 conversation(s).\n");
    assert_eq!(done(&site, &["clear", "--all", "--yes"]), "No conversations to remove.\n");
}

#[test]
fn a_workspace_that_is_not_there_is_said_to_be_missing_and_not_its_store() {
    let site = site();
    for verb in [&["list"][..], &["show", id(1).as_str()], &["clear", "--all"]] {
        let refused = failed(&site, &[verb, &["-w", "/nonexistent/project"]].concat());
        assert_eq!(refused, "Error: there is no directory /nonexistent/project; -w names the workspace\n");
    }
}

#[test]
fn a_format_that_does_not_exist_is_a_table_with_a_word_about_it() {
    let site = site();
    let ran = run(&mut session(&site, &["list", "--format", "yaml"]));
    assert!(ran.code == 0 && ran.stdout.ends_with("Total: 3 conversation(s)\n"), "{ran:?}");
    assert_eq!(ran.stderr, "Warning: no format is called yaml; this is a table\n");
}

#[test]
fn what_was_not_removed_is_told_from_what_was() {
    let site = site();
    let (one, missing) = (id(1).to_string(), id(9).to_string());
    let ran = run(&mut session(&site, &["clear", "--yes", &one, &missing]));
    let expected =
        format!("Removed 1 conversation(s).\nNot removed, 1:\n  {missing}: session not found: {missing}\n");
    assert_eq!((ran.code, ran.stdout), (1, expected));
}

#[test]
fn a_removal_that_is_cut_short_tells_removed_unknown_and_untried() {
    let site = site();
    // The first 128 are removed; then it fails.
    let core = site.path("core");
    write(
        &core,
        r#"#!/bin/sh
ids=$(sed 's/.*"session_ids":\[\([^]]*\)\],"protected.*/\1/')
if [ -e failing ]; then
    printf '{"ok":false,"error":{"code":"io","message":"the disk is gone","recoverable":true}}\n'; exit 1
fi
: > failing
printf '{"ok":true,"data":{"action":"clear","deleted":[%s],"skipped":[]}}\n' "$ids"
"#,
    );
    std::fs::set_permissions(&core, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ids: Vec<_> = (0..257).map(|n| id(n).to_string()).collect();
    let mut arguments = vec!["clear", "--yes", "--format", "json"];
    arguments.extend(ids.iter().map(String::as_str));
    let ran = run(session(&site, &arguments).env("COSH_CORE_PATH", &core));
    assert_eq!(ran.code, 1, "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["deleted"], json!(ids[..128]));
    assert_eq!(report["unknown_session_ids"], json!(ids[128..256]));
    assert_eq!(report["unattempted_session_ids"], json!(ids[256..]));
    assert_eq!(report["error"]["code"], "io");
}

#[test]
fn while_a_daemon_runs_it_is_the_one_that_removes() {
    let site = site();
    let mut serve = site.core(&["serve", "--state-dir"]);
    serve.arg(site.path("state")).arg("--socket").arg(site.path("socket"));
    let daemon = Daemon::start(&mut serve, &site.path("socket"));
    // There is no program that could do it.
    let nowhere = |command: &mut Command| run(command.env("COSH_CORE_PATH", "/nonexistent/core"));
    assert_eq!(nowhere(&mut session(&site, &["list"])).code, 1);
    let one = id(1).to_string();
    let cleared = nowhere(&mut session(&site, &["clear", "--yes", &one]));
    assert_eq!((cleared.code, &*cleared.stdout), (0, "Removed 1 conversation(s).\n"), "{cleared:?}");
    let again = nowhere(&mut session(&site, &["clear", "--yes", &one]));
    assert!(again.stdout.contains("session not found"), "{again:?}");
    assert_eq!(nowhere(&mut session(&site, &["clear", "--yes", "--all"])).code, 0);
    assert!(!site.file(2).exists());
    assert_eq!(daemon.stop().0, 0);
}

#[test]
fn cofferdam_alone_plays_the_part_of_a_program_that_is_not_there() {
    let site = site();
    let alone = site.path("alone/cofferdam");
    std::fs::create_dir(site.path("alone")).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_cofferdam"), &alone).unwrap();
    let mut list = Command::new(&alone);
    list.args(["session", "list", "-w"]).arg(site.workspace()).env_clear().env("HOME", site.home());
    let ran = run(list.stdin(Stdio::null()));
    assert!(ran.stdout.ends_with("Total: 3 conversation(s)\n"), "{ran:?}");
}
