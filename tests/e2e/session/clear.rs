//! Conversations that are removed.

use std::fs::File;
use std::process::Stdio;

use cofferdam_tests::files::{Locked, chmod, mkdir, names, read, rename, sparse, symlink, write};
use cofferdam_tests::session::{ARRAY, SessionSite, envelope, id, put};
use serde_json::{Value, json};

use super::{each_fault, site, site_of_ordinary_user};

/// A request that removes sessions.
fn request(site: &SessionSite, ids: &[&str], protected: &[&str]) -> Value {
    json!({"action": "clear", "workspace_scope": site.workspace(), "session_ids": ids,
        "protected_session_ids": protected})
}

/// What was removed, and what was not and with which code.
#[track_caller]
fn clear(site: &SessionSite, ids: &[&str], protected: &[&str]) -> (Vec<String>, Vec<[String; 2]>) {
    let data = site.data(request(site, ids, protected));
    let skipped = data["skipped"].as_array().unwrap().iter().map(|skipped| {
        [&skipped["session_id"], &skipped["error"]["code"]].map(|text| text.as_str().unwrap().to_owned())
    });
    (serde_json::from_value(data["deleted"].clone()).unwrap(), skipped.collect())
}

#[test]
fn each_id_is_answered_for_itself_in_the_order_asked_for() {
    let site = site();
    for n in [1, 2, 4] {
        site.put_ready(&id(n), 1);
    }
    let lock = |n| format!(".{}.lock", id(n));
    write(site.scope().join(lock(2)), "");
    write(site.scope().join(lock(4)), "");
    let [one, two, three] = [1, 2, 3].map(|n| id(n).to_string());
    let (deleted, skipped) = clear(&site, &[&one, &two, &two, &three, "BAD"], &[&one]);
    assert_eq!(deleted, [two.as_str()]);
    let codes =
        [(one, "active_session"), (two, "not_found"), (three, "not_found"), ("BAD".to_owned(), "invalid_id")];
    assert_eq!(skipped, codes.map(|(id, code)| [id, code.to_owned()]));
    assert_eq!(names(site.scope()), [lock(4), format!("{}.json", id(1)), format!("{}.json", id(4))]);
}

#[test]
fn what_a_file_holds_and_how_large_it_is_does_not_matter() {
    let site = site();
    site.put(&id(1), "{broken", 1);
    site.put(&id(2), r#"{"schema_version": 99}"#, 1);
    site.put(&id(3), envelope(&id(3), &site.path("gone")), 1);
    sparse(site.file(4), 32 << 30, &[]);
    put(&site.legacy(), &id(5), "{broken", 1);
    for n in 1..=5 {
        assert_eq!(site.clear(n), "ok", "{n}");
    }
    assert_eq!((names(site.scope()).len(), names(site.legacy()).len()), (0, 0));
}

#[test]
fn a_file_that_may_not_be_read_can_be_removed() {
    let site = site_of_ordinary_user();
    site.put_ready(&id(1), 1);
    put(&site.legacy(), &id(2), ARRAY, 1);
    chmod(site.file(1), 0);
    chmod(site.legacy().join(format!("{}.json", id(2))), 0);
    site.hand_over();
    assert_eq!([site.clear(1), site.clear(2)], ["ok", "ok"]);
}

#[test]
fn a_session_that_somebody_has_locked_stays_until_he_is_gone() {
    let site = site();
    site.put_ready(&id(1), 1);
    put(&site.legacy(), &id(2), ARRAY, 1);
    let locks =
        [site.scope().join(format!(".{}.lock", id(1))), site.legacy().join(format!("{}.json", id(2)))];
    let held = locks.map(Locked::new);
    let before = read(site.file(1));
    assert_eq!([site.clear(1), site.clear(2)], ["conflict", "conflict"]);
    assert_eq!((read(site.file(1)), site.validate(2)), (before, "ok".to_owned()));
    drop(held);
    assert_eq!([site.clear(1), site.clear(2)], ["ok", "ok"]);
}

#[test]
fn a_directory_that_was_replaced_by_a_link_to_another_workspaces_is_not_touched() {
    let site = site();
    let other = site.other("other");
    site.put_ready(&id(1), 1);
    put(&site.scope_of(&other), &id(1), envelope(&id(1), &other), 1);
    rename(site.scope(), site.path("moved"));
    symlink(site.scope_of(&other), site.scope());
    assert_eq!(site.refused(request(&site, &[id(1).as_str()], &[])), "io");
    assert_eq!(names(site.scope_of(&other)).len(), 1);
    assert_eq!(names(site.path("moved")).len(), 1);
}

#[test]
fn what_is_no_file_is_corrupt_and_stays() {
    let site = site();
    mkdir(site.file(1));
    symlink(site.path("elsewhere"), site.file(2));
    assert_eq!([site.clear(1), site.clear(2)], ["corrupt", "corrupt"]);
    assert_eq!(names(site.scope()).len(), 2);
}

#[test]
fn where_nothing_is_nothing_is_made() {
    let site = site();
    assert_eq!(site.clear(1), "not_found");
    put(&site.legacy(), &id(1), ARRAY, 1);
    assert_eq!(site.clear(1), "ok");
    assert!(!site.home().join(".copilot-shell").exists());
}

#[test]
fn whichever_operation_fails_or_is_the_last_the_conversation_is_there_whole_or_gone_for_good() {
    each_fault(|fault| {
        let site = site();
        for n in [1, 2] {
            site.put_ready(&id(n), 5);
        }
        put(&site.legacy(), &id(1), ARRAY, 1);
        let asked = request(&site, &[id(1).as_str(), id(2).as_str()], &[]);
        let input = site.path("request");
        write(&input, asked.to_string());
        let mut command = site.core(&["--session-control"]);
        command.env("COFFERDAM_FAULT", fault).stdin(File::open(input).unwrap()).stdout(Stdio::piped());
        let output = command.output().unwrap();
        let answer: Option<Value> = serde_json::from_slice(&output.stdout).ok();
        let deleted = answer.as_ref().map_or(&[][..], |answer| answer["data"]["deleted"].as_array().unwrap());
        for n in [1, 2] {
            match site.validate(n).as_str() {
                "ok" => {
                    assert_eq!(site.inspect(n).first_prompt.as_deref(), Some("hello"), "{fault}");
                    assert!(!deleted.contains(&json!(id(n))), "{fault}");
                }
                "not_found" => {}
                other => panic!("{fault}: {other}"),
            }
        }
        for n in [1, 2] {
            assert!(["ok", "not_found"].contains(&site.clear(n).as_str()), "{fault}");
        }
        assert_eq!(site.planned(), [""; 0], "{fault}");
        answer.is_none_or(|answer| answer["data"]["skipped"] != json!([]))
    });
}
