//! What a task has made: looked at, and removed.

use std::path::Path;

use cofferdam_tests::files;
use cofferdam_tests::pod::{PodSite, Sidecar, reserve, told, turn, with};
use serde_json::{Value, json};

use super::site;

/// A sidecar with the completed task `a`, and that task's directory.
fn with_task(site: &PodSite) -> (Sidecar, std::path::PathBuf) {
    let mut pod = site.start_rooted();
    pod.finish("a");
    (pod, site.root().join("a"))
}

fn list(pod: &mut Sidecar) -> Value {
    pod.ok("files.list", json!({"taskId": "a"}))
}

/// The paths in a listing.
fn paths(listing: &Value) -> Vec<String> {
    let entries = listing["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["relPath"].as_str().unwrap().to_owned()).collect()
}

fn at(rel_path: &str) -> Value {
    json!({"taskId": "a", "relPath": rel_path})
}

/// Reads what must be a text.
fn read(pod: &mut Sidecar, rel_path: &str) -> Value {
    pod.ok("files.read", at(rel_path))
}

#[test]
fn a_listing_shows_what_is_there() {
    let site = site();
    let (mut pod, dir) = with_task(&site);
    files::mkdir(dir.join("sub"));
    files::write(dir.join("sub/x.txt"), "abc");
    files::set_mtime(dir.join("sub/x.txt"), 1_700_000_000, 123_456_789);
    let listing = list(&mut pod);
    assert_eq!((&listing["root"], &listing["truncated"]), (&json!(dir), &json!(false)));
    assert_eq!(paths(&listing), ["sub", "sub/x.txt"]);
    let entry = json!({"relPath": "sub/x.txt", "type": "file", "size": 3, "mtime": 1_700_000_000_123_i64});
    assert_eq!(listing["entries"][1], entry);
    assert_eq!(listing["entries"][0]["type"], "directory");
    let stat = pod.ok("files.stat", at("sub/x.txt"));
    assert_eq!(stat, with(&entry, json!({"binary": false})));
    pod.shutdown();
}

#[test]
fn a_listing_ends_at_depth_8_and_at_2000_entries_and_says_so() {
    let site = site();
    let (mut pod, dir) = with_task(&site);
    let deep = ["d"; 9].join("/");
    std::fs::create_dir_all(dir.join(deep)).unwrap();
    let listing = list(&mut pod);
    assert_eq!(
        (paths(&listing).last().unwrap().as_str(), &listing["truncated"]),
        ("d/d/d/d/d/d/d/d", &json!(true))
    );
    files::remove(dir.join("d"));
    for n in 0..2000 {
        files::write(dir.join(format!("f{n}")), "");
    }
    let listing = list(&mut pod);
    assert_eq!((paths(&listing).len(), &listing["truncated"]), (2000, &json!(false)));
    files::write(dir.join("more"), "");
    let listing = list(&mut pod);
    assert_eq!((paths(&listing).len(), &listing["truncated"]), (2000, &json!(true)));
}

#[test]
fn a_path_leads_nowhere_but_into_the_tasks_directory() {
    let site = site();
    let (mut pod, dir) = with_task(&site);
    files::write(dir.join("a..b.txt"), "dots");
    files::write(site.outside().join("secret"), "a secret of many bytes");
    files::symlink(site.outside().join("secret"), dir.join("link.txt"));
    files::symlink(site.outside(), dir.join("links"));
    for outside in ["../b", "/etc/passwd", "x/../../b", "a\0", "link.txt", "links/secret"] {
        pod.refused("PATH_OUTSIDE", "files.read", at(outside));
    }
    for bad in ["", &"x".repeat(4097)] {
        pod.refused("BAD_REQUEST", "files.read", at(bad));
        pod.refused("BAD_REQUEST", "files.stat", at(bad));
    }
    pod.refused("FILE_NOT_FOUND", "files.read", at("missing"));
    pod.refused("FILE_NOT_FOUND", "files.stat", at("missing"));
    pod.refused("BAD_REQUEST", "files.read", at("."));
    assert_eq!(read(&mut pod, "a..b.txt")["text"], "dots");
    let listing = list(&mut pod);
    assert_eq!(paths(&listing), ["a..b.txt", "link.txt", "links"]);
    for link in &listing["entries"].as_array().unwrap()[1..] {
        assert_eq!((&link["type"], &link["size"]), (&json!("symlink"), &json!(0)));
    }
    let stat = pod.ok("files.stat", at("link.txt"));
    assert_eq!((&stat["type"], &stat["size"]), (&json!("symlink"), &json!(0)));
}

#[test]
fn what_is_no_file_is_named_and_never_opened() {
    let site = site();
    let (mut pod, dir) = with_task(&site);
    files::fifo(dir.join("pipe"));
    files::mkdir(dir.join("sub"));
    assert_eq!(pod.refused("BAD_REQUEST", "files.read", at("pipe"))["data"], json!({"type": "other"}));
    assert_eq!(pod.refused("BAD_REQUEST", "files.read", at("sub"))["data"], json!({"type": "directory"}));
    assert_eq!(pod.ok("files.stat", at("pipe"))["type"], "other");
}

#[test]
fn a_preview_has_so_many_bytes_and_no_more() {
    let site = site();
    let (mut pod, dir) = with_task(&site);
    files::write(dir.join("fits"), "x".repeat(307_200));
    files::write(dir.join("large"), "x".repeat(307_201));
    let params = with(&at("fits"), json!({"maxChars": 1_000_000}));
    let read = pod.ok("files.read", params);
    assert_eq!(
        (&read["bytes"], &read["chars"], &read["truncated"]),
        (&json!(307_200), &json!(307_200), &json!(false))
    );
    let error = pod.refused("FILE_TOO_LARGE", "files.read", at("large"));
    assert_eq!(error["data"], json!({"size": 307_201, "limit": 307_200}));
    pod.configure(json!({"previewBytes": 1 << 20, "previewChars": 300}));
    assert_eq!(pod.ok("files.read", at("large"))["chars"], 300);
}

#[test]
fn texts_are_utf_8_or_utf_16_with_a_mark_and_all_else_is_binary() {
    let site = site();
    let (mut pod, dir) = with_task(&site);
    let texts: [(&[u8], &str, &str); 5] = [
        (b"\xff\xfeh\0i\0", "hi", "utf-16le"),
        (b"\xfe\xff\0h\0i", "hi", "utf-16be"),
        (b"\xef\xbb\xbfhi", "hi", "utf-8"),
        (b"a\r\n\x07", "a\r\n\u{7}", "utf-8"),
        (b"", "", "utf-8"),
    ];
    for (bytes, text, encoding) in texts {
        files::write(dir.join("f"), bytes);
        let read = read(&mut pod, "f");
        assert_eq!((&read["text"], &read["encoding"]), (&json!(text), &json!(encoding)), "{bytes:?}");
        assert_eq!(read["binary"], false);
    }
    for bytes in [&b"a\0b"[..], b"\xc3\x28", b"\xff\xfea", b"\xff\xfe\0\0h\0\0\0"] {
        files::write(dir.join("f"), bytes);
        let error = pod.refused("BINARY_FILE", "files.read", at("f"));
        assert_eq!(error["data"], json!({"binary": true, "size": bytes.len()}), "{bytes:?}");
        assert_eq!(pod.ok("files.stat", at("f"))["binary"], true, "{bytes:?}");
    }
}

#[test]
fn a_text_is_cut_between_characters() {
    let site = site();
    let (mut pod, dir) = with_task(&site);
    for (content, max, text) in [("日本語テキスト", 3, "日本語"), ("a😀b", 2, "a😀"), ("ab", -5, "a")]
    {
        files::write(dir.join("f"), content);
        let read = pod.ok("files.read", with(&at("f"), json!({"maxChars": max})));
        assert_eq!((&read["text"], &read["truncated"]), (&json!(text), &json!(true)));
        assert_eq!(read["bytes"], content.len());
    }
    pod.refused("BAD_REQUEST", "files.read", with(&at("f"), json!({"maxChars": "3"})));
}

#[test]
fn an_answer_that_would_be_too_long_is_a_shorter_text() {
    let site = site();
    let (mut pod, dir) = with_task(&site);
    pod.configure(json!({"previewBytes": 1 << 20}));
    files::write(dir.join("f"), vec![1; 1 << 20]);
    let read = pod.ok("files.read", with(&at("f"), json!({"maxChars": 1_000_000})));
    let chars = read["chars"].as_u64().unwrap();
    assert!(read["truncated"] == true && (600_000..700_000).contains(&chars), "{chars}");
}

#[test]
fn methods_on_files_name_a_task_that_there_is() {
    let site = site();
    let mut pod = site.start_rooted();
    for method in ["files.list", "files.stat", "files.read", "task.cleanupFiles", "export.create"] {
        let params = json!({"taskId": "z", "relPath": "f", "entries": ["f"], "targetDir": "/t"});
        pod.refused("TASK_NOT_FOUND", method, params);
    }
}

#[test]
fn what_was_asked_before_the_end_of_input_is_answered() {
    let site = site();
    let (mut pod, dir) = with_task(&site);
    files::write(dir.join("f"), "text");
    let ids = [pod.send("files.read", at("f")), pod.send("files.list", json!({"taskId": "a"}))];
    pod.end();
    for id in ids {
        assert!(pod.answer(&id).get("result").is_some());
    }
    assert_eq!(pod.wait().0, 0);
}

#[test]
fn a_tasks_files_are_removed_once_it_has_ended() {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 1}));
    pod.run("a");
    pod.reserve("q");
    let dir = site.root().join("a");
    files::mkdir(dir.join("sub"));
    files::write(dir.join("sub/f"), "f");
    files::symlink(site.outside(), dir.join("link"));
    files::write(site.outside().join("kept"), "k");
    for active in ["a", "q"] {
        pod.refused("TASK_RUNNING", "task.cleanupFiles", json!({"taskId": active}));
    }
    pod.complete("a");
    for removed in [true, false] {
        let answer = pod.ok("task.cleanupFiles", json!({"taskId": "a"}));
        assert_eq!(answer, json!({"ok": true, "removed": removed}));
    }
    let listing = list(&mut pod);
    assert_eq!((paths(&listing), &listing["missing"]), (vec![], &json!(true)));
    assert_eq!(files::names(site.outside()), ["kept"]);
    assert_eq!(site.in_root(), ["q"]);
    assert_eq!(pod.status("a"), "completed", "the record stays");
}

