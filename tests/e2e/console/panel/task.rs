//! A task's page: how it stands, its conversation, and telling the main conversation of it.

use cofferdam_tests::session::{directory_name, envelope, id, put};

use super::*;

#[test]
fn a_task_s_page_shows_its_sandbox_its_talk_and_its_files_and_takes_more() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&["enableExport=false"]);
    visit.enter(&daemon);
    let id =
        visit.task("tools read,write\nthink about it\ntool read a file\nsay hello\nwrite a.txt some text");
    visit.go(&format!("tasks/{id}"));
    for chip in ["[data-testid=status].good", "[data-mode=workspace-write]", "[data-probe=denied].good"] {
        browser.wait(&format!("[data-testid=chips] {chip}"));
    }
    // The rest is folded.
    browser.click("[data-testid=about] summary");
    browser.says("[data-testid=sandbox-note]", &visit.word("sandbox.denied"));
    for tool in ["read", "write", "edit", "glob", "grep"] {
        browser.says("[data-testid=allowed]", tool);
    }
    assert_eq!(
        browser.text("[data-testid=available]").split_whitespace().collect::<Vec<_>>(),
        ["read", "write"]
    );
    browser.says("[data-testid=missing]", "edit");
    browser.says("[data-testid=notes]", "started from no main session");
    browser.says("[data-testid=task-dir]", site.root().join(&id).to_str().unwrap());
    for kind in ["prompt", "thinking", "tool", "assistant", "turn"] {
        browser.wait(&format!("[data-entry-kind={kind}]"));
    }
    assert_eq!(browser.count("details[data-entry-kind=thinking]:not([open])"), 1);
    browser.says("[data-entry-kind=prompt]", &visit.word("talk.user"));
    // Shift and Enter make a line, Enter alone sends.
    browser.fill("textarea[name=followup]", "say one\u{e008}\u{e007}\u{e000}say two");
    assert_eq!(browser.count("[data-entry-kind=user]"), 0);
    browser.keys("textarea[name=followup]", "\u{e007}");
    visit.heard("two");
    // Each turn begins and ends; the page says of both.
    browser.until("document.querySelectorAll('[data-entry-kind=turn]').length === 4");
    browser.wait("[data-entry-kind=user]");
    browser.wait("[data-task][data-status=completed]");
    browser.fill("textarea[name=followup]", "hold");
    browser.keys("textarea[name=followup]", "\u{e007}");
    browser.click("[data-action=stop]");
    browser.wait("[data-task][data-status=cancelled]");
    browser.click("[data-part=files]");
    browser.wait("[data-file='a.txt'] input[type=checkbox]");
    browser.wait("[data-testid=export-off]");
    browser.click("[data-action=cleanup]");
    browser.click("[data-confirm=cleanup] input[name=scope][value=files]");
    browser.click("[data-confirm=cleanup] [data-action=confirm]:not([aria-disabled])");
    browser.gone("[data-file]");
    assert!(site.row(&id)["id"].is_string(), "the record stays");
    browser.click("[data-action=cleanup]");
    browser.click("[data-confirm=cleanup] [data-action=confirm]:not([aria-disabled])");
    browser.wait("main[data-page=tasks]");
    visit.assert_quiet();
}

#[test]
fn a_text_goes_back_to_the_main_conversation_once_it_was_looked_at() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    let home = site.path("project");
    files::write(home.join("x"), "");
    let mut client = attached(site, "main-session-1", &home);
    visit.enter(&daemon);
    let id = visit.task("say the conclusion\nwrite notes/plan.md what is in the file");
    visit.go(&format!("tasks/{id}/return"));
    browser.until("document.querySelector(\"datalist option[value='notes/plan.md']\")");
    browser.fill("input[name=return-file]", "notes/plan.md");
    browser.click("[data-action=return-preview]");
    browser
        .until("document.querySelector('textarea[name=return-text]')?.value.includes('what is in the file')");
    browser.until("document.querySelector('textarea[name=return-text]')?.value.includes('the conclusion')");
    browser.fill("textarea[name=return-text]", "what I say about it");
    browser.click("[data-action=return-send]");
    browser.wait("[data-toast=good]");
    while !next(&mut client).contains("what I say about it") {}
    visit.assert_quiet();
}

#[test]
fn what_went_wrong_and_what_was_read_of_the_main_conversation_are_on_a_task_s_page() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    let workspace = site.site().directory("project");
    let store = site.path("home/.copilot-shell/cosh-core/sessions").join(directory_name(&workspace));
    put(&store, &id(1), envelope(&id(1), &workspace), 1);
    let _client = attached(site, &id(1).to_string(), &workspace);
    visit.enter(&daemon);
    visit.refresh();
    visit.go("new");
    browser.fill("textarea[name=description]", "end error the disk is full");
    browser.click("[data-action=start]");
    browser.wait("article[data-task][data-status=failed]");
    browser.says("[data-testid=task-error]", "the disk is full");
    browser.click("[data-testid=about] summary");
    browser.says("[data-testid=notes]", "the last 2 messages of the main conversation");
    visit.assert_quiet();
}
