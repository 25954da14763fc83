//! What the client prints and how it exits: people read it, agents' plug-ins match it.

use std::io::Write;
use std::process::{Command, Stdio};

use cofferdam_protocol::ckpt::{WsCkptErrorCode, WsCkptResponse};
use cofferdam_tests::files;
use cofferdam_tests::site::{Ran, Site, run};
use cofferdam_tests::wire::ask;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::site;

/// Runs `ws-ckpt` with these arguments; `{ws}` stands for the workspace.
fn ws_ckpt(site: &Site, arguments: &[&str]) -> Ran {
    let ws = site.path("project");
    let arguments: Vec<_> = arguments.iter().map(|word| word.replace("{ws}", ws.to_str().unwrap())).collect();
    run(&mut site.ws_ckpt(&arguments.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// Runs a command with something to read.
fn run_with_input(command: &mut Command, input: &str) -> Ran {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn each_verb_prints_what_it_did_and_exits_with_the_truth() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let empty = site.directory("empty");
    let id = daemon.init(&ws);
    let rolled_back = format!("Rolled back workspace {id} to snapshot: one");
    let initialized = format!("Workspace initialized: {id}");
    // In this order: words, exit code, a part of stdout, a part of stderr.
    let cases: &[(&[&str], i32, &str, &str)] = &[
        (&["init", "-w", "{ws}"], 0, &initialized, ""),
        (&["checkpoint", "-w", "{ws}", "-i", "one", "-m", "the first"], 0, "Checkpoint created: one", ""),
        (
            &["checkpoint", "-w", "{ws}", "-i", "two", "--metadata", "{\"a\":1}", "--pin"],
            0,
            "Checkpoint created: two",
            "",
        ),
        (&["checkpoint", "--workspace", "{ws}", "--id", "three"], 0, "Checkpoint created: three", ""),
        (&["checkpoint", "-w", "{ws}", "-i", "one"], 1, "", "already exists"),
        (&["checkpoint", "-w", "{ws}", "-i", "four", "--metadata", "{"], 1, "", "metadata"),
        (&["checkpoint", "-w", "{ws}", "-i", "a/b"], 1, "", "snapshot id"),
        (&["checkpoint", "-w", empty.to_str().unwrap(), "-i", "x"], 0, "", "Empty workspace"),
        (&["rollback", "-w", "{ws}", "-s", "one"], 0, &rolled_back, ""),
        (&["rollback", "-w", "{ws}", "--snapshot", "none"], 1, "", "snapshot not found: none"),
        (&["rollback", "-w", "/nowhere", "-s", "one"], 1, "", "workspace not found"),
        (&["undo", "-w", "{ws}"], 0, "", ""),
        (&["diff", "-w", "{ws}", "-f", "one", "-t", "two"], 0, "No differences found.", ""),
        (&["delete", "-w", "{ws}", "-s", "three"], 0, "Deleted: three", ""),
        (&["delete", "-s", "three"], 1, "", "not found"),
        (&["delete", "-s", "two", "--force"], 0, "Deleted: two", ""),
        (&["cleanup", "-w", "{ws}"], 0, "No snapshots needed cleanup.", ""),
        (&["cleanup", "-w", "{ws}", "--keep", "0"], 0, "one", ""),
        (&["reload"], 0, "Daemon reloaded configuration", ""),
        (&["status"], 0, &id, ""),
        (&["status", "-w", "/nowhere"], 1, "", "workspace not found"),
        (&["list", "-w", "/nowhere"], 1, "", "workspace not found"),
        (&["recover", "-w", "{ws}", "--force"], 0, "", ""),
        (&["recover", "-w", "{ws}", "--force"], 1, "", "not found"),
        (&["frobnicate"], 2, "", ""),
        (&["checkpoint", "-w", "{ws}"], 2, "", ""),
        (&["rollback", "-s", "one"], 2, "", ""),
        (&["cleanup", "-w", "{ws}", "--keep", "many"], 2, "", ""),
        (&["--version"], 0, "ws-ckpt", ""),
        (&["--help"], 0, "checkpoint", ""),
    ];
    for (words, code, stdout, stderr) in cases {
        if words[0] == "rollback" {
            files::append(ws.join("file"), "something to take back\n");
        }
        let ran = ws_ckpt(&site, words);
        assert_eq!(ran.code, *code, "{words:?}: {ran:?}");
        assert!(ran.stdout.contains(stdout), "{words:?}: {ran:?}");
        assert!(ran.stderr.contains(stderr), "{words:?}: {ran:?}");
        assert!(
            !ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'),
            "colours into a pipe: {ran:?}"
        );
        if *code != 0 {
            assert_eq!(ran.stdout, "", "{words:?}: errors belong on stderr");
            assert!(!ran.stderr.contains("panicked"), "{words:?}: {ran:?}");
        }
    }
}

#[test]
fn an_error_without_a_text_of_its_own_names_its_code() {
    let site = site();
    let _daemon = site.start();
    let ran = ws_ckpt(&site, &["status", "-w", "/nowhere"]);
    assert_eq!(ran.stderr.lines().next(), Some("Error [WorkspaceNotFound]: workspace not found: /nowhere"));
}

#[test]
fn without_a_daemon_every_verb_fails_and_says_so() {
    let site = site();
    site.workspace("project");
    for words in [
        ["status"].as_slice(),
        &["list"],
        &["reload"],
        &["init", "-w", "{ws}"],
        &["checkpoint", "-w", "{ws}", "-i", "one"],
        &["undo", "-w", "{ws}"],
        &["recover", "--all", "--force"],
    ] {
        let ran = ws_ckpt(&site, words);
        assert_eq!(ran.code, 1, "{words:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{words:?}");
        assert!(
            ran.stderr.contains(site.socket().to_str().unwrap()) || words[0] == "undo",
            "{words:?}: {ran:?}"
        );
    }
}

#[test]
fn lists_and_reports_are_json_where_that_is_asked_for() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.call(&ask::checkpoint_with(
        &ws,
        "one",
        Some("the \"first\""),
        Some("{\"b\":[1],\"a\":null}"),
        true,
    ));
    daemon.checkpoint(&ws, "two");
    let json = |words: &[&str]| -> Value {
        let ran = ws_ckpt(&site, words);
        assert_eq!(ran.code, 0, "{ran:?}");
        serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{words:?}: {e}: {}", ran.stdout))
    };
    for words in [["list", "--format", "json"].as_slice(), &["list", "-w", "{ws}", "--format", "json"]] {
        let list = json(words);
        assert_eq!(list.as_array().unwrap().len(), 2);
        let first = &list[0];
        assert_eq!(first["id"], "one");
        assert_eq!(first["workspace"], ws.to_str().unwrap());
        assert_eq!(first["meta"]["message"], "the \"first\"");
        assert_eq!(first["meta"]["metadata"], serde_json::json!({"a": null, "b": [1]}));
        assert_eq!(first["meta"]["pinned"], true);
        assert_eq!(first["meta"]["missing"], false);
        assert!(first["meta"]["created_at"].as_str().unwrap().ends_with('Z'));
        assert_eq!(list[1]["meta"]["metadata"], Value::Null);
    }
    let status = json(&["status", "--format", "json"]);
    assert_eq!(status["workspaces"][0]["path"], ws.to_str().unwrap());
    assert_eq!(status["workspaces"][0]["snapshot_count"], 2);
    files::write(ws.join("new"), "n");
    let diff = json(&["diff", "-w", "{ws}", "-f", "one", "-t", "@live", "--format", "json"]);
    assert_eq!(diff[0]["path"], "new");
    assert_eq!(diff[0]["change_type"], "Added");
}

#[test]
fn the_tables_hold_a_line_for_each_and_a_total() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.call(&ask::checkpoint_with(&ws, "one", Some("the first"), None, false));
    daemon.checkpoint(&ws, "two");
    for words in [
        ["list", "-w", "{ws}"].as_slice(),
        &["list", "--format", "table"],
        &["list", "--format", "unheard-of"],
    ] {
        let ran = ws_ckpt(&site, words);
        assert_eq!(ran.code, 0, "{ran:?}");
        for part in
            ["WORKSPACE", "SNAPSHOT", "CREATED", "MESSAGE", "one", "two", "the first", ws.to_str().unwrap()]
        {
            assert!(ran.stdout.contains(part), "{part} is not in {}", ran.stdout);
        }
    }
    files::write(ws.join("file"), "changed");
    files::write(ws.join("dir/new"), "n");
    let ran = ws_ckpt(&site, &["diff", "-w", "{ws}", "-f", "one", "-t", "@live"]);
    let lines: Vec<_> = ran.stdout.lines().map(str::trim_end).collect();
    for line in ["+  dir (directory)", "+  dir/new", "M  file"] {
        assert!(lines.contains(&line), "{line} is not in {lines:?}");
    }
    assert!(ran.stdout.contains("3 change(s)"), "{}", ran.stdout);
}

#[test]
fn a_dot_means_the_directory_one_is_in() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    files::mkdir(ws.join("sub"));
    for (n, (dir, path)) in
        [("project", "."), ("project", "./"), ("project/sub", ".."), ("", "project")].iter().enumerate()
    {
        let id = format!("c{n}");
        let mut command = site.ws_ckpt(&["checkpoint", "-w", path, "-i", &id]);
        let ran = run(command.current_dir(site.path(dir)));
        assert_eq!(ran.code, 0, "{path} in {dir}: {ran:?}");
    }
    assert_eq!(daemon.ids(&ws).len(), 4);
}