#[test]
fn an_emptied_subdirectory_goes_along_and_a_shared_one_stays() {
    let site = site();
    let mut pod = site.start_rooted();
    for task in ["a", "b"] {
        pod.ok("task.reserve", with(&reserve(task), json!({"subdir": "x/y"})));
        pod.ok("task.turnStarted", turn(task, 1));
        pod.complete(task);
    }
    pod.ok("task.cleanupFiles", json!({"taskId": "a"}));
    assert_eq!(files::names(site.root().join("x/y")), ["b"]);
    pod.ok("task.cleanupFiles", json!({"taskId": "b"}));
    assert_eq!(site.in_root(), [""; 0]);
    assert!(site.root().is_dir());
}

#[test]
fn neither_the_root_nor_what_others_use_is_removed() {
    let site = site();
    let task = |id: &str, subdir: &str, dir: &Path| json!({"id": id, "status": "completed", "createdAt": 1, "endedAt": 2, "subdir": subdir, "taskDir": dir});
    let (root, shared) = (site.root(), site.root().join("s"));
    let tasks = [task("root", "", &root), task("a", "s", &shared), task("b", "s", &shared)];
    let legacy = json!({"version": 1, "config": {"sandboxRoot": root}, "tasks": tasks, "exports": []});
    files::write(site.legacy(), legacy.to_string());
    files::mkdir(&shared);
    files::write(shared.join("f"), "f");
    let mut pod = site.start();
    pod.ok("task.reserve", with(&reserve("new"), json!({"subdir": "s"})));
    let busy = |tasks: &[&str]| json!({"sharedWith": tasks});
    pod.refused("ROOT_PROTECTED", "task.cleanupFiles", json!({"taskId": "root"}));
    let error = pod.refused("TASK_BUSY", "task.cleanupFiles", json!({"taskId": "a"}));
    assert_eq!(error["data"], busy(&["b", "new"]));
    let result = pod.ok("task.bulkCleanup", json!({"deleteFiles": true}));
    let codes: Vec<_> = result["results"].as_array().unwrap().iter().map(|row| row["code"].clone()).collect();
    assert_eq!(
        (&result["deleted"], codes),
        (&json!(0), vec![json!("ROOT_PROTECTED"), json!("TASK_BUSY"), json!("TASK_BUSY")])
    );
    assert_eq!(files::names(&shared), ["f", "new"]);
    // Without the new task, those who share it go together.
    pod.ok("task.turnStarted", turn("new", 1));
    pod.complete("new");
    pod.ok("task.cleanupFiles", json!({"taskId": "new"}));
    pod.ok("task.delete", json!({"taskId": "new"}));
    let result = pod.ok("task.bulkCleanup", json!({"deleteFiles": true}));
    assert_eq!((&result["deleted"], site.in_root()), (&json!(2), vec![]));
    assert!(site.root().is_dir());
}

