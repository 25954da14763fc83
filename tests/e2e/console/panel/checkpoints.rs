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
    browser.wait("[data-confirm=undo-rollback] [data-action=confirm]:not([aria-disabled])");
    // And once more, while this asks: what was shown is not the newest, and nothing else is taken back in its place.
    files::write(project.join("a"), "c\n");
    site.ok(&["ckpt", "rollback", "-w", project.to_str().unwrap(), "-s", "one"]);
    browser.click("[data-confirm=undo-rollback] [data-action=confirm]");
    browser.wait("[data-confirm=undo-rollback] [data-code=ConfirmationRequired]");
    assert_eq!(fs::read_to_string(project.join("a")).unwrap(), "a\n");
    browser.click("[data-confirm=undo-rollback] [data-action=confirm]:not([aria-disabled])");
    browser.gone("[data-confirm]");
    assert_eq!(fs::read_to_string(project.join("a")).unwrap(), "c\n");
}

#[test]
fn a_roll_back_of_before_a_restart_is_shown_and_taken_back() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    let project = site.path("project");
    files::write(project.join("a"), "a\n");
    site.ok(&["ckpt", "checkpoint", "-w", project.to_str().unwrap(), "-i", "one"]);
    files::write(project.join("a"), "b\n");
    site.ok(&["ckpt", "rollback", "-w", project.to_str().unwrap(), "-s", "one"]);
    daemon.stop();
    let daemon = site.start();
    visit.enter(&daemon);
    visit.go("checkpoints");
    browser.click("[data-workspace] [data-action=view]");
    browser.click("[data-stand=rolled] [data-action=undo-rollback]");
    browser.says("[data-confirm=undo-rollback] [data-testid=plan]", "one");
    browser.click("[data-confirm=undo-rollback] [data-action=confirm]:not([aria-disabled])");
    browser.gone("[data-confirm]");
    assert_eq!(fs::read_to_string(project.join("a")).unwrap(), "b\n");
    visit.assert_quiet();
}

#[test]
fn a_directory_in_the_place_of_another_is_taken_over_with_its_checkpoints() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    let project = site.path("project");
    files::write(project.join("a"), "a\n");
    site.ok(&["ckpt", "checkpoint", "-w", project.to_str().unwrap(), "-i", "one"]);
    files::rename(&project, site.path("aside"));
    files::write(project.join("a"), "another\n");
    visit.enter(&daemon);
    visit.go("checkpoints");
    browser.click("[data-workspace] [data-action=view]");
    browser.says("[role=alert][data-code=InvalidPath]", "no longer the directory");
    browser.click("[data-action=init]");
    browser.gone("[role=alert]");
    browser.click("[data-snapshot=one] [data-action=rollback]");
    browser.click("[data-confirm=rollback] [data-action=confirm]:not([aria-disabled])");
    browser.gone("[data-confirm]");
    assert_eq!(fs::read_to_string(project.join("a")).unwrap(), "a\n");
}
