//! `task.reserve`: what it checks, in which order, and that a refusal leaves nothing.

use cofferdam_tests::files;
use cofferdam_tests::pod::{PodSite, Sidecar, reserve, with};
use serde_json::{Value, json};

use super::{only_these_keys, site, site_of_ordinary_user};

/// The keys of a task, as the contract lists them.
const TASK: &str = "id sessionId mainSessionId label description status subdir taskDir sandboxRoot createdAt \
    queuedAt startedAt endedAt turns timeoutMs allow availableTools presetId model sandboxMode sandboxProbe fsDenied \
    lastText error legacy turnDeadline queuedPosition";

/// Reserves `a` with other params.
#[track_caller]
fn reserve_with(pod: &mut Sidecar, params: Value) -> Value {
    pod.ok("task.reserve", with(&reserve("a"), params))["task"].clone()
}

/// Fails unless the request is refused with that code and leaves neither a directory nor a row.
#[track_caller]
fn leaves_nothing(site: &PodSite, pod: &mut Sidecar, code: &str, params: Value) -> Value {
    let (in_root, rows) = (site.in_root(), pod.tasks());
    let error = pod.refused(code, "task.reserve", with(&reserve("refused"), params.clone()));
    assert_eq!(site.in_root(), in_root, "{params}");
    assert_eq!(pod.tasks(), rows, "{params}");
    error["data"].clone()
}

#[test]
fn without_a_sandbox_root_nothing_can_be_reserved() {
    let site = site();
    let mut pod = site.start();
    leaves_nothing(&site, &mut pod, "NO_SANDBOX_ROOT", json!({}));
}

#[test]
fn a_task_with_a_free_slot_starts_in_a_directory_of_its_own() {
    let site = site_of_ordinary_user();
    let mut pod = site.start_rooted();
    let result = pod.reserve("a");
    only_these_keys(&result, "task startNow queuedPosition policy");
    let task = &result["task"];
    only_these_keys(task, TASK);
    let directory = site.root().join("a");
    assert!(directory.is_dir());
    let expected = json!({
        "id": "a", "sessionId": "s-a", "mainSessionId": "m", "label": "l", "description": "d",
        "status": "starting", "subdir": "", "taskDir": directory, "sandboxRoot": site.root(),
        "createdAt": task["createdAt"], "queuedAt": 0, "startedAt": task["startedAt"], "endedAt": 0, "turns": 0,
        "timeoutMs": 600_000, "allow": ["read"], "availableTools": [], "presetId": "",
        "model": {"provider": "", "model": "", "reasoningEffort": null},
        "sandboxMode": "", "sandboxProbe": "", "fsDenied": false, "lastText": "", "error": "", "legacy": false,
        "turnDeadline": 0, "queuedPosition": 0,
    });
    assert_eq!(task, &expected);
    assert!(task["createdAt"].as_i64().unwrap() > 1_600_000_000_000);
    let policy = json!({
        "root": site.root(), "rootDisplay": site.root(), "taskDir": directory,
        "caseInsensitive": false, "separator": "/", "longPathPrefix": "",
    });
    assert_eq!(result["startNow"], true);
    assert_eq!(result["queuedPosition"], 0);
    assert_eq!(result["policy"], policy);
    assert_eq!(&pod.task("a"), task);
}

#[test]
fn a_subdirectory_is_made_between_root_and_task() {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 8}));
    let deep = ["s"; 8].join("/");
    let long = "字".repeat(64);
    for (task, subdir, shown) in [
        ("a", "x/y", "x/y"),
        ("b", "x\\y", "x/y"),
        ("c", &deep, &deep),
        ("d", &long, &long),
        ("e", ".hidden", ".hidden"),
    ] {
        let result = pod.ok("task.reserve", with(&reserve(task), json!({"subdir": subdir})));
        let directory = site.root().join(shown).join(task);
        assert_eq!(result["task"]["taskDir"], json!(directory), "{subdir}");
        assert_eq!(result["policy"]["taskDir"], json!(directory), "{subdir}");
        assert!(directory.is_dir(), "{subdir}");
    }
}