#[test]
fn what_others_use_by_another_name_of_the_root_is_not_removed_either() {
    let site = site();
    let (root, link) = (site.root(), site.path("link"));
    files::symlink(&root, &link);
    let old = json!({"id": "old", "status": "completed", "createdAt": 1, "endedAt": 2, "subdir": "s", "taskDir": root.join("s")});
    let legacy = json!({"version": 1, "config": {"sandboxRoot": root}, "tasks": [old], "exports": []});
    files::write(site.legacy(), legacy.to_string());
    files::write(root.join("s/f"), "f");
    let mut pod = site.start();
    pod.configure(json!({"sandboxRoot": link}));
    pod.ok("task.reserve", with(&reserve("new"), json!({"subdir": "s"})));
    let error = pod.refused("TASK_BUSY", "task.cleanupFiles", json!({"taskId": "old"}));
    assert_eq!(error["data"], json!({"sharedWith": ["new"]}));
    let result = pod.ok("task.bulkCleanup", json!({"deleteFiles": true}));
    assert_eq!((&result["deleted"], &result["results"][0]["code"]), (&json!(0), &json!("TASK_BUSY")));
    assert_eq!(files::names(root.join("s")), ["f", "new"]);
    pod.kill();
}

#[test]
fn many_are_cleaned_up_with_their_files_and_what_cannot_be_stays_with_its_record() {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 1}));
    pod.finish("a");
    pod.finish("b");
    pod.run("c");
    pod.reserve("d");
    pod.heard();
    let params = json!({"statuses": ["completed", "running", "queued"], "deleteFiles": true});
    let result = pod.ok("task.bulkCleanup", params);
    assert_eq!(result["deleted"], 3);
    let rows: Vec<_> = result["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["taskId"].clone(), row["code"].clone()))
        .collect();
    let row = |task: &str, code: &str| (json!(task), json!(code));
    assert_eq!(rows, [row("a", ""), row("b", ""), row("c", "TASK_RUNNING"), row("d", "")]);
    assert_eq!(site.in_root(), ["c"]);
    assert_eq!(told(&pod.heard()), ["changed d cancelled"]);
    assert_eq!(pod.tasks().len(), 1);
}
