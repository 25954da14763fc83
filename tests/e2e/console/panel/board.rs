//! The board: cards, and removing tasks from it.

use super::*;

#[test]
fn cards_show_how_tasks_stand_and_offer_to_look_to_cancel_and_to_clean_up() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    visit.enter(&daemon);
    browser.wait("main [data-testid=empty]");
    let said = "a long text ".repeat(60);
    let done = visit.task(&format!("say {said}"));
    site.run(&["task", "run", &format!("end error {said}"), "--wait"]);
    let failed = site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned();
    let held = site.task("say I wait\nhold");
    let card = |id: &str| format!("[data-task='{id}']");
    browser.wait(&format!("{}[data-status=running]", card(&held)));
    for (id, status, tone) in [(&done, "completed", "good"), (&failed, "failed", "bad")] {
        browser.wait(&format!("{}[data-status={status}] .chip.{tone}", card(id)));
        assert_eq!(browser.count(&format!("{} [data-action=cancel]", card(id))), 0);
        assert_eq!(browser.count(&format!("{} [data-action=cleanup]", card(id))), 1);
        assert_eq!(browser.count(&format!("{} time", card(id))), 1);
        let took = browser.text(&format!("{} [data-testid=took]", card(id)));
        assert!(took.starts_with(|digit: char| digit.is_ascii_digit()), "{took}");
    }
    // So many characters, and a mark that there were more.
    for (id, what, most) in [(&done, "said", 240), (&failed, "error", 160)] {
        let shown = browser.text(&format!("{} [data-testid={what}] bdi", card(id)));
        assert_eq!(shown.chars().count(), most + 1, "{shown}");
        assert!(shown.contains("a long text a long text") && shown.ends_with('…'), "{shown}");
    }
    assert_eq!(browser.count(&format!("{} [data-testid=error]", card(&done))), 0);
    browser.wait(&format!("{} [data-testid=took]", card(&held)));
    browser.click(&format!("{} [data-action=view]", card(&done)));
    browser.wait(&format!("article[data-task='{done}']"));
    visit.go("tasks");
    browser.click(&format!("{} [data-action=cancel]", card(&held)));
    browser.wait(&format!("{}[data-status=cancelled] .chip.warn", card(&held)));
    browser.click(&format!("{} [data-action=cleanup]", card(&held)));
    browser.says("[data-confirm=cleanup] [data-testid=plan]", &held);
    browser.click("[data-confirm=cleanup] [data-action=dismiss]");
    browser.gone("[data-confirm]");
    browser.wait(&card(&held));
    browser.click(&format!("{} [data-action=cleanup]", card(&held)));
    browser.click("[data-confirm=cleanup] [data-action=confirm]:not([aria-disabled])");
    browser.gone(&card(&held));
    assert!(!site.root().join(&held).exists());
    visit.assert_quiet();
}

#[test]
fn tasks_that_share_a_directory_say_what_can_be_done() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    visit.enter(&daemon);
    let done = visit.task("say hello");
    browser.wait(&format!("[data-task='{done}'][data-status=completed]"));
    // Below the directory of the first.
    let inside = json!({"mainSessionId": "", "description": "hold", "subdir": done});
    let held = visit.call("startTask", &inside)["taskId"].as_str().unwrap().to_owned();
    browser.wait(&format!("[data-task='{held}'][data-status=running]"));
    browser.click(&format!("[data-task='{done}'] [data-action=cleanup]"));
    browser.wait(&format!("[data-testid=shared] [data-shared='{held}']"));
    browser.wait("[data-confirm=cleanup] [data-action=confirm][aria-disabled=true]");
    browser.click("[data-confirm=cleanup] [data-action=dismiss]");
    browser.click("[data-action=bulk-cleanup]");
    browser.wait(&format!("[data-confirm=bulk-cleanup] [data-plan='{done}']"));
    browser.click("input[name=bulk-files]");
    browser.click("[data-confirm=bulk-cleanup] [data-action=confirm]");
    browser.says(&format!("[data-testid=bulk-failed] [data-failed='{done}']"), "TASK_BUSY");
    browser.click("[data-testid=bulk-failed] [data-action=dismiss]");
    browser.gone("dialog");
    // Both go together, although one still runs.
    browser.click(&format!("[data-task='{done}'] [data-action=cleanup]"));
    browser.click("[data-confirm=cleanup] input[name=together]");
    browser.says("[data-confirm=cleanup] [data-testid=plan]", "has not ended");
    browser.click("[data-confirm=cleanup] [data-action=confirm]:not([aria-disabled])");
    browser.gone("[data-task]");
    assert!(!site.root().join(&done).exists());
    visit.assert_quiet();
}

#[test]
fn many_tasks_are_removed_at_once_and_what_goes_is_named_before() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    visit.enter(&daemon);
    let done: Vec<_> = (0..2).map(|n| visit.task(&format!("write a.txt {n}"))).collect();
    site.run(&["task", "run", "end error it went wrong", "--wait"]);
    let failed = site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned();
    let held = site.task("hold");
    browser.wait(&format!("[data-task='{held}'][data-status=running]"));
    browser.click("[data-action=bulk-cleanup]");
    browser.wait("[data-confirm=bulk-cleanup] [data-plan]");
    assert_eq!(browser.count("[data-plan]"), 2, "those that are completed");
    browser.choose("select[name=bulk-older]", "day");
    browser.wait("[data-confirm=bulk-cleanup] [data-action=confirm][aria-disabled=true]");
    browser.choose("select[name=bulk-older]", "any");
    browser.click("input[name=bulk-status][value=failed]");
    browser.wait(&format!("[data-plan='{failed}']"));
    browser.click("input[name=bulk-status][value=completed]");
    browser.gone(&format!("[data-plan='{}']", done[0]));
    browser.click("[data-confirm=bulk-cleanup] [data-action=confirm]");
    browser.gone(&format!("[data-task='{failed}']"));
    browser.gone("[data-confirm]");
    assert!(site.root().join(&failed).is_dir(), "files were not asked for");
    browser.click("[data-action=bulk-cleanup]");
    browser.click("input[name=bulk-files]");
    browser.click("[data-confirm=bulk-cleanup] [data-action=confirm]");
    browser.gone("[data-confirm]");
    for id in &done {
        browser.gone(&format!("[data-task='{id}']"));
        assert!(!site.root().join(id).exists());
    }
    browser.wait(&format!("[data-task='{held}'][data-status=running]"));
    visit.assert_quiet();
}
