//! How the pages look and read: both themes, both languages, a phone's width, and what an accessibility engine says of them.

use std::fs;

use cofferdam_tests::files;

use super::*;

/// The engine, if it was fetched: `.ci/run` does that.
fn engine() -> Option<String> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("axe-core/axe.min.js");
    let engine = fs::read_to_string(file).ok();
    if engine.is_none() {
        cofferdam_tests::skipped(format_args!("axe-core is not in target/axe-core; .ci/run fetches it"));
    }
    engine
}

/// What an engine finds wrong with the page that is shown, a line each.
fn flaws(browser: &Browser, engine: &str) -> Vec<String> {
    if browser.script("return typeof globalThis.axe") == "undefined" {
        browser.script(&format!("{engine}; return null;"));
    }
    let found = browser.script_async(
        "const {violations} = await axe.run(document, {resultTypes: ['violations']});
         return violations.flatMap(({id, help, nodes}) => nodes.map(({html}) => `${id}: ${help}: ${html.slice(0, 200)}`));",
    );
    found.as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

/// A place in which every page has something to show, and where each page is.
fn furnished(visit: &Visit) -> Vec<(&'static str, String)> {
    let site = &visit.site;
    let done =
        visit.task("say The numbers are in place.\nwrite notes/plan.md A plan\ntool bash ls\nthink hm");
    site.run(&["task", "run", "end error it went wrong", "--label", "One that failed", "--wait"]);
    site.ok(&["task", "run", "say this is the last\nhold", "--label", "One that runs"]);
    let project = site.path("project");
    files::write(project.join("main.rs"), "fn main() {}\n");
    site.ok(&["ckpt", "checkpoint", "-w", project.to_str().unwrap(), "-i", "before-the-refactor"]);
    files::write(project.join("main.rs"), "fn main() {\n    run();\n}\n");
    let out = site.outside();
    site.ok(&["export", "create", &done, "--to", &out, "--yes"]);
    [
        ("tasks", "tasks".to_owned()),
        ("new", "new".to_owned()),
        ("conversation", format!("tasks/{done}")),
        ("files", format!("tasks/{done}/files")),
        ("checkpoints", "checkpoints".to_owned()),
        ("timeline", format!("checkpoints/{}", encoded(project.to_str().unwrap()))),
        (
            "comparison",
            format!("checkpoints/{}/diff/before-the-refactor/@live", encoded(project.to_str().unwrap())),
        ),
        ("sessions", "sessions".to_owned()),
        ("exports", "exports".to_owned()),
        ("settings", "settings".to_owned()),
        ("diagnostics", "diagnostics".to_owned()),
    ]
    .to_vec()
}

fn encoded(path: &str) -> String {
    path.replace('/', "%2F")
}

/// Nothing is fetched any more, and no colour changes.
fn settled(browser: &Browser) {
    browser.until("!document.querySelector('main .loading') && !document.getAnimations().length");
}

#[test]
fn every_page_reads_well_in_both_themes_and_languages_and_on_a_phone() {
    let Some(visit) = Visit::new() else { return };
    let browser = &visit.browser;
    let daemon = visit.site.start_with(&[]);
    visit.enter(&daemon);
    let pages = furnished(&visit);
    let engine = engine();
    let mut flawed = Vec::new();
    for language in ["en", "zh"] {
        if !browser.script("return document.documentElement.lang").as_str().unwrap().starts_with(language) {
            browser.click("[data-action=language]");
        }
        browser.until(&format!("document.documentElement.lang.startsWith('{language}')"));
        for theme in ["light", "dark"] {
            if browser.script("return document.documentElement.dataset.theme") != theme {
                browser.click("[data-action=theme]");
            }
            browser.until(&format!("document.documentElement.dataset.theme === '{theme}'"));
            for (width, height) in [(1280, 900), (360, 740)] {
                browser.resize(width, height);
                for (name, place) in &pages {
                    let what = format!("{name}-{language}-{theme}-{width}");
                    visit.go(place);
                    settled(browser);
                    let over = browser.script("return document.documentElement.scrollWidth - innerWidth");
                    if over.as_i64().unwrap() > 0 {
                        flawed.push(format!("{what}: {over} pixels too wide"));
                    }
                    if let Some(engine) = &engine {
                        flawed
                            .extend(flaws(browser, engine).into_iter().map(|flaw| format!("{what}: {flaw}")));
                    }
                    if (language, theme) == ("en", "light") || *name == "tasks" {
                        browser.picture(&pictures().join(format!("{what}.png")));
                    }
                }
            }
        }
    }
    assert_eq!(flawed, Vec::<String>::new(), "{}", flawed.join("\n"));
    visit.assert_quiet();
}

#[test]
fn a_task_is_started_with_the_keyboard_alone() {
    let Some(visit) = Visit::new() else { return };
    let browser = &visit.browser;
    let daemon = visit.site.start_with(&[]);
    visit.enter(&daemon);
    let focused = || {
        browser.script("return document.activeElement.dataset?.nav || document.activeElement.name || document.activeElement.dataset?.action || ''")
    };
    // Tab, until what is wanted has the focus; then Enter.
    let walk = |to: &str| {
        for _ in 0..60 {
            if focused() == to {
                return;
            }
            browser.press("\u{e004}");
        }
        panic!("{to} is not reached by Tab");
    };
    walk("new");
    browser.press("\u{e007}");
    browser.wait("textarea[name=description]");
    walk("description");
    browser.press("say typed");
    walk("start");
    browser.press("\u{e007}");
    browser.wait("[data-task][data-status=completed]");
    visit.heard("typed");
    visit.assert_quiet();
}
