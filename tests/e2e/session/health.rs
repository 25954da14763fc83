//! What becomes of files that are damaged, of another time or place, or no files at all.

use std::process::Command;

use cofferdam_protocol::session::{Health, limits};
use cofferdam_tests::files::{fifo, mkdir, read, remove, rename, sparse, symlink, write};
use cofferdam_tests::session::{ARRAY, SessionSite, envelope, id, put};
use serde_json::{Value, json};

use super::site;

/// Puts a file there and asks for it in every way: its health in summaries, and what validation says.
#[track_caller]
fn health(site: &SessionSite, text: &str) -> (Health, String) {
    site.put(&id(1), text, 7);
    let row = site.inspect(1);
    assert_eq!(site.list(json!({})).0, std::slice::from_ref(&row));
    if matches!(row.health, Health::Corrupt | Health::Incompatible) {
        assert_eq!((row.created_at_ms, row.updated_at_ms), (7000, 7000));
        assert_eq!((row.model, row.message_count, row.first_prompt), (None, 0, None));
        assert_eq!(row.workspace_scope, site.workspace().to_str().unwrap());
    }
    (row.health, site.validate(1))
}

#[test]
fn each_kind_of_damage_has_its_health_and_its_code() {
    let site = site();
    let ready = envelope(&id(1), &site.workspace());
    let change = |from: &str, to: &str| {
        let changed = ready.replace(from, to);
        assert_ne!(changed, ready);
        changed
    };
    let compaction = |value: &str| {
        change("\"compaction_revision\"", &format!("\"compaction\": {value}, \"compaction_revision\""))
    };
    let unusable = json!({"revision": 3, "compacted_through": 1, "summary": "s", "model": "m", "prompt_version": 1,
        "source_digest": "00", "tokens_before": null, "tokens_after": {"value": 5, "source": "estimated"},
        "created_at_ms": 1});
    let workspace = site.workspace();
    let workspace = workspace.to_str().unwrap();
    let foreign = ready.replace(workspace, "/w/other");
    let version = |version: &str| change("\"schema_version\": 1", &format!("\"schema_version\": {version}"));
    let table = [
        (ready.clone(), Health::Ready, "ok"),
        (change("\"generation\": 3", "\"generation\": 18446744073709551615"), Health::Ready, "ok"),
        (compaction("null"), Health::Ready, "ok"),
        (compaction(&unusable.to_string()), Health::Ready, "ok"),
        (ARRAY.to_owned(), Health::Ready, "ok"),
        ("[]".to_owned(), Health::Ready, "ok"),
        ("{broken".to_owned(), Health::Corrupt, "corrupt"),
        (String::new(), Health::Corrupt, "corrupt"),
        (compaction(r#"{"x": 1}"#), Health::Corrupt, "corrupt"),
        (change("hello", r"\ud83d"), Health::Corrupt, "corrupt"),
        (version("\"1\""), Health::Corrupt, "corrupt"),
        (version("1.0"), Health::Corrupt, "corrupt"),
        (version("-1"), Health::Corrupt, "corrupt"),
        (version("99"), Health::Incompatible, "incompatible_version"),
        // A version is all of its number.
        (version("4294967297"), Health::Incompatible, "incompatible_version"),
        (foreign.clone(), Health::ScopeMismatch, "scope_mismatch"),
        // Another schema says nothing about workspaces; a file under a wrong name may be anybody's.
        (
            foreign.replace("\"schema_version\": 1", "\"schema_version\": 99"),
            Health::Incompatible,
            "incompatible_version",
        ),
        (foreign.replace(id(1).as_str(), id(2).as_str()), Health::Corrupt, "corrupt"),
    ];
    for (text, expected, code) in table {
        assert_eq!(health(&site, &text), (expected, code.to_owned()), "{text}");
    }
}

#[test]
fn summaries_say_what_the_file_says() {
    let site = site();
    health(&site, r#"{"schema_version": 99}"#);
    assert_eq!(site.inspect(1).schema_version, Some(99));
    health(&site, "{broken");
    assert_eq!(site.inspect(1).schema_version, None);
    health(&site, "[]");
    let row = site.inspect(1);
    assert_eq!((row.model, row.schema_version, row.message_count), (None, Some(1), 0));
    let foreign = envelope(&id(1), &site.path("gone"));
    health(&site, &foreign);
    let row = site.inspect(1);
    assert_eq!(
        (row.workspace_scope.as_str(), row.updated_at_ms),
        (site.path("gone").to_str().unwrap(), 2000)
    );
    let error = site.ask(json!({"action": "validate", "session_id": id(1)})).line["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(site.path("gone").to_str().unwrap()), "{message}");
    assert!(message.contains(site.workspace().to_str().unwrap()), "{message}");
}

#[test]
fn a_file_of_any_size_costs_no_memory() {
    let site = site();
    mkdir(site.scope());
    sparse(site.file(1), 32 << 30, &[]);
    sparse(site.file(2), limits::SESSION_FILE + 1, &[]);
    let little_memory = |request: Value| {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "ulimit -v 500000 && exec \"$0\" --session-control"]);
        command.arg(env!("CARGO_BIN_EXE_cosh-core")).env_clear().env("HOME", site.home());
        site.run(command, request.to_string().as_bytes())
    };
    let list = little_memory(json!({"action": "list", "workspace_scope": site.workspace()})).data();
    let rows = list["sessions"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["health"] == "corrupt"));
    for n in [1, 2] {
        let request =
            |action| json!({"action": action, "workspace_scope": site.workspace(), "session_id": id(n)});
        assert_eq!(little_memory(request("inspect")).data()["session"]["health"], "corrupt");
        assert_eq!(little_memory(request("validate")).code(), "corrupt");
    }
    assert_eq!((site.clear(1), site.clear(2)), ("ok".to_owned(), "ok".to_owned()));
}

#[test]
fn a_link_to_a_healthy_file_is_corrupt_and_nobody_follows_it() {
    let site = site();
    let outside = site.path("outside.json");
    let text = envelope(&id(7), &site.workspace());
    write(&outside, &text);
    mkdir(site.scope());
    symlink(&outside, site.file(7));
    assert_eq!((site.listed(), site.planned()), (vec![], vec![]));
    assert_eq!((site.validate(7), site.clear(7)), ("corrupt".to_owned(), "corrupt".to_owned()));
    let row = site.inspect(7);
    assert_eq!((row.health, row.message_count, row.first_prompt), (Health::Corrupt, 0, None));
    assert_eq!(read(&outside), text.into_bytes());
    assert!(site.file(7).is_symlink());
}

#[test]
fn what_never_ends_is_not_waited_for() {
    let site = site();
    site.put_ready(&id(1), 1);
    fifo(site.file(2));
    mkdir(site.legacy());
    fifo(site.legacy().join(format!("{}.json", id(3))));
    assert_eq!((site.listed(), site.planned()), (vec![id(1).to_string()], vec![id(1).to_string()]));
    for n in [2, 3] {
        assert_eq!((site.inspect(n).health, site.validate(n)), (Health::Corrupt, "corrupt".to_owned()));
        assert_eq!(site.clear(n), "corrupt");
    }
}

#[test]
fn a_damaged_file_of_the_flat_directory_has_a_summary_and_goes_when_asked() {
    let site = site();
    put(&site.legacy(), &id(1), envelope(&id(1), &site.workspace()), 3);
    put(&site.legacy(), &id(2), "[{}]", 2);
    put(&site.legacy(), &id(3), ARRAY, 1);
    let rows = site.list(json!({})).0;
    let health: Vec<_> = rows.iter().map(|row| row.health).collect();
    assert_eq!(health, [Health::Corrupt, Health::Corrupt, Health::Ready]);
    assert_eq!((site.inspect(1), site.inspect(2)), (rows[0].clone(), rows[1].clone()));
    assert_eq!((site.validate(1), site.validate(3)), ("corrupt".to_owned(), "ok".to_owned()));
    assert_eq!((site.clear(1), site.clear(2)), ("ok".to_owned(), "ok".to_owned()));
    assert_eq!(site.listed(), [id(3).as_str()]);
}

#[test]
fn another_workspaces_directory_in_the_place_of_this_ones_is_not_touched() {
    let site = site();
    let other = site.other("other");
    put(&site.scope_of(&other), &id(1), envelope(&id(1), &other), 1);
    symlink(site.scope_of(&other), site.scope());
    let clear = json!({"action": "clear", "session_ids": [id(1)], "protected_session_ids": []});
    for request in [
        json!({"action": "list"}),
        json!({"action": "inspect", "session_id": id(1)}),
        json!({"action": "validate", "session_id": id(1)}),
        json!({"action": "prepare_clear_all", "protected_session_ids": []}),
        clear,
    ] {
        assert_eq!(site.refused(request.clone()), "io", "{request}");
    }
    assert!(site.scope_of(&other).join(format!("{}.json", id(1))).is_file());
}

#[test]
fn a_workspace_that_is_gone_or_became_another_is_told_apart() {
    let site = site();
    site.put_ready(&id(1), 1);
    rename(site.workspace(), site.path("moved"));
    assert_eq!(site.refused(json!({"action": "validate", "session_id": id(1)})), "io");
    let of_moved = json!({"action": "validate", "workspace_scope": site.path("moved"), "session_id": id(1)});
    assert_eq!(site.send(of_moved.to_string()).code(), "not_found");
    symlink("moved", site.workspace());
    assert_eq!(site.refused(json!({"action": "validate", "session_id": id(1)})), "not_found");
    remove(site.workspace());
    mkdir(site.workspace());
    assert_eq!(site.validate(1), "ok");
}
