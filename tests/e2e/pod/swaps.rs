//! Whatever is exchanged for a link while the sidecar is at work, and back, leads nowhere: nothing that lies elsewhere is
//! read, written or removed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use cofferdam_tests::files;
use cofferdam_tests::pod::{Sidecar, reserve, turn, with};
use cofferdam_tests::tree::Tree;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use super::exports::{export, exported, make, with_files};
use super::site;

const INSIDE: [(&str, &str); 5] =
    [("d/f", "inside"), ("d/g", "inside"), ("d/sub/h", "inside"), ("e/f", "inside"), ("e/g", "inside")];

/// What no answer and no exported file may show: a content, a name, a size.
const SECRETS: [&str; 3] = ["SECRET", "only-elsewhere", "54321"];

/// Something that looks like what is made, elsewhere.
fn make_elsewhere(dir: &Path) -> Tree {
    let secret = format!("{:-<54321}", "SECRET");
    let files = INSIDE.map(|(path, _)| (path, secret.as_str()));
    make(dir, &files);
    make(dir, &[("d/only-elsewhere", &secret), ("d/sub/only-elsewhere", &secret)]);
    Tree::read(dir)
}

/// A name in a directory and that of a link beside it, which is in its place for moments.
type Pair = (std::path::PathBuf, std::path::PathBuf);

/// A pair: what is at `path`, and a link to `to`.
fn pair(path: impl AsRef<Path>, to: impl AsRef<Path>) -> Pair {
    let path = path.as_ref();
    let link = path.with_extension("link");
    files::symlink(to, &link);
    (path.to_owned(), link)
}

/// Has each link in its place for a moment, one after the other, while something goes on. Whoever holds the lock finds
/// everything where it belongs.
fn while_swapping<T>(pairs: &[Pair], work: impl FnOnce(&Mutex<()>) -> T) -> T {
    let (stop, lock) = (AtomicBool::new(false), Mutex::new(()));
    let exchange = |one: &Path, other: &Path| renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (path, link) in pairs.iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
                let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
                if exchange(path, link).is_ok() {
                    std::thread::yield_now();
                    // One of them may be removed by now, until an undo brings it back.
                    for _ in 0..100_000 {
                        if exchange(path, link).is_ok() {
                            break;
                        }
                        std::thread::yield_now();
                    }
                }
            }
        });
        // The thread must end whatever comes of the work.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&lock)));
        stop.store(true, Ordering::Relaxed);
        done
    })
    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[track_caller]
fn tells_nothing(answer: &Value) {
    let text = answer.to_string();
    for secret in SECRETS {
        assert!(!text.contains(secret), "{text:.2000}");
    }
}

/// Undoes all of an export but for one file. What is in the way at this moment is not at the next.
#[track_caller]
fn undo_all_but(pod: &mut Sidecar, export: &Value, but: &str) {
    let mut left = Vec::new();
    for _ in 0..100 {
        let answer = pod.request("export.undo", exported(export));
        left = answer["result"]["conflicts"].as_array().cloned().unwrap_or_default();
        left.retain(|conflict| !conflict["path"].as_str().unwrap().ends_with(but));
        if left.is_empty() {
            return;
        }
    }
    panic!("{left:?}: {export}");
}

/// Everything in a directory, which may be swapped meanwhile, is what was made.
#[track_caller]
fn holds_nothing_of_it(dir: &Path) {
    for path in Tree::read(dir).paths() {
        let path = String::from_utf8_lossy(path);
        let content = std::fs::read(dir.join(&*path)).unwrap_or_default();
        assert!(!path.contains("only-elsewhere") && !content.starts_with(b"SECRET"), "{path}");
    }
}

/// The pairs in a task's directory: a directory, one in it, and a file.
fn pairs_of_task(dir: &Path, elsewhere: &Path) -> [Pair; 3] {
    ["d", "d/sub", "e/f"].map(|path| pair(dir.join(path), elsewhere.join(path)))
}

#[test]
fn looking_at_files() {
    let site = site();
    let (mut pod, dir) = with_files(&site, &INSIDE);
    let before = make_elsewhere(&site.outside());
    let pairs = pairs_of_task(&dir, &site.outside());
    while_swapping(&pairs, |_| {
        for _ in 0..500 {
            tells_nothing(&pod.request("files.list", json!({"taskId": "a"})));
            for path in ["d/f", "d/sub/h", "e/f"] {
                let at = json!({"taskId": "a", "relPath": path});
                let read = pod.request("files.read", at.clone());
                tells_nothing(&read);
                let is_refused = read["error"]["code"] == "PATH_OUTSIDE";
                assert!(is_refused || read["result"]["text"] == "inside", "{read}");
                tells_nothing(&pod.request("files.stat", at));
            }
        }
    });
    before.assert_same(&Tree::read(&site.outside()), "elsewhere");
    for (path, content) in INSIDE {
        assert_eq!(files::read(dir.join(path)), content.as_bytes());
    }
}

