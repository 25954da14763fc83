//! Pages of summaries and of plans: order, cursors, previews, other workspaces.

use std::process::Command;

use cofferdam_protocol::session::{Health, Summary};
use cofferdam_tests::files::{chmod, mkdir, remove, write};
use cofferdam_tests::session::{SessionSite, envelope, id, put};
use serde_json::{Value, json};

use super::{site, site_of_ordinary_user};

fn ids(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers.into_iter().map(|n| id(n).to_string()).collect()
}

fn ids_of(rows: Vec<Summary>) -> Vec<String> {
    rows.into_iter().map(|row| row.session_id).collect()
}

#[test]
fn equally_new_sessions_come_in_the_order_of_their_ids_over_all_pages() {
    let site = site();
    for n in [4, 1, 5, 3, 2] {
        site.put_ready(&id(n), 10);
    }
    let mut cursor = Value::Null;
    for expected in [vec![1, 2], vec![3, 4], vec![5]] {
        let (rows, next) = site.list(json!({"limit": 2, "cursor": cursor}));
        assert_eq!(ids_of(rows), ids(expected));
        cursor = next;
    }
    assert_eq!(cursor, Value::Null);
    // A page that ends with the last entry is the last page.
    assert_eq!(site.list(json!({"limit": 5})).1, Value::Null);
    assert_eq!(site.list(json!({"limit": 4})).1, format!("v1:{:016x}:{}", 10_000, id(4)));
}

#[test]
fn an_entry_that_is_gone_does_not_send_paging_back() {
    let site = site();
    site.put_ready(&id(1), 20);
    site.put_ready(&id(2), 10);
    let (_, cursor) = site.list(json!({"limit": 1}));
    assert_eq!(site.clear(1), "ok");
    let (rows, next) = site.list(json!({"limit": 1, "cursor": cursor}));
    assert_eq!((ids_of(rows), next), (ids([2]), Value::Null));
}

#[test]
fn what_no_page_gave_is_no_cursor() {
    let site = site();
    let upper = "0000000A-0000-4000-8000-000000000001";
    let one = id(1);
    for cursor in [
        "nope".to_owned(),
        String::new(),
        format!("v2:00:{one}"),
        format!("v1:xyz:{one}"),
        format!("v1:ff:{upper}"),
        "v1:ff".to_owned(),
        format!("v1:ff:{one}:x"),
        format!("v1::{one}"),
        format!(" v1:ff:{one}"),
        format!("v1:+ff:{one}"),
    ] {
        let request = json!({"action": "list", "cursor": cursor});
        assert_eq!(site.refused(request), "invalid_cursor", "{cursor:?}");
    }
}

#[test]
fn what_is_no_readable_file_is_neither_listed_nor_planned() {
    let site = site_of_ordinary_user();
    for n in 1..=3 {
        site.put_ready(&id(n), i64::from(n));
    }
    mkdir(site.file(6));
    chmod(site.file(3), 0);
    site.hand_over();
    let (rows, next) = site.list(json!({"limit": 2}));
    assert_eq!((ids_of(rows), next), (ids([2, 1]), Value::Null));
    assert_eq!(site.planned(), ids([1, 2]));
    assert_eq!(site.refused(json!({"action": "inspect", "session_id": id(3)})), "io");
}

/// The preview of a conversation whose messages have these roles and texts.
fn preview(site: &SessionSite, messages: &[(&str, &str)]) -> Option<String> {
    let messages: Vec<_> =
        messages.iter().map(|(role, text)| json!({"role": role, "content": text})).collect();
    site.put(&id(1), json!(messages).to_string(), 1);
    let row = site.inspect(1);
    assert_eq!(site.list(json!({})).0, std::slice::from_ref(&row));
    row.first_prompt
}

#[test]
fn a_preview_is_one_line_of_at_most_160_characters() {
    let site = site();
    let user = |text: &str| preview(&site, &[("user", text)]);
    let x = |count| "x".repeat(count);
    assert_eq!(user(&x(160)), Some(x(160)));
    assert_eq!(user(&x(161)), Some(x(159) + "…"));
    assert_eq!(user(&(x(159) + " y")), Some(x(159) + "…"));
    assert_eq!(user("a\n\t  b "), Some("a b".to_owned()));
    assert_eq!(user("a\u{7}b \u{1b}[1mc\u{9b}d"), Some("ab [1mcd".to_owned()));
    assert_eq!(user("\u{202e}abc\u{200b}def"), Some("abcdef".to_owned()));
    assert_eq!(user(&"🦀".repeat(100_000)).unwrap().chars().count(), 160);
    assert!(site.ask(json!({"action": "list"})).length < 2000);
}

#[test]
fn a_preview_is_what_the_user_said_first() {
    let site = site();
    let table = [
        (&[("assistant", "a"), ("user", " \n"), ("USER", "b"), ("user", "c")][..], Some("c")),
        (&[("user", "\u{7}"), ("user", "next")], Some("next")),
        (&[("user", "\u{7}")], None),
        (&[("system", "s")], None),
        (&[], None),
    ];
    for (messages, expected) in table {
        assert_eq!(preview(&site, messages).as_deref(), expected, "{messages:?}");
    }
}

