//! The form for a new task.

use super::*;

#[test]
fn a_new_task_needs_a_description_and_a_root() {
    let Some(visit) = Visit::new() else { return };
    let browser = &visit.browser;
    let daemon = visit.site.start();
    visit.enter(&daemon);
    visit.go("new");
    browser.fill("textarea[name=description]", "say hello");
    browser.wait("[data-action=start][aria-disabled=true]");
    browser.click("#why-not a");
    browser.wait("main[data-page=settings]");
    visit.go("new");
    let root = format!("sandboxRoot={}", visit.site.root().display());
    visit.site.ok(&["config", "set", &root, "presetId=fake"]);
    browser.wait("[data-action=start]:not([aria-disabled])");
    browser.fill("textarea[name=description]", " ");
    browser.wait("textarea[required][name=description]");
    browser.wait("[data-action=start][aria-disabled=true]");
    browser.until("document.getElementById('why-not').innerText.trim()");
    browser.fill("textarea[name=description]", "say hello\u{e008}\u{e007}\u{e000}write a.txt some text");
    browser.fill("input[name=subdir]", "../above");
    browser.click("[data-action=start]");
    browser.wait("[role=alert][data-code=BAD_SUBDIR]");
    browser.fill("input[name=subdir]", "below");
    browser.click("[data-action=start]");
    browser.wait("main[data-page=task] [data-status=completed]");
    // Its files are listed: one there is.
    browser.says("[data-part=files]", "1");
    assert!(visit.site.root().join("below").is_dir());
    visit.assert_quiet();
}