#[test]
fn what_destroys_asks_first_and_no_is_the_default() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let path = ws.to_str().unwrap();
    daemon.call(&ask::checkpoint_with(&ws, "kept", None, None, true));
    // Without any answer it is not known what is wanted, and that is no success.
    for (answer, code) in [("", 1), ("\n", 0), ("n\n", 0), ("no\n", 0), ("what?\n", 0)] {
        for words in
            [["delete", "-w", path, "-s", "kept"].as_slice(), &["recover", "-w", path], &["recover", "--all"]]
        {
            let ran = run_with_input(&mut site.ws_ckpt(words), answer);
            assert_eq!(ran.code, code, "{words:?}, {answer:?}: {ran:?}");
            assert_eq!(daemon.ids(&ws), ["kept"], "{words:?}, {answer:?}");
        }
    }
    let ran = run_with_input(&mut site.ws_ckpt(&["delete", "-w", path, "-s", "kept"]), "y\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(daemon.ids(&ws).is_empty());
    let ran = run_with_input(&mut site.ws_ckpt(&["recover", "-w", path]), "y\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    let (code, _) = daemon.refused(&ask::list(&ws));
    assert_eq!(code, WsCkptErrorCode::WorkspaceNotFound);
}

#[test]
fn recover_all_forgets_every_workspace() {
    let site = site();
    let daemon = site.start();
    for name in ["one", "two"] {
        daemon.checkpoint(site.workspace(name), "a");
    }
    let ran = ws_ckpt(&site, &["recover", "--all", "--force"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = ws_ckpt(&site, &["status", "--format", "json"]);
    let status: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(status["workspaces"], Value::Array(vec![]));
}

#[test]
fn the_same_verbs_are_under_cofferdam_ckpt() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let path = ws.to_str().unwrap();
    for words in [
        ["ckpt", "checkpoint", "-w", path, "-i", "one"].as_slice(),
        &["ckpt", "list", "-w", path],
        &["ckpt", "rollback", "-w", path, "-s", "one"],
        &["ckpt", "undo", "-w", path],
    ] {
        files::append(ws.join("file"), "something to take back\n");
        let ran = run(&mut site.cofferdam(words));
        assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
    }
    assert_eq!(daemon.ids(&ws), ["one"]);
}

#[test]
fn check_counts_the_snapshots_that_list_shows_and_names_what_is_damaged() {
    let site = site();
    let daemon = site.start();
    let (one, two) = (site.workspace("one"), site.workspace("two"));
    for n in 0..3 {
        files::write(one.join("file"), format!("content {n} that is unlike the others"));
        daemon.checkpoint(&one, &format!("c{n}"));
    }
    daemon.checkpoint(&two, "c");
    daemon.rollback(&one, "c0");
    daemon.call(&ask::recover(&two));
    // Three: no safety snapshot, nothing in the trash. Beside the daemon and without one.
    let ran = run(&mut site.ws_ckpt(&["check"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("3 snapshots"), "{ran:?}");
    assert_eq!(site.check(), 3);
    daemon.kill();
    let ran = run(&mut site.ws_ckpt(&["check"]));
    assert!(ran.stdout.contains("3 snapshots"), "{ran:?}");
    assert_eq!(site.check(), 3);
}

#[test]
fn damage_is_found_named_and_told_apart_from_good() {
    use std::os::unix::fs::FileExt;

    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "sound");
    files::write(ws.join("big"), cofferdam_tests::project::noise(500_000));
    daemon.checkpoint(&ws, "damaged");
    daemon.stop();
    let packs =
        std::fs::read_dir(site.state().join("ckpt/packs")).unwrap().map(|entry| entry.unwrap().path());
    let largest = packs.max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap();
    let file = std::fs::File::options().read(true).write(true).open(&largest).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 250_000).unwrap();
    file.write_all_at(&[byte[0] ^ 1], 250_000).unwrap();

    let ran = run(&mut site.ws_ckpt(&["check", "--read-data"]));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(!(ran.stdout + &ran.stderr).trim().is_empty(), "what is damaged is named");
    let daemon = site.start();
    files::remove(ws.join("big"));
    files::write(ws.join("file"), "work of today");
    let before = cofferdam_tests::tree::Tree::read(&ws);
    let (code, message) = daemon.refused(&ask::rollback(&ws, "damaged"));
    before.assert_same(&cofferdam_tests::tree::Tree::read(&ws), "after what was refused");
    assert_eq!(code, WsCkptErrorCode::SnapshotNotFound, "{message}");
    assert!(message.starts_with("Snapshot 'damaged' subvolume is missing (data lost)"), "{message}");
    daemon.rollback(&ws, "sound");
    assert_eq!(files::read(ws.join("file")), b"content\n");
    // It is removed like any other.
    let deleted = WsCkptResponse::DeleteOk { target: "damaged".into() };
    assert_eq!(daemon.call(&ask::delete(&ws, "damaged", true)), deleted);
}

#[test]
fn a_daemon_that_does_not_answer_is_given_up_after_the_timeout_that_was_given() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.signal(Signal::SIGSTOP);
    for words in [["status"].as_slice(), &["checkpoint", "-w", ws.to_str().unwrap(), "-i", "one"]] {
        let ran = run(site.ws_ckpt(words).args(["--timeout", "300ms"]));
        assert_eq!(ran.code, 1, "{words:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{words:?}");
        assert!(ran.stderr.contains("300"), "{words:?}: {ran:?}");
    }
    daemon.signal(Signal::SIGCONT);
    assert_eq!(ws_ckpt(&site, &["status", "--timeout", "30s"]).code, 0);
}

#[test]
fn a_name_with_blanks_newlines_and_other_scripts_stays_one_line_of_a_table() {
    let site = site();
    let _daemon = site.start();
    let ws = site.workspace("pro ject\n✓ \u{1b}[31m");
    let path = ws.to_str().unwrap();
    for words in [
        ["checkpoint", "-w", path, "-i", "a b ✓", "-m", "two\nlines \u{1b}[31mred"].as_slice(),
        &["rollback", "-w", path, "-s", "a b"],
        &["list", "-w", path],
        &["status"],
    ] {
        let ran = run(&mut site.ws_ckpt(words));
        assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
        assert!(!ran.stdout.contains('\u{1b}'), "{words:?}: {ran:?}");
        let lines_with_it = ran.stdout.lines().filter(|line| line.contains("pro ject")).count();
        assert!(lines_with_it <= 1, "{words:?}: {ran:?}");
    }
}