#[test]
fn a_preview_shows_no_secret_and_of_a_prompt_that_the_shell_wrapped_the_users_words() {
    let site = site();
    let secret = "use api_key=sk-abcdefghijklmnopqrstuvwxyz0123456789 now";
    assert_eq!(preview(&site, &[("user", secret)]).as_deref(), Some("use api_key=<redacted> now"));
    let wrapped = "Handle this natural-language shell prompt request for a Shell-first assistant.\n\
        some rules\nuser_input: check nginx\n\nruntime_frame:\nframe\n\ncosh-shell Agent contract:\nrules";
    assert_eq!(preview(&site, &[("user", wrapped)]).as_deref(), Some("check nginx"));
    let unfinished = wrapped.split("\n\ncosh-shell").next().unwrap();
    let shown = preview(&site, &[("user", unfinished)]).unwrap();
    assert!(shown.starts_with("Handle this natural-language"), "{shown}");
}

#[test]
fn untrusted_names_of_models_are_cut_everywhere() {
    let site = site();
    for (model, start) in [("x".repeat(300), "x".repeat(253)), ("🦀".repeat(300_000), "🦀".repeat(63))] {
        let text = envelope(&id(1), &site.workspace()).replace("\"m\"", &json!(model).to_string());
        site.put(&id(1), text, 1);
        let row = site.inspect(1);
        assert_eq!(row.model, Some(start + "…"));
        assert_eq!(site.list(json!({})).0, [row]);
        assert_eq!(site.validate(1), "ok");
    }
}

#[test]
fn sessions_of_all_workspaces_are_listed_when_asked_for() {
    let site = site();
    let other = site.other("other");
    site.put_ready(&id(1), 2);
    put(&site.scope_of(&other), &id(2), envelope(&id(2), &other), 1);
    assert_eq!(site.listed(), ids([1]));
    let (rows, next) = site.list(json!({"all_workspaces": true}));
    assert_eq!((rows.len(), next), (2, Value::Null));
    let foreign = &rows[1];
    assert_eq!(
        (foreign.health, foreign.workspace_scope.as_str()),
        (Health::ScopeMismatch, other.to_str().unwrap())
    );
    assert_eq!((foreign.model.as_deref(), foreign.message_count), (Some("m"), 2));
    assert_eq!((foreign.first_prompt.as_deref(), foreign.updated_at_ms), (Some("hello"), 2000));
}

#[test]
fn an_unreadable_workspace_does_not_hide_the_others() {
    let site = site_of_ordinary_user();
    let other = site.other("other");
    site.put_ready(&id(1), 2);
    put(&site.scope_of(&other), &id(2), envelope(&id(2), &other), 1);
    site.hand_over();
    chmod(site.scope_of(&other), 0);
    assert_eq!(ids_of(site.list(json!({"all_workspaces": true})).0), ids([1]));
}

#[test]
fn many_workspaces_cost_no_more_descriptors_than_few() {
    let site = site();
    for workspace in 0..5 {
        let workspace = site.other(&format!("w{workspace}"));
        for n in 0..60 {
            put(&site.scope_of(&workspace), &id(n), envelope(&id(n), &workspace), 10);
        }
    }
    let mut cursor = Value::Null;
    let mut seen = std::collections::HashSet::new();
    for (limit, expected) in [(10, 10), (100, 100), (100, 100), (100, 90)] {
        let mut few = Command::new("/bin/sh");
        few.args(["-c", "ulimit -n 64 && exec \"$0\" --session-control"]);
        few.arg(env!("CARGO_BIN_EXE_cosh-core")).env_clear().env("HOME", site.home());
        let request = json!({"action": "list", "workspace_scope": site.workspace(), "limit": limit,
            "cursor": cursor, "all_workspaces": true});
        let data = site.run(few, request.to_string().as_bytes()).data();
        let rows: Vec<Summary> = serde_json::from_value(data["sessions"].clone()).unwrap();
        assert_eq!(rows.len(), expected);
        seen.extend(rows.into_iter().map(|row| (row.session_id, row.workspace_scope)));
        cursor = data["next_cursor"].clone();
    }
    assert_eq!((seen.len(), cursor), (300, Value::Null));
}

#[test]
fn a_plan_comes_in_sorted_pages_and_whole_only_if_it_fits_one() {
    let site = site();
    mkdir(site.scope());
    for n in 0..8300 {
        write(site.file(n), "");
    }
    let plan = |request: Value| {
        let mut request = request;
        request["action"] = json!("prepare_clear_all");
        request["protected_session_ids"] = json!([id(5), id(9000)]);
        site.ask(request)
    };
    assert_eq!(plan(json!({})).code(), "invalid_request");
    let (mut cursor, mut seen) = (Value::Null, Vec::new());
    for expected in [4096, 4096, 108] {
        let answer = plan(json!({"limit": 999_999, "cursor": cursor}));
        assert!(answer.length < 1 << 20, "{}", answer.length);
        let data = answer.data();
        let clearable: Vec<String> = serde_json::from_value(data["session_ids"].clone()).unwrap();
        let protected: Vec<String> = serde_json::from_value(data["protected_session_ids"].clone()).unwrap();
        assert_eq!(clearable.len() + protected.len(), expected);
        assert_eq!(protected, if seen.is_empty() { ids([5]) } else { vec![] });
        seen.extend(clearable);
        cursor = data["next_cursor"].clone();
    }
    assert_eq!(cursor, Value::Null);
    assert_eq!(seen, ids((0..8300).filter(|n| *n != 5)));
    // What a cursor names need not be there any more.
    remove(site.file(100));
    let data = plan(json!({"limit": 1, "cursor": id(100)})).data();
    assert_eq!(data["session_ids"], json!([id(101)]));
    let of_a_list = format!("v1:{:016x}:{}", 1000, id(1));
    assert_eq!(plan(json!({"cursor": of_a_list})).code(), "invalid_cursor");
}
