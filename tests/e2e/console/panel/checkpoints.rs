//! A directory's checkpoints: comparing, removing and bringing back, and taking a roll back back.

use super::*;

#[test]
fn two_checkpoints_are_compared_and_one_that_was_removed_comes_back() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    let project = site.path("project");
    let checkpoint = |content: &str, name: &str| {
        files::write(project.join("a"), content);
        site.ok(&["ckpt", "checkpoint", "-w", project.to_str().unwrap(), "-i", name, "--pin"]);
    };
    checkpoint("1\n", "one");
    checkpoint("1\n2\n", "two");
    checkpoint("1\n2\n3\n", "three");
    visit.enter(&daemon);
    visit.go("checkpoints");
    browser.click("[data-workspace] [data-action=view]");
    browser.wait("[data-snapshot=one]");
    assert_eq!(
        browser.script(
            "return [...document.querySelectorAll('[data-snapshot]')].map((of) => of.dataset.snapshot)"
        ),
        json!(["three", "two", "one"])
    );
    browser.wait("[data-testid=since]");
    browser.choose("select[name=from]", "one");
    browser.choose("select[name=to]", "two");
    browser.click("[data-action=compare]");
    browser.wait("[data-change=a][data-kind=modified]");
    browser.wait("[data-testid=sum]");
    browser.click("[data-change=a] [data-action=content]");
    browser.says("[data-hunks] .line.plus", "+ 2");
    assert_eq!(browser.count("[data-hunks] .line.plus"), 1);
    browser.script("history.back()");
    browser.click("[data-snapshot=two] [data-action=delete]");
    browser.click("[data-confirm=delete] [data-action=dismiss]");
    browser.gone("[data-confirm]");
    browser.click("[data-snapshot=two] [data-action=delete]");
    browser.click("[data-confirm=delete] [data-action=confirm]");
    browser.gone("[data-snapshot=two]");
    browser.click("[data-testid=trash] summary");
    browser.says("[data-testid=trash] [data-trashed]", "two");
    browser.click("[data-trashed] [data-action=restore]");
    browser.wait("[data-snapshot=two]");
    browser.gone("[data-trashed]");
    visit.assert_quiet();
}

#[test]
fn where_nothing_was_rolled_back_nothing_is_offered_to_be_taken_back() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    let project = site.path("project");
    files::write(project.join("a"), "a\n");
    visit.enter(&daemon);
    site.ok(&["ckpt", "checkpoint", "-w", project.to_str().unwrap(), "-i", "one"]);
    visit.go("checkpoints");
    browser.click("[data-workspace] [data-action=view]");
    browser.wait("[data-snapshot=one]");
    browser.wait("[data-testid=since]");
    assert_eq!(browser.count("[data-action^=undo]"), 0);
    visit.assert_quiet();
    // Somebody else does it, and the page shows it by itself.
    files::write(project.join("a"), "b\n");
    site.ok(&["ckpt", "rollback", "-w", project.to_str().unwrap(), "-s", "one"]);
    browser.click("[data-stand=rolled] [data-action=undo-rollback]");
    browser.says("[data-confirm=undo-rollback] [data-testid=plan]", "to one,");
    browser.click("[data-confirm=undo-rollback] [data-action=confirm]:not([aria-disabled])");
    browser.gone("[data-confirm]");
    assert_eq!(fs::read_to_string(project.join("a")).unwrap(), "b\n");
}
