//! Exports, and what is undone of them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cofferdam_tests::mount::Mount;
use cofferdam_tests::pod::{PodSite, Sidecar, with};
use cofferdam_tests::tree::Tree;
use cofferdam_tests::{files, skip, user};
use serde_json::{Value, json};

use super::{site, site_of_ordinary_user};

const BACKUPS: &str = ".isolation-pod-undo";

/// A sidecar with the completed task `a`, which has made these files, and its directory.
pub(super) fn with_files(site: &PodSite, made: &[(&str, &str)]) -> (Sidecar, PathBuf) {
    let mut pod = site.start_rooted();
    pod.finish("a");
    let dir = site.root().join("a");
    make(&dir, made);
    (pod, dir)
}

pub(super) fn make(dir: &Path, made: &[(&str, &str)]) {
    for (path, content) in made {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        files::write(path, content);
    }
}

/// Params of an export of the task `a` to the directory outside.
pub(super) fn export(site: &PodSite, entries: &[&str], more: Value) -> Value {
    with(&json!({"taskId": "a", "entries": entries, "targetDir": site.outside()}), more)
}

/// Exports, which must succeed; returns the record.
#[track_caller]
pub(super) fn create(pod: &mut Sidecar, params: Value) -> Value {
    pod.ok("export.create", params)["export"].clone()
}

pub(super) fn exported(export: &Value) -> Value {
    json!({"exportId": export["id"]})
}

/// Undoes; returns the result.
#[track_caller]
pub(super) fn undo(pod: &mut Sidecar, export: &Value) -> Value {
    pod.ok("export.undo", exported(export))
}

/// The value of a key for each file of a record.
pub(super) fn each(export: &Value, key: &str) -> Vec<Value> {
    export["items"].as_array().unwrap().iter().map(|item| item[key].clone()).collect()
}

/// The records, newest first.
pub(super) fn records(pod: &mut Sidecar) -> Vec<Value> {
    pod.ok("export.list", json!({}))["exports"].as_array().unwrap().clone()
}