#[test]
fn a_bad_subdirectory_makes_nothing() {
    let site = site();
    let mut pod = site.start_rooted();
    let nine = ["s"; 9].join("/");
    for subdir in [
        "..",
        ".",
        "a/../b",
        "a/./b",
        "/a",
        "a/",
        "a//b",
        "\\a",
        "a\\\\b",
        "con",
        "Aux.txt",
        "LPT9",
        "com1.tar.gz",
        "COM¹",
        "conin$",
        "x/NUL",
        "a ",
        "a.",
        "a:b",
        "a*",
        "a?",
        "a<",
        "a>",
        "a|",
        "a\"b",
        "a\u{1}",
        "a\u{0}b",
        "a\nb",
        &nine,
        &"x".repeat(65),
        &"😀".repeat(64),
        "x/../..",
        "~/..",
    ] {
        leaves_nothing(&site, &mut pod, "BAD_SUBDIR", json!({"subdir": subdir}));
    }
}

#[test]
fn an_id_that_cannot_be_a_file_name_everywhere_is_a_bad_request() {
    let site = site();
    let mut pod = site.start_rooted();
    for id in [
        json!("../a"),
        json!("a/b"),
        json!("a\\b"),
        json!(""),
        json!("."),
        json!(".."),
        json!("a\u{0}b"),
        json!("a\nb"),
        json!("con"),
        json!("NUL.txt"),
        json!("a."),
        json!("a "),
        json!("x".repeat(161)),
        json!("字".repeat(86)),
        json!(5),
        json!(null),
    ] {
        leaves_nothing(&site, &mut pod, "BAD_REQUEST", json!({"taskId": id}));
    }
    for id in ["x".repeat(160), "字".repeat(85)] {
        pod.reserve(&id);
        assert!(site.root().join(&id).is_dir());
    }
}

#[test]
fn params_of_the_wrong_kind_are_a_bad_request() {
    let site = site();
    let mut pod = site.start_rooted();
    for params in [
        json!({"sessionId": null}),
        json!({"sessionId": ""}),
        json!({"leaseId": 5}),
        json!({"leaseId": ""}),
        json!({"description": "x".repeat((64 << 10) + 1)}),
        json!({"description": {}}),
        json!({"subdir": 5}),
        json!({"label": []}),
    ] {
        leaves_nothing(&site, &mut pod, "BAD_REQUEST", params);
    }
    for missing in ["taskId", "sessionId", "leaseId"] {
        let mut params = reserve("a");
        params.as_object_mut().unwrap().remove(missing);
        pod.refused("BAD_REQUEST", "task.reserve", params);
    }
}

#[test]
fn an_id_or_a_session_that_is_taken_is_busy() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.reserve("a");
    pod.refused("TASK_BUSY", "task.reserve", reserve("a"));
    leaves_nothing(&site, &mut pod, "TASK_BUSY", json!({"sessionId": "s-a"}));
    // Also when it has ended: only `task.delete` frees an id.
    pod.ok("task.cancel", json!({"taskId": "a"}));
    pod.refused("TASK_BUSY", "task.reserve", reserve("a"));
}

#[test]
fn what_is_missing_comes_from_the_configuration() {
    let mut site = site();
    site.set("TZ", "UTC");
    let mut pod = site.start_with(json!({
        "timeoutMs": 45_000, "presetId": "code", "allowedTools": ["read", "write", "bash"], "allowWrites": false,
    }));
    let description = "  one   two\nthree\tfour five six seven eight nine ten eleven  ";
    let bare = json!({"taskId": "a", "sessionId": "s", "leaseId": "L", "description": description});
    let task = pod.ok("task.reserve", bare)["task"].clone();
    assert_eq!(task["timeoutMs"], 45_000);
    assert_eq!(task["presetId"], "code");
    assert_eq!(task["allow"], json!(["read", "bash"]), "no write where writes are off");
    assert_eq!(task["label"], "one two three four five six seven eight ");
    assert_eq!(task["description"], description);
    assert_eq!(task["mainSessionId"], "");
    assert_eq!(task["model"], json!({"provider": "", "model": "", "reasoningEffort": null}));
}

