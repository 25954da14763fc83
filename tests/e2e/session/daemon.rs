//! Sessions in a running daemon: the control API over its socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use cofferdam_tests::session::{directory_name, envelope, id, put};
use cofferdam_tests::site::Site;
use serde_json::{Value, json};

use crate::site;

/// What the daemon of a site answers to a request: the status and the document.
fn ask(site: &Site, route: &str, body: &Value) -> (u16, Value) {
    let mut socket = UnixStream::connect(site.state().join("run/control.sock")).unwrap();
    let body = body.to_string();
    let head = "Host: localhost\r\nConnection: close\r\nContent-Type: application/json";
    write!(
        socket,
        "POST /api/v1/session/{route} HTTP/1.1\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (head, document) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(document).unwrap())
}

/// Where the daemon of a site keeps the sessions of a workspace.
fn scope(site: &Site, workspace: &Path) -> std::path::PathBuf {
    site.path("home/.copilot-shell/cosh-core/sessions").join(directory_name(workspace))
}

#[test]
fn a_daemon_lists_plans_and_clears_the_sessions_in_its_users_home() {
    let site = site();
    let _daemon = site.start();
    let workspace = site.directory("project");
    let scope = scope(&site, &workspace);
    let ask = |route: &str, mut body: Value| {
        body["workspace_scope"] = json!(workspace);
        ask(&site, route, &body)
    };
    assert_eq!(ask("list", json!({})), (200, json!({"action": "list", "sessions": [], "next_cursor": null})));
    std::fs::create_dir_all(&scope).unwrap();
    for n in 1..=3 {
        put(&scope, &id(n), envelope(&id(n), &workspace), i64::from(n));
    }
    let (status, listed) = ask("list", json!({"limit": 2}));
    assert_eq!((status, &listed["sessions"][0]["session_id"]), (200, &json!(id(3))));
    let (_, plan) = ask("prepare-clear-all", json!({"protected_session_ids": [id(1)]}));
    assert_eq!(plan["session_ids"], json!([id(2), id(3)]));
    let everything = json!({"session_ids": [id(1), id(2), id(3)], "protected_session_ids": [id(1)]});
    let (status, cleared) = ask("clear", everything);
    assert_eq!((status, &cleared["deleted"]), (200, &json!([id(2), id(3)])));
    assert_eq!(cleared["skipped"][0]["error"]["code"], "active_session");
    let (status, kept) = ask("validate", json!({"session_id": id(1)}));
    assert_eq!((status, &kept["session"]["health"]), (200, &json!("ready")));
    let (status, gone) = ask("inspect", json!({"session_id": id(2)}));
    assert_eq!((status, &gone["code"]), (404, &json!("not_found")));
}

#[test]
fn whatever_is_asked_of_a_daemon_about_sessions_it_goes_on() {
    let site = site();
    let _daemon = site.start();
    let workspace = site.path("missing");
    let (status, report) = ask(&site, "list", &json!({"workspace_scope": workspace}));
    assert_eq!((status, &report["code"]), (500, &json!("io")));
    let (status, report) = ask(&site, "list", &json!({"workspace_scope": "project"}));
    assert_eq!((status, &report["code"]), (400, &json!("invalid_request")));
    let (status, report) = ask(&site, "clear", &json!({"workspace_scope": workspace, "session_ids": []}));
    assert_eq!((status, &report["code"]), (400, &json!("BadRequest")));
    let ready = json!({"workspace_scope": site.directory("project")});
    assert_eq!(ask(&site, "list", &ready).0, 200);
}