#[test]
fn a_directory_and_a_file_are_copied_with_their_hashes() {
    let site = site();
    let (mut pod, dir) = with_files(&site, &[("out/x.txt", "x"), ("out/s/y.txt", "y"), ("a/b.txt", "b")]);
    files::chmod(dir.join("a/b.txt"), 0o640);
    files::set_mtime(dir.join("a/b.txt"), 1_700_000_000, 5);
    let before = Tree::read(&dir);
    let export = create(
        &mut pod,
        export(&site, &["out", "a/b.txt"], json!({"mode": "copy", "conflict": "overwrite"})),
    );
    let keys = "id taskId label at targetDir mode conflict status undoneAt legacy items";
    super::only_these_keys(&export, keys);
    super::only_these_keys(&export["items"][0], "status src dst bytes hash existed backupPath message");
    assert!(export["id"].as_str().unwrap().starts_with("exp-"));
    assert_eq!(export["targetDir"], json!(site.outside()));
    assert_eq!(
        (&export["status"], &export["taskId"], &export["undoneAt"]),
        (&json!("completed"), &json!("a"), &json!(0))
    );
    let outside = site.outside();
    let expected = [("out/s/y.txt", "y"), ("out/x.txt", "x"), ("b.txt", "b")];
    let mut items: Vec<_> = export["items"].as_array().unwrap().iter().collect();
    items.sort_by_key(|item| item["dst"].as_str().unwrap().to_owned());
    let mut expected = expected.map(|(path, content)| (outside.join(path), content));
    expected.sort();
    assert_eq!(items.len(), expected.len());
    for (item, (path, content)) in items.into_iter().zip(expected) {
        assert_eq!(
            (&item["dst"], &item["status"], &item["existed"]),
            (&json!(path), &json!("OK"), &json!(false))
        );
        assert_eq!(item["hash"], blake3::hash(content.as_bytes()).to_hex().as_str());
        assert_eq!(files::read(path), content.as_bytes());
    }
    let metadata = std::fs::metadata(outside.join("b.txt")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
    before.assert_same(&Tree::read(&dir), "the sources stay");
    assert_eq!(records(&mut pod), [export]);
    pod.shutdown();
}

#[test]
fn refusals_come_in_the_order_of_the_contract_and_write_nothing() {
    let site = site();
    let (mut pod, dir) = with_files(&site, &[("f", "f")]);
    let inside = site.root().join("z");
    let linked = site.path("linked");
    files::symlink(site.root(), &linked);
    files::symlink(site.outside(), dir.join("link"));
    for (code, more) in [
        ("BAD_REQUEST", json!({"targetDir": "rel"})),
        ("BAD_REQUEST", json!({"targetDir": 5})),
        ("BAD_REQUEST", json!({"entries": []})),
        ("BAD_REQUEST", json!({"entries": "f"})),
        ("BAD_REQUEST", json!({"mode": "link"})),
        ("BAD_REQUEST", json!({"conflict": "ask", "taskId": "z"})),
        ("TASK_NOT_FOUND", json!({"taskId": "z", "targetDir": inside})),
        ("TARGET_INSIDE_SANDBOX", json!({"targetDir": inside, "entries": ["nope"]})),
        ("TARGET_INSIDE_SANDBOX", json!({"targetDir": site.root()})),
        ("TARGET_INSIDE_SANDBOX", json!({"targetDir": linked.join("z")})),
        ("TARGET_INSIDE_SANDBOX", json!({"targetDir": site.outside().join("../root/z")})),
        ("PATH_OUTSIDE", json!({"entries": ["f", "../q"]})),
        ("PATH_OUTSIDE", json!({"entries": ["link/q"]})),
        ("FILE_NOT_FOUND", json!({"entries": ["f", "nope"]})),
    ] {
        pod.refused(code, "export.create", export(&site, &["f"], more));
    }
    let file = site.path("file");
    files::write(&file, "");
    pod.refused("BAD_REQUEST", "export.create", export(&site, &["f"], json!({"targetDir": file})));
    pod.configure(json!({"enableExport": false}));
    pod.refused("EXPORT_DISABLED", "export.create", export(&site, &[], json!({"taskId": "z"})));
    assert_eq!(files::names(site.outside()), [""; 0]);
    assert_eq!(site.in_root(), ["a"]);
    assert_eq!(records(&mut pod), [json!(null); 0]);
}

#[test]
fn files_in_the_way_are_kept_skipped_or_gone_around() {
    let site = site();
    let outside = site.outside();
    let (mut pod, _) = with_files(&site, &[("x.txt", "new"), ("a.tar.gz", "new"), (".env", "new")]);
    make(&outside, &[("x.txt", "old"), ("a.tar.gz", "old"), (".env", "old")]);
    let entries = ["x.txt", "a.tar.gz", ".env"];
    let skipped = create(&mut pod, export(&site, &entries, json!({"conflict": "skip"})));
    assert_eq!((&skipped["status"], each(&skipped, "status")), (&json!("completed"), vec![json!("SKIP"); 3]));
    for number in [1, 2] {
        let renamed = create(&mut pod, export(&site, &entries, json!({"conflict": "rename"})));
        let mut names: Vec<_> = each(&renamed, "dst")
            .iter()
            .map(|dst| Path::new(dst.as_str().unwrap()).file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        assert_eq!(
            names,
            [format!(".env-{number}"), format!("a.tar-{number}.gz"), format!("x-{number}.txt")]
        );
        assert_eq!(each(&renamed, "existed"), [json!(false), json!(false), json!(false)]);
    }
    for name in entries {
        assert_eq!(files::read(outside.join(name)), b"old");
    }
    assert_eq!(files::read(outside.join("x-2.txt")), b"new");
}

#[test]
fn what_was_overwritten_comes_back() {
    let site = site();
    let outside = site.outside();
    let (mut pod, _) = with_files(&site, &[("d/x.txt", "new"), ("d/y.txt", "y")]);
    make(&outside, &[("d/x.txt", "old"), ("other", "o")]);
    let before = Tree::read(&outside);
    let export = create(&mut pod, export(&site, &["d"], json!({"conflict": "overwrite"})));
    let item = export["items"].as_array().unwrap().iter().find(|item| item["existed"] == true).unwrap();
    let backup = Path::new(item["backupPath"].as_str().unwrap());
    let kept = outside.join(BACKUPS).join(export["id"].as_str().unwrap());
    assert!(backup.starts_with(&kept), "{}", backup.display());
    assert_eq!(files::read(backup), b"old");
    assert_eq!(files::read(outside.join("d/x.txt")), b"new");
    let result = undo(&mut pod, &export);
    assert_eq!(result["restored"], json!([outside.join("d/x.txt")]));
    assert_eq!(result["removed"], json!([outside.join("d/y.txt")]));
    assert_eq!(result["conflicts"], json!([]));
    assert!(result["export"]["undoneAt"].as_i64().unwrap() > 0);
    assert_eq!(each(&result["export"], "status"), [json!("UNDO"), json!("UNDO")]);
    before.assert_same(&Tree::read(&outside), "the target is as it was");
    assert_eq!(pod.refused("UNDO_CONFLICT", "export.undo", exported(&export))["code"], "UNDO_CONFLICT");
    assert_eq!(records(&mut pod), [result["export"].clone()]);
}

#[test]
fn what_was_edited_since_stays_unless_nobody_is_to_look() {
    let site = site();
    let file = site.outside().join("f");
    let (mut pod, _) = with_files(&site, &[("f", "f")]);
    let export = create(&mut pod, export(&site, &["f"], json!({})));
    files::write(&file, "edited");
    let result = undo(&mut pod, &export);
    assert_eq!(each(&result["export"], "status"), [json!("UNDO_CONFLICT")]);
    assert_eq!((&result["conflicts"][0]["path"], &result["export"]["undoneAt"]), (&json!(file), &json!(0)));
    assert_eq!(files::read(&file), b"edited");
    pod.configure(json!({"exportVerify": false}));
    let result = undo(&mut pod, &export);
    assert_eq!((&result["removed"], file.exists()), (&json!([file]), false));
}

#[test]
fn an_unknown_export_is_neither_undone_nor_deleted() {
    let site = site();
    let mut pod = site.start();
    for method in ["export.undo", "export.deleteRecord"] {
        pod.refused("EXPORT_NOT_FOUND", method, json!({"exportId": "exp-0"}));
    }
}

#[test]
fn what_was_moved_comes_back_only_to_a_free_path() {
    let site = site();
    let (mut pod, dir) = with_files(&site, &[("d/f", "f"), ("g", "g")]);
    let move_ = |entry| export(&site, &[entry], json!({"mode": "move"}));
    let moved = create(&mut pod, move_("d"));
    assert_eq!(
        (files::names(&dir), files::names(site.outside())),
        (vec!["g".to_owned()], vec!["d".to_owned()])
    );
    assert_eq!(undo(&mut pod, &moved)["conflicts"], json!([]));
    assert_eq!((files::read(dir.join("d/f")), files::names(site.outside())), (b"f".to_vec(), vec![]));

    let moved = create(&mut pod, move_("g"));
    files::write(dir.join("g"), "taken");
    let result = undo(&mut pod, &moved);
    assert_eq!(each(&result["export"], "status"), [json!("UNDO_CONFLICT")]);
    assert_eq!(
        (files::read(dir.join("g")), files::read(site.outside().join("g"))),
        (b"taken".to_vec(), b"g".to_vec())
    );
}

#[test]
fn files_of_an_active_task_are_copied_and_not_moved() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.run("a");
    make(&site.root().join("a"), &[("f", "f")]);
    pod.refused("TASK_RUNNING", "export.create", export(&site, &["f"], json!({"mode": "move"})));
    create(&mut pod, export(&site, &["f"], json!({})));
    pod.complete("a");
    create(&mut pod, export(&site, &["f"], json!({"mode": "move", "conflict": "rename"})));
    assert_eq!(files::names(site.outside()), ["f", "f-1"]);
}

#[test]
fn an_export_outlives_its_task() {
    let site = site();
    let (mut pod, _) = with_files(&site, &[("f", "f")]);
    let export = create(&mut pod, export(&site, &["f"], json!({})));
    pod.ok("task.cleanupFiles", json!({"taskId": "a"}));
    pod.ok("task.delete", json!({"taskId": "a"}));
    assert_eq!(records(&mut pod), std::slice::from_ref(&export));
    assert_eq!(undo(&mut pod, &export)["removed"], json!([site.outside().join("f")]));
}

#[test]
fn what_is_too_much_is_refused_before_anything_is_written() {
    let site = site();
    let (mut pod, dir) = with_files(&site, &[]);
    let mut refused = |limit: &str, value: u64| {
        let error = pod.refused("EXPORT_LIMIT", "export.create", export(&site, &["d"], json!({})));
        assert_eq!(error["data"], json!({"limit": limit, "value": value}));
        assert_eq!(files::names(site.outside()), [""; 0]);
        files::remove(dir.join("d"));
    };
    files::mkdir(dir.join("d"));
    (0..5001).for_each(|n| files::write(dir.join(format!("d/{n}")), ""));
    refused("files", 5000);
    std::fs::create_dir_all(dir.join(["d"; 33].join("/"))).unwrap();
    files::write(dir.join(["d"; 33].join("/")).join("f"), "");
    refused("depth", 32);
    files::mkdir(dir.join("d"));
    files::sparse(dir.join("d/large"), (1 << 30) + 1, &[]);
    refused("fileBytes", 1 << 30);
    files::mkdir(dir.join("d"));
    for name in ["x", "y", "z"] {
        files::sparse(dir.join("d").join(name), (700 << 20) + 1, &[]);
    }
    refused("bytes", 2 << 30);
    assert_eq!(records(&mut pod), [json!(null); 0]);
}

#[test]
fn a_record_goes_with_its_backups_and_the_files_stay() {
    let site = site();
    let outside = site.outside();
    let (mut pod, _) = with_files(&site, &[("f", "new")]);
    make(&outside, &[("f", "old")]);
    let first = create(&mut pod, export(&site, &["f"], json!({})));
    pod.ok("export.deleteRecord", exported(&first));
    assert_eq!(
        (files::names(&outside), files::read(outside.join("f"))),
        (vec!["f".to_owned()], b"new".to_vec())
    );
    assert_eq!(records(&mut pod), [json!(null); 0]);

    pod.configure(json!({"maxExports": 1}));
    let second = create(&mut pod, export(&site, &["f"], json!({})));
    let third = create(&mut pod, export(&site, &["f"], json!({})));
    assert_eq!(records(&mut pod), std::slice::from_ref(&third));
    assert_eq!(files::names(outside.join(BACKUPS)), [third["id"].as_str().unwrap()]);
    pod.refused("EXPORT_NOT_FOUND", "export.undo", exported(&second));

    // A start prunes likewise.
    pod.configure(json!({"maxExports": 2}));
    let fourth = create(&mut pod, export(&site, &["f"], json!({})));
    pod.configure(json!({"maxExports": 1}));
    pod.shutdown();
    let mut pod = site.start();
    assert_eq!(records(&mut pod), std::slice::from_ref(&fourth));
    assert_eq!(files::names(outside.join(BACKUPS)), [fourth["id"].as_str().unwrap()]);
}

#[test]
fn a_record_stays_while_something_among_its_backups_is_no_backup() {
    let site = site();
    let (mut pod, _) = with_files(&site, &[("f", "new")]);
    make(&site.outside(), &[("f", "old")]);
    let record = create(&mut pod, export(&site, &["f"], json!({})));
    let backup = record["items"][0]["backupPath"].as_str().unwrap();
    files::write(backup, "edited");
    let error = pod.refused("UNDO_CONFLICT", "export.deleteRecord", exported(&record));
    assert_eq!(error["data"], json!({"reason": "NEWER_WORK"}));
    assert!(error["message"].as_str().unwrap().contains(backup), "{error}");
    assert_eq!(records(&mut pod), std::slice::from_ref(&record));
    files::rename(backup, site.path("mine"));
    pod.ok("export.deleteRecord", exported(&record));
    assert_eq!(files::names(site.outside()), ["f"]);

    // One that goes since there are too many leaves it where it is, and that is told.
    pod.configure(json!({"maxExports": 1}));
    let first = create(&mut pod, export(&site, &["f"], json!({})));
    let backup = first["items"][0]["backupPath"].as_str().unwrap();
    files::write(backup, "edited");
    let second = create(&mut pod, export(&site, &["f"], json!({})));
    assert_eq!((records(&mut pod), files::read(backup)), (vec![second], b"edited".to_vec()));
    let told = pod.ok("diagnostics.get", json!({}))["diagnostics"].to_string();
    assert!(told.contains("newer"), "{told}");
}

#[test]
fn nothing_is_exported_over_the_sidecars_own_files() {
    let site = site();
    let own = ["core.log", "core.log.1", "pod.db", "pod.db-journal", "pod.db-wal", "pod.db.lock"];
    let made: Vec<_> = own.iter().chain(&["mine"]).map(|name| (*name, "exported")).collect();
    let (mut pod, _) = with_files(&site, &made);
    let dir = site.db().parent().unwrap().to_owned();
    let record = create(&mut pod, export(&site, &["."], json!({"targetDir": dir, "conflict": "overwrite"})));
    for item in record["items"].as_array().unwrap() {
        let expected = if item["dst"] == json!(dir.join("mine")) { "OK" } else { "FAIL" };
        assert_eq!(item["status"], expected, "{item}");
    }
    assert!(!dir.join("pod.db-journal").exists() && !dir.join("core.log.1").exists());
    undo(&mut pod, &record);
    pod.kill();
    assert_eq!(records(&mut site.start()).len(), 1, "the database is whole");
}

#[test]
fn a_record_goes_even_if_its_target_is_away_and_that_is_told() {
    let site = site();
    let (mut pod, _) = with_files(&site, &[("f", "f")]);
    make(&site.outside(), &[("f", "old")]);
    let export = create(&mut pod, export(&site, &["f"], json!({})));
    files::rename(site.outside(), site.path("away"));
    pod.ok("export.deleteRecord", exported(&export));
    let told = pod.ok("diagnostics.get", json!({}))["diagnostics"].to_string();
    assert!(told.contains(export["id"].as_str().unwrap()), "{told}");
}

#[test]
fn a_target_that_nobody_may_write_to_fails_file_by_file_and_nothing_is_lost() {
    let site = site_of_ordinary_user();
    let (mut pod, dir) = with_files(&site, &[("f", "f"), ("g", "g")]);
    if user::is_root() {
        user::give_all(&dir, user::NOBODY);
    }
    make(&site.outside(), &[("f", "old")]);
    files::chmod(site.outside(), 0o555);
    let before = Tree::read(&site.outside());
    let export = create(&mut pod, export(&site, &["f", "g"], json!({"mode": "move"})));
    assert_eq!((&export["status"], each(&export, "status")), (&json!("failed"), vec![json!("FAIL"); 2]));
    assert!(each(&export, "message").iter().all(|message| message != ""));
    before.assert_same(&Tree::read(&site.outside()), "the target");
    assert_eq!(files::names(&dir), ["f", "g"]);
}

#[test]
fn a_full_disk_fails_files_and_loses_none() {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    let site = site();
    let (mut pod, dir) = with_files(&site, &[("large", &"x".repeat(3 << 20)), ("small", "s")]);
    let disk = Mount::tmpfs(&site.path("disk"), 2048);
    make(disk.path(), &[("small", "old")]);
    let export = create(
        &mut pod,
        export(&site, &["large", "small"], json!({"targetDir": disk.path(), "mode": "move"})),
    );
    assert_eq!(export["status"], "failed");
    let large = export["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["src"].as_str().unwrap().ends_with("large"));
    assert_eq!(large.unwrap()["status"], "FAIL");
    assert!(dir.join("large").exists() && !disk.path().join("large").exists());
    undo(&mut pod, &export);
    assert_eq!(
        (files::read(disk.path().join("small")), files::names(disk.path())),
        (b"old".to_vec(), vec!["small".to_owned()])
    );
    assert_eq!(files::names(&dir), ["large", "small"]);
}

#[test]
fn hostile_sources_and_targets_are_neither_followed_nor_opened() {
    let site = site();
    let (mut pod, dir) = with_files(&site, &[("d/f", "f"), ("d/x", "new"), ("d/t", "new")]);
    let outside = site.outside();
    let secret = site.path("secret");
    files::write(&secret, "secret");
    files::symlink(&secret, dir.join("d/link"));
    files::symlink(site.path("home"), dir.join("d/links"));
    files::fifo(dir.join("d/pipe"));
    files::mkdir(outside.join("d"));
    files::mkdir(outside.join("d/x"));
    files::symlink(&secret, outside.join("d/t"));
    let export = create(&mut pod, export(&site, &["d"], json!({})));
    let mut found: Vec<_> = export["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            (item["src"].as_str().unwrap().rsplit('/').next().unwrap().to_owned(), item["status"].clone())
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let item = |name: &str, status: &str| (name.to_owned(), json!(status));
    assert_eq!(
        found,
        [
            item("f", "OK"),
            item("link", "SKIP"),
            item("links", "SKIP"),
            item("pipe", "SKIP"),
            item("t", "FAIL"),
            item("x", "FAIL")
        ]
    );
    assert_eq!((&export["status"], files::read(&secret)), (&json!("failed"), b"secret".to_vec()));
    undo(&mut pod, &export);
    assert_eq!(files::names(outside.join("d")), ["t", "x"]);
}

#[test]
fn two_sources_of_one_name_both_arrive() {
    let site = site();
    let (mut pod, _) = with_files(&site, &[("a/x.txt", "1"), ("b/x.txt", "2")]);
    let export =
        create(&mut pod, export(&site, &["a/x.txt", "b/x.txt", "a/x.txt"], json!({"conflict": "overwrite"})));
    assert_eq!(each(&export, "status"), [json!("OK"), json!("OK")]);
    assert_eq!(files::names(site.outside()), ["x-1.txt", "x.txt"]);
}

#[test]
fn a_target_is_remembered_where_that_is_allowed() {
    let site = site();
    let (mut pod, _) = with_files(&site, &[("f", "f")]);
    let params = export(&site, &["f"], json!({"remember": true, "conflict": "rename"}));
    let answer = pod.ok("export.create", params.clone());
    assert!(answer["message"].as_str().unwrap().contains("not remembered"), "{answer}");
    pod.configure(json!({"allowRememberChoice": true}));
    let answer = pod.ok("export.create", params);
    assert_eq!(answer.get("message"), None);
    pod.shutdown();
    assert_eq!(site.start().ok("export.list", json!({}))["remembered"], json!({"m": site.outside()}));
}
