//! What is a request, which is refused, and which settings and workspace it is about.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use cofferdam_tests::files::{mkdir, names, symlink, write};
use cofferdam_tests::session::{ARRAY, SessionSite, directory_name, envelope, id, put};
use serde_json::{Value, json};

use super::site;

/// A request that lists the site's workspace, as text.
fn list(site: &SessionSite) -> String {
    json!({"action": "list", "workspace_scope": site.workspace()}).to_string()
}

#[track_caller]
fn invalid(site: &SessionSite, request: impl AsRef<[u8]>) {
    let request = request.as_ref();
    let shown = String::from_utf8_lossy(&request[..request.len().min(200)]).into_owned();
    assert_eq!(site.send(request).code(), "invalid_request", "{shown}");
}

#[test]
fn what_is_no_request_is_refused_in_one_line_and_leaves_no_trace() {
    let site = site();
    for bytes in [&b""[..], b"{", b"\xff\xfe", b"null", b"[]", b"\"list\"", b"{}"] {
        invalid(&site, bytes);
    }
    let good = list(&site);
    invalid(&site, [b"\xef\xbb\xbf", good.as_bytes()].concat());
    invalid(&site, format!("{good} {{}}"));
    invalid(&site, good.replace("list", "List"));
    invalid(&site, good.replace("action", "Action"));
    invalid(&site, good.replace("list", "destroy"));
    invalid(&site, good.replace("\"action\"", "\"action\":\"list\",\"action\""));
    invalid(&site, good.replace("\"workspace_scope\"", "\"workspace_scope\":\"/\",\"workspace_scope\""));
    invalid(&site, r#"{"action": "list"}"#);
    invalid(&site, r#"{"action": "list", "workspace_scope": 5}"#);
    for length in 1..good.len() {
        invalid(&site, &good[..length]);
    }
    assert!(names(site.home()).is_empty());
}

#[test]
fn blanks_around_a_request_and_keys_nobody_knows_are_no_matter() {
    let site = site();
    let good = list(&site);
    site.send(format!("\n \t{good}\n\n")).data();
    let workspace = json!(site.workspace());
    site.send(format!(r#"{{"foo": [1, {{}}], "workspace_scope": {workspace}, "action": "list"}}"#)).data();
}

#[test]
fn a_request_of_a_mebibyte_is_read_and_one_a_byte_longer_is_not() {
    let site = site();
    let good = list(&site);
    let longest = format!("{good}{}", " ".repeat((1 << 20) - good.len()));
    assert_eq!(longest.len(), 1_048_576);
    site.send(&longest).data();
    invalid(&site, format!("{longest} "));
    // One that goes on for ever is not read to its end.
    invalid(&site, " ".repeat(8 << 20));
}

#[test]
fn the_limit_of_a_list_is_a_number_from_0_on() {
    let site = site();
    for n in 1..=3 {
        site.put_ready(&id(n), i64::from(n));
    }
    assert_eq!(site.list(json!({"limit": 0})).0.len(), 1);
    assert_eq!(site.list(json!({"limit": 1_000_000_000})).0.len(), 3);
    for limit in [Value::Null, json!(-1), json!("20"), json!(2.0), json!(2.5)] {
        assert_eq!(site.refused(json!({"action": "list", "limit": limit})), "invalid_request", "{limit}");
    }
    for cursor in [json!(5), json!({})] {
        assert_eq!(site.refused(json!({"action": "list", "cursor": cursor})), "invalid_request", "{cursor}");
    }
    assert_eq!(site.refused(json!({"action": "list", "all_workspaces": 1})), "invalid_request");
}

#[test]
fn nothing_is_removed_or_planned_for_who_does_not_say_what_is_protected() {
    let site = site();
    site.put_ready(&id(1), 1);
    for mut request in
        [json!({"action": "prepare_clear_all"}), json!({"action": "clear", "session_ids": [id(1)]})]
    {
        assert_eq!(site.refused(request.clone()), "invalid_request");
        request["protected_session_ids"] = Value::Null;
        assert_eq!(site.refused(request.clone()), "invalid_request");
        request["protected_session_ids"] = json!([id(1), "BAD"]);
        assert_eq!(site.refused(request.clone()), "invalid_id");
        request["protected_session_ids"] = json!([id(1)]);
        site.data(request);
        assert_eq!(site.listed(), [id(1).as_str()]);
    }
    assert_eq!(site.planned(), [id(1).as_str()]);
    assert_eq!(site.clear(1), "ok");
}

#[test]
fn a_request_names_at_most_128_ids_of_each_kind() {
    let site = site();
    site.put_ready(&id(1), 1);
    let ids = |count| (1..=count).map(id).collect::<Vec<_>>();
    let clear = |ids: Vec<_>, protected: Vec<_>| json!({"action": "clear", "session_ids": ids, "protected_session_ids": protected});
    assert_eq!(site.refused(clear(ids(129), vec![])), "invalid_request");
    assert_eq!(site.refused(clear(ids(1), ids(129))), "invalid_request");
    assert_eq!(site.listed(), [id(1).as_str()]);
    let data = site.data(clear(ids(128), ids(128)));
    assert_eq!(data["skipped"].as_array().unwrap().len(), 128);
    let data = site.data(clear(ids(128), vec![]));
    assert_eq!((&data["deleted"], data["skipped"].as_array().unwrap().len()), (&json!([id(1)]), 127));
}

#[test]
fn an_id_is_a_canonical_uuid_and_nothing_else() {
    let site = site();
    let upper = "2D711642-B726-4B04-8D2A-8A0470F4ED24";
    let lower = upper.to_lowercase();
    let plain = lower.replace('-', "");
    let braces = format!("{{{lower}}}");
    let urn = format!("urn:uuid:{lower}");
    let (padded, longer, nul) = (format!(" {lower}"), format!("{lower}0"), format!("{lower}\0"));
    for bad in ["", " ", "../x", "/etc/passwd", upper, &plain, &braces, &urn, &padded, &longer, &nul] {
        for action in ["inspect", "validate"] {
            assert_eq!(site.refused(json!({"action": action, "session_id": bad})), "invalid_id", "{bad:?}");
        }
    }
    for good in ["00000000-0000-0000-0000-000000000000", lower.as_str()] {
        assert_eq!(site.refused(json!({"action": "inspect", "session_id": good})), "not_found");
    }
}

#[test]
fn a_workspace_that_cannot_be_used_is_reported_before_an_id_that_cannot() {
    let site = site();
    let refused = |workspace: &str, id: &str| {
        let request = json!({"action": "inspect", "workspace_scope": workspace, "session_id": id});
        site.send(request.to_string()).code()
    };
    assert_eq!(refused("/nonexistent/x", "BAD"), "io");
    assert_eq!(refused("", "BAD"), "io");
    assert_eq!(refused("/a\0b", "BAD"), "io");
    assert_eq!(refused(site.workspace().to_str().unwrap(), "BAD"), "invalid_id");
}

#[test]
fn an_error_says_what_and_what_to_do_and_never_what_a_terminal_would_obey() {
    let site = site();
    let error = site.ask(json!({"action": "inspect", "session_id": "\u{1b}[31mred"})).line["error"].clone();
    assert_eq!(error["code"], "invalid_id");
    assert_eq!(error["message"], "invalid session ID: [31mred");
    assert_eq!(error["recoverable"], true);
    assert!(error["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
    let error = site.ask(json!({"action": "inspect", "session_id": id(1)})).line["error"].clone();
    assert_eq!(error["message"], format!("session not found: {}", id(1)));
    assert_eq!(error["hint"], "Refresh the session list and choose an existing entry.");
}

#[test]
fn ids_of_any_length_are_answered_in_bounds() {
    let site = site();
    let ids: Vec<_> = (0..128).map(|n| format!("{n}{}", "🦀".repeat(1500))).collect();
    let request = json!({"action": "clear", "session_ids": ids, "protected_session_ids": []});
    let answer = site.ask(request);
    let skipped = answer.data()["skipped"].as_array().unwrap().clone();
    assert_eq!(skipped.len(), 128);
    for entry in &skipped {
        assert_eq!(entry["error"]["code"], "invalid_id");
        assert!(entry["session_id"].as_str().unwrap().len() <= 128);
        assert!(entry["error"]["message"].as_str().unwrap().len() <= 2048);
    }
    assert!(answer.length <= 1 << 20, "{}", answer.length);
}

#[test]
fn a_workspace_is_its_canonical_path() {
    let site = site();
    site.put_ready(&id(1), 1);
    symlink("ws", site.path("link"));
    let request = json!({"action": "list", "workspace_scope": site.path("link")});
    let data = site.send(request.to_string()).data();
    assert_eq!(data["sessions"][0]["workspace_scope"], json!(site.workspace()));
    // A relative path is one from where the program was started.
    let request = json!({"action": "list", "workspace_scope": "../ws"});
    assert_eq!(site.send(request.to_string()).data(), data);
}

#[test]
fn a_workspace_whose_canonical_path_is_no_text_is_refused_before_anything_is_made() {
    let site = site();
    let odd = site.path(OsStr::from_bytes(b"\xfe"));
    mkdir(&odd);
    symlink(&odd, site.path("link"));
    let request = json!({"action": "list", "workspace_scope": site.path("link")});
    invalid(&site, request.to_string());
    assert!(names(site.home()).is_empty());
}

#[test]
fn a_list_without_a_store_is_empty_and_makes_none() {
    let site = site();
    assert_eq!(site.list(json!({})), (vec![], Value::Null));
    assert_eq!(site.list(json!({"all_workspaces": true})), (vec![], Value::Null));
    assert!(names(site.home()).is_empty());
}

#[test]
fn the_projects_settings_are_those_of_the_workspace_and_not_of_where_the_program_was_started() {
    let site = site();
    for dir in [site.workspace(), site.path("elsewhere")] {
        write(dir.join(".copilot-shell/config.toml"), "[session]\npersist_dir = \"p\"\n");
        put(&dir.join("p"), &id(1), ARRAY, 1);
    }
    write(site.path("elsewhere/.copilot-shell/config.toml"), "[session]\npersist_dir = \"q\"\n");
    put(&site.path("elsewhere/p"), &id(2), ARRAY, 1);
    let scope = site.workspace().join("p").join(directory_name(&site.workspace()));
    put(&scope, &id(3), envelope(&id(3), &site.workspace()), 2);
    assert_eq!(site.listed(), [id(3).as_str(), id(1).as_str()]);
}

#[test]
fn settings_that_cannot_be_read_are_left_out_with_a_warning() {
    let site = site();
    site.put_ready(&id(1), 1);
    site.configure("[session]\npersist_dir = 5\n");
    let answer = site.ask(json!({"action": "list"}));
    assert_eq!(answer.data()["sessions"].as_array().unwrap().len(), 1);
    assert!(answer.stderr.contains(".copilot-shell/config.toml"), "{}", answer.stderr);
    // Old settings in another format are not converted by who only reads.
    site.configure("");
    write(site.home().join(".copilot-shell/settings.json"), "{}");
    let before = names(site.home().join(".copilot-shell"));
    assert_eq!(site.ask(json!({"action": "list"})).stderr, "");
    assert_eq!(names(site.home().join(".copilot-shell")), before);
}

#[test]
fn nothing_is_written_with_auto_persist_off_but_everything_is_read() {
    let site = site();
    site.put_ready(&id(1), 1);
    site.configure("[session]\nauto_persist = false\n");
    assert_eq!((site.listed(), site.validate(1)), (vec![id(1).to_string()], "ok".to_owned()));
    assert_eq!(site.clear(1), "ok");
}