#[test]
fn exporting_from_what_is_swapped() {
    let site = site();
    let (mut pod, dir) = with_files(&site, &INSIDE);
    let elsewhere = site.path("elsewhere");
    let before = make_elsewhere(&elsewhere);
    let pairs = pairs_of_task(&dir, &elsewhere);
    make(&site.outside(), &[("d/f", "old"), ("e/f", "old")]);
    let target = Tree::read(&site.outside());
    while_swapping(&pairs, |lock| {
        for round in 0..40 {
            let mode = if round % 2 == 0 { "copy" } else { "move" };
            let params = export(&site, &["d", "e"], json!({"mode": mode, "conflict": "overwrite"}));
            let answer = pod.request("export.create", params);
            tells_nothing(&answer);
            holds_nothing_of_it(&site.outside());
            let record = &answer["result"]["export"];
            if record.is_null() {
                // What was selected was a link.
                continue;
            }
            undo_all_but(&mut pod, record, "nothing");
            pod.ok("export.deleteRecord", exported(record));
            let _everything_is_in_its_place = lock.lock().unwrap();
            for (path, content) in INSIDE {
                assert_eq!(files::read(dir.join(path)), content.as_bytes(), "{mode}: {record}");
            }
        }
    });
    before.assert_same(&Tree::read(&elsewhere), "elsewhere");
    target.assert_same(&Tree::read(&site.outside()), "the target");
}

#[test]
fn exporting_to_what_is_swapped() {
    let site = site();
    let (mut pod, _) = with_files(&site, &INSIDE);
    let elsewhere = site.path("elsewhere");
    let before = make_elsewhere(&elsewhere);
    // The directory above the target is the user's to exchange: what counts is the target that was found.
    let (target, other) = (site.path("above/target"), site.path("other/target"));
    for dir in [&target, &other] {
        make(dir, &[("d/f", "old"), ("d/sub/h", "old"), ("e/f", "old"), ("e/kept", "kept")]);
    }
    let found = [&target, &other].map(|dir| Tree::read(dir));
    let pairs = [
        pair(site.path("above"), site.path("other")),
        pair(target.join("d"), elsewhere.join("d")),
        pair(target.join("d/sub"), elsewhere.join("d/sub")),
        pair(target.join("e/f"), elsewhere.join("e/f")),
        pair(other.join("d"), elsewhere.join("d")),
    ];
    while_swapping(&pairs, |_| {
        for _ in 0..100 {
            let params = export(&site, &["d", "e"], json!({"targetDir": target, "conflict": "overwrite"}));
            let answer = pod.request("export.create", params);
            let record = &answer["result"]["export"];
            if record.is_null() {
                assert_eq!(answer["error"]["code"], "BAD_REQUEST", "{answer}");
                continue;
            }
            // Who exchanges the very file that is replaced gets one of the two.
            undo_all_but(&mut pod, record, "/e/f");
            pod.request("export.deleteRecord", exported(record));
        }
    });
    before.assert_same(&Tree::read(&elsewhere), "elsewhere");
    for (dir, found) in [&target, &other].into_iter().zip(found) {
        for path in ["d/f", "d/sub/h", "e/kept"] {
            let content = |tree: &Tree| tree.get(path).map(|node| format!("{node:?}"));
            assert_eq!(content(&Tree::read(dir)), content(&found), "{path} of {}", dir.display());
        }
    }
}

#[test]
fn removing_what_is_swapped() {
    let site = site();
    let mut pod = site.start_rooted();
    let elsewhere = site.path("elsewhere");
    let tasks: Vec<String> = (0..40).map(|n| format!("t{n}")).collect();
    let mut pairs = Vec::new();
    for task in &tasks {
        pod.ok("task.reserve", with(&reserve(task), json!({"subdir": "s"})));
        pod.ok("task.turnStarted", turn(task, 1));
        pod.complete(task);
        let dir = site.root().join("s").join(task);
        make(&dir, &INSIDE);
        // As large as it takes to be met in its midst.
        (0..50).for_each(|n| files::write(dir.join(format!("e/{n}")), "inside"));
        make_elsewhere(&elsewhere.join(task));
        pairs.extend(pairs_of_task(&dir, &elsewhere.join(task)));
        pairs.push((site.root().join("s"), site.root().join("s.link")));
    }
    files::symlink(&elsewhere, site.root().join("s.link"));
    let before = Tree::read(&elsewhere);
    let clean_up = |pod: &mut Sidecar, task: &str| {
        let answer = pod.request("task.cleanupFiles", json!({"taskId": task}));
        let is_refused = answer["error"]["code"] == "PATH_OUTSIDE" || answer["error"]["code"] == "INTERNAL";
        assert!(is_refused || answer["result"]["ok"] == true, "{answer}");
    };
    while_swapping(&pairs, |_| {
        for task in tasks.iter().cycle().take(400) {
            clean_up(&mut pod, task);
        }
    });
    before.assert_same(&Tree::read(&elsewhere), "elsewhere");
    tasks.iter().for_each(|task| clean_up(&mut pod, task));
    assert_eq!(site.in_root(), ["s.link"]);
}
