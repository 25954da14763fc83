//! Names and texts that want to be more, and very many of them.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use cofferdam_tests::files;

use super::*;

const MARKUP: &str = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>";
const TURNED: &str = "safe\u{202e}gpj.exe";

#[test]
fn names_and_texts_with_markup_and_turned_characters_are_shown_as_text() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    visit.enter(&daemon);
    let script =
        format!("say {MARKUP} and {TURNED}\ntool bash {MARKUP}\nthink {MARKUP}\nend error {MARKUP}{TURNED}");
    site.run(&["task", "run", &script, "--label", &format!("{MARKUP}{TURNED}"), "--wait"]);
    let task = site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned();
    let row = site.row(&task);
    let dir = Path::new(row["taskDir"].as_str().unwrap());
    for name in ["<img src=x onerror=alert(1)>".as_bytes(), TURNED.as_bytes(), b"line\nbreak", b"not\xfftext"]
    {
        files::write(dir.join(std::ffi::OsStr::from_bytes(name)), MARKUP);
    }
    let harmless = |place: &str| {
        let markup = browser.script(
            "return [...document.querySelectorAll('main img, main script, main iframe')].map((of) => of.outerHTML)",
        );
        assert_eq!(markup, json!([]), "{place}");
        let text = browser.text("main");
        assert!(!text.contains('\u{202e}'), "{place}: {text}");
        assert_ne!(browser.script("return document.title"), json!("owned"));
    };
    visit.go("tasks");
    browser.says(&format!("[data-task='{task}']"), "<b>bold</b>");
    browser.says(&format!("[data-task='{task}']"), "U+202E");
    harmless("board");
    visit.go(&format!("tasks/{task}"));
    browser.says("[role=log]", "<b>bold</b>");
    harmless("conversation");
    visit.go(&format!("tasks/{task}/files"));
    browser.wait("[data-file]");
    assert_eq!(browser.count("[data-file]"), 4);
    browser.click("[data-file^='<img'] [data-action=preview]");
    browser.says("[data-preview]", "onerror");
    harmless("files");
    let project = site.path("project");
    files::write(project.join(TURNED), "a\n");
    site.ok(&["ckpt", "checkpoint", "-w", project.to_str().unwrap(), "-i", "one", "-m", MARKUP]);
    files::write(project.join(TURNED), format!("{MARKUP}{TURNED}\n"));
    files::write(project.join(MARKUP.replace('/', "|")), "b\n");
    visit.go("checkpoints");
    browser.click("[data-workspace] [data-action=view]");
    browser.wait("[data-snapshot=one]");
    harmless("timeline");
    browser.click("[data-snapshot=one] [data-action=diff]");
    browser.wait("[data-change][data-kind=modified]");
    browser.click("[data-change][data-kind=modified] [data-action=content]");
    browser.says("[data-hunks]", "<b>bold</b>");
    harmless("comparison");
    visit.assert_quiet();
}

#[test]
fn a_listing_of_2000_files_and_a_text_of_a_mebibyte_stay_usable() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    visit.enter(&daemon);
    let task = visit.task("say hello");
    let dir = PathBuf::from(site.row(&task)["taskDir"].as_str().unwrap());
    for n in 0..2100 {
        files::write(dir.join(format!("{:02}/file-{n:04}.txt", n % 20)), "x");
    }
    files::write(dir.join("00/a-long.txt"), "0123456789abcde\n".repeat(1 << 16));
    visit.go(&format!("tasks/{task}/files"));
    browser.wait("[data-file]");
    assert!(browser.count("[data-file]") <= 200, "all are drawn at once");
    browser.says("main", "2000");
    browser.fill("main input[type=search]", "a-long");
    browser.wait("[data-file='00/a-long.txt']");
    browser.click("[data-file='00/a-long.txt'] [data-action=preview]");
    // Either a beginning that says so, or why there is none.
    browser.wait("[data-testid=cut], [data-code=FILE_TOO_LARGE]");
    let project = site.path("project");
    files::write(project.join("long"), "a line of a long text\n".repeat(50_000));
    site.ok(&["ckpt", "checkpoint", "-w", project.to_str().unwrap(), "-i", "one"]);
    fs::write(project.join("long"), "another line of a long text\n".repeat(50_000)).unwrap();
    visit.go("checkpoints");
    browser.click("[data-workspace] [data-action=view]");
    browser.click("[data-snapshot=one] [data-action=diff]");
    browser.click("[data-change=long] [data-action=content]");
    browser.says("[data-hunks]", "a line of a long text");
    visit.assert_quiet();
}

#[test]
fn of_200_tasks_news_are_seen_at_once() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&["maxConcurrent=8"]);
    visit.enter(&daemon);
    for n in 0..200 {
        let started =
            visit.call("startTask", &json!({"mainSessionId": "", "description": format!("say answer {n}")}));
        assert_eq!(started["ok"], true, "{started}");
    }
    visit.go("tasks");
    browser.until(
        "!document.querySelector('[data-status=queued], [data-status=running], [data-status=starting]')",
    );
    // From the news to what is drawn after it.
    browser.script(
        "globalThis.came = {}; globalThis.drawn = {};
         new EventSource('/api/v1/events').addEventListener('task.changed', (event) => {
             const {taskId, task} = JSON.parse(event.data);
             came[taskId + task.status] ??= performance.now();
         });
         new MutationObserver(() => requestAnimationFrame(() => setTimeout(() => {
             for (const card of document.querySelectorAll('[data-task]')) {
                 drawn[card.dataset.task + card.dataset.status] ??= performance.now();
             }
         }))).observe(document.body, {subtree: true, childList: true, attributes: true});",
    );
    for n in 0..5 {
        let id = visit.task(&format!("say news {n}"));
        browser.wait(&format!("[data-task='{id}'][data-status=completed]"));
        browser.until(&format!("drawn['{id}completed'] && came['{id}completed']"));
    }
    let took = browser.script(
        "return Object.keys(came).filter((key) => key in drawn).map((key) => drawn[key] - came[key])",
    );
    let mut took: Vec<_> = took.as_array().unwrap().iter().map(|one| one.as_f64().unwrap()).collect();
    took.sort_by(f64::total_cmp);
    assert!(took.len() >= 5, "{took:?}");
    // One that the machine held up says nothing of the page.
    assert!(took[took.len() / 2] <= 200.0, "milliseconds from event to pixel: {took:?}");
    assert!(browser.count("[data-task]") <= 100, "all are drawn at once");
    browser.says("main [role=status]", "205");
    visit.assert_quiet();
}