#[test]
fn what_is_too_much_is_cut_to_what_is_allowed() {
    for (params, expected) in [
        (json!({"timeoutMs": 1}), json!({"timeoutMs": 30_000})),
        (json!({"timeoutMs": 1_i64 << 40}), json!({"timeoutMs": 7_200_000})),
        (json!({"label": "l".repeat(200)}), json!({"label": "l".repeat(120)})),
        // Counted as hosts count, in UTF-16 units.
        (json!({"label": "😀".repeat(130)}), json!({"label": "😀".repeat(60)})),
        (json!({"allow": ["read", "rm", "read", "write"]}), json!({"allow": ["read", "write"]})),
        (json!({"description": ""}), json!({"description": ""})),
        (
            json!({"model": {"provider": "p", "model": "m", "reasoningEffort": "high"}}),
            json!({"model": {"provider": "p", "model": "m", "reasoningEffort": "high"}}),
        ),
    ] {
        let site = site();
        let mut pod = site.start_rooted();
        let task = reserve_with(&mut pod, params.clone());
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&task[key], value, "{params}");
        }
    }
}

#[test]
fn a_task_without_a_single_tool_left_is_invalid() {
    let site = site();
    let mut pod = site.start_with(json!({"allowWrites": false}));
    leaves_nothing(&site, &mut pod, "CONFIG_INVALID", json!({"allow": ["write"]}));
    leaves_nothing(&site, &mut pod, "CONFIG_INVALID", json!({"allow": ["write", "edit", "rm"]}));
}

#[test]
fn without_a_queue_a_full_house_is_busy() {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 1, "queueEnabled": false}));
    pod.reserve("a");
    leaves_nothing(&site, &mut pod, "TASK_BUSY", json!({}));
    // What is wrong with the request itself comes first.
    leaves_nothing(&site, &mut pod, "BAD_SUBDIR", json!({"subdir": ".."}));
    leaves_nothing(&site, &mut pod, "BAD_REQUEST", json!({"taskId": "a/b", "subdir": ".."}));
}

#[test]
fn a_link_that_leads_out_of_the_root_is_not_followed() {
    let site = site();
    let mut pod = site.start_rooted();
    files::symlink(site.outside(), site.root().join("link"));
    files::mkdir(site.root().join("real"));
    files::symlink(site.outside(), site.root().join("real/link"));
    for subdir in ["link", "link/deeper", "real/link"] {
        leaves_nothing(&site, &mut pod, "PATH_OUTSIDE", json!({"subdir": subdir}));
    }
    // Nor one in the place of the task's own directory.
    files::symlink(site.outside(), site.root().join("refused"));
    leaves_nothing(&site, &mut pod, "PATH_OUTSIDE", json!({}));
    files::symlink(site.path("outside/gone"), site.root().join("dangling"));
    leaves_nothing(&site, &mut pod, "PATH_OUTSIDE", json!({"subdir": "dangling"}));
    assert_eq!(files::names(site.outside()), Vec::<String>::new());
}

#[test]
fn a_root_that_is_a_link_to_a_directory_works() {
    let site = site();
    files::symlink(site.root(), site.path("named"));
    let mut pod = site.start();
    pod.configure(json!({"sandboxRoot": site.path("named")}));
    let task = pod.reserve("a")["task"].clone();
    assert_eq!(task["taskDir"], json!(site.path("named/a")));
    assert_eq!(site.in_root(), ["a"]);
}

#[test]
fn a_file_where_the_directory_should_be_is_kept_and_refused() {
    let site = site();
    let mut pod = site.start_rooted();
    files::write(site.root().join("refused"), "precious");
    files::write(site.root().join("sub"), "precious");
    let (code, _) = pod.err("task.reserve", with(&reserve("refused"), json!({})));
    assert!(["BAD_ROOT", "PATH_OUTSIDE"].contains(&code.as_str()), "{code}");
    let (code, _) = pod.err("task.reserve", with(&reserve("x"), json!({"subdir": "sub"})));
    assert!(["BAD_ROOT", "PATH_OUTSIDE"].contains(&code.as_str()), "{code}");
    assert_eq!(files::read(site.root().join("refused")), b"precious");
    assert_eq!(site.in_root(), ["refused", "sub"]);
}
