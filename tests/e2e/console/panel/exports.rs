//! Files of a task, what becomes of them outside, and the history of that.

use super::*;

#[test]
fn files_are_listed_looked_at_and_hidden_again() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    visit.enter(&daemon);
    let id = visit.task("write notes/short.txt 1234567");
    let dir = site.root().join(&id);
    files::write(dir.join("long.txt"), "0123456789abcde\n".repeat(3000));
    visit.go(&format!("tasks/{id}/files"));
    let row = |path: &str| format!("[data-file='{path}']");
    browser.says(
        &format!("{} .kind", row("notes/short.txt")),
        &format!("{} · 7 B", visit.word("files.type.file")),
    );
    browser.says(&format!("{} .kind", row("notes")), &visit.word("files.type.directory"));
    assert_eq!(browser.count(&format!("{} input[type=checkbox]", row("notes"))), 1);
    assert_eq!(browser.count(&format!("{} [data-action=preview]", row("notes"))), 0, "it is a directory");
    let look = |path: &str| browser.click(&format!("{} [data-action=preview]", row(path)));
    look("notes/short.txt");
    browser.says("[data-preview='notes/short.txt']", "1234567");
    assert_eq!(browser.text("[data-testid=preview-size]"), "7 B");
    assert_eq!(browser.count("[data-testid=cut]"), 0);
    look("notes/short.txt");
    browser.gone("[data-preview]");
    look("long.txt");
    browser.says("[data-preview='long.txt']", "0123456789abcde");
    browser.says("[data-testid=preview-size]", "46.9 KiB");
    browser.wait("[data-testid=cut]");
    let shown = browser.text("[data-preview='long.txt'] pre").len();
    assert!((1000..48_000).contains(&shown), "{shown} of 48000 characters");
    visit.assert_quiet();
}

#[test]
fn an_export_waits_for_the_turn_s_end_and_for_a_second_look() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    visit.enter(&daemon);
    let id = visit.task("write a.txt one\nwrite b.txt two\nwrite c.txt three");
    let out = site.outside();
    files::mkdir(site.path("outside/inner"));
    fs::write(site.path("outside/inner/a.txt"), "was there").unwrap();
    visit.go(&format!("tasks/{id}"));
    browser.fill("textarea[name=followup]", "hold");
    browser.keys("textarea[name=followup]", "\u{e007}");
    browser.wait("article[data-status=running]");
    browser.click("[data-part=files]");
    browser.wait("[data-testid=export-running]");
    assert_eq!(browser.count("[data-action=open-export]"), 0);
    browser.click("[data-action=stop]");
    browser.wait("article[data-status=cancelled]");
    browser.wait("[data-action=open-export][aria-disabled=true]");
    browser.click("[data-file='a.txt'] input[type=checkbox]");
    browser.click("[data-file='b.txt'] input[type=checkbox]");
    browser.click("[data-action=open-export]");
    // Where to is typed, or walked to.
    browser.wait("[data-action=export][aria-disabled=true]");
    assert_eq!(browser.count("input[name=remember]"), 0, "it may not be remembered");
    browser.fill("input[name=target]", &out);
    browser.click(".export [data-action=choose-directory]");
    browser.says("[data-testid=directories]", "inner");
    browser.click("[data-testid=directories] .directories button");
    let inner = format!("{out}/inner");
    browser.says("[data-testid=directories] .path", &inner);
    browser.click("[data-action=choose]:not([aria-disabled])");
    browser.until(&format!("document.querySelector('input[name=target]').value === {}", json!(inner)));
    browser.click("[data-action=export]");
    for said in ["2", inner.as_str()] {
        browser.says("[data-confirm=export] [data-testid=plan]", said);
    }
    // Whoever thinks again is where they were.
    browser.click("[data-confirm=export] [data-action=dismiss]");
    browser.until(&format!("document.querySelector('input[name=target]').value === {}", json!(inner)));
    browser.click("[data-action=export]");
    assert_eq!(fs::read_to_string(site.path("outside/inner/a.txt")).unwrap(), "was there");
    browser.click("[data-confirm=export] [data-action=confirm]");
    browser.wait("[data-export][data-status=completed] [data-item=OK]");
    assert_eq!(fs::read_to_string(site.path("outside/inner/a.txt")).unwrap(), "one");
    // What was overwritten comes back.
    browser.click("[data-export] [data-action=undo]");
    browser.says("[data-confirm=undo] [data-testid=plan]", &inner);
    browser.click("[data-confirm=undo] [data-action=confirm]");
    browser.wait("[data-export] [data-testid=undone]");
    assert_eq!(fs::read_to_string(site.path("outside/inner/a.txt")).unwrap(), "was there");
    assert!(!site.path("outside/inner/b.txt").exists());
    visit.assert_quiet();
}

#[test]
fn the_history_shows_each_export_and_undoes_any_that_copied() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    visit.enter(&daemon);
    let id = visit.task("write a.txt one\nwrite b.txt two\nwrite c.txt three");
    let out = site.outside();
    let exported = |entry: &str, mode: &str| {
        let args =
            json!({"taskId": id, "entries": [entry], "targetDir": out, "mode": mode, "conflict": "skip"});
        visit.call("exportEntries", &args)["export"]["id"].as_str().unwrap().to_owned()
    };
    let (older, newer) = (exported("a.txt", "copy"), exported("b.txt", "copy"));
    let skipped = exported("a.txt", "copy");
    let moved = exported("c.txt", "move");
    visit.go("exports");
    let card = |id: &str| format!("[data-export='{id}']");
    browser.wait(&card(&moved));
    assert_eq!(browser.count("[data-export]"), 4);
    for id in [&older, &newer, &skipped, &moved] {
        browser.wait(&format!("{} time", card(id)));
        browser.says(&card(id), "write a.txt one");
        browser.says(&card(id), &out);
    }
    browser.says(&format!("{}[data-mode=copy] .chips", card(&older)), &visit.word("exports.copy"));
    browser.says(&format!("{}[data-mode=move] .chips", card(&moved)), &visit.word("exports.move"));
    let item = format!("{} [data-item=OK]", card(&older));
    browser.says(&item, &visit.word("item.OK"));
    // Below the task's directory it is named by where it lay there; the whole path is its title.
    browser.wait(&format!("{item} .path[title={}]", json!(site.root().join(&id).join("a.txt"))));
    browser.says(&item, &format!("{out}/a.txt"));
    browser.wait(&format!("{} [data-item=SKIP]", card(&skipped)));
    browser.wait(&format!("{} [data-testid=no-undo]", card(&moved)));
    assert_eq!(browser.count(&format!("{} [data-action=undo]", card(&moved))), 0);
    browser.click(&format!("{} [data-action=undo]", card(&older)));
    browser.click("[data-confirm=undo] [data-action=confirm]");
    browser.wait(&format!("{} [data-testid=undone]", card(&older)));
    browser.gone(&format!("{} [data-action=undo]", card(&older)));
    assert_eq!(browser.count("[data-testid=undone]"), 1);
    assert!(!site.path("outside/a.txt").exists() && site.path("outside/b.txt").exists());
    // Something that was changed since stays, and that is said.
    fs::write(site.path("outside/b.txt"), "changed since").unwrap();
    browser.click(&format!("{} [data-action=undo]", card(&newer)));
    browser.click("[data-confirm=undo] [data-action=confirm]");
    browser.says(&format!("{} .notice.warn", card(&newer)), "b.txt");
    assert_eq!(fs::read_to_string(site.path("outside/b.txt")).unwrap(), "changed since");
    visit.assert_quiet();
}

#[test]
fn files_are_moved_skipped_or_renamed_and_a_target_is_remembered_if_it_may_be() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&["allowRememberChoice=true"]);
    visit.enter(&daemon);
    let id = visit.task("write a.txt first\nwrite b.txt second");
    let out = site.outside();
    fs::write(site.path("outside/a.txt"), "was there").unwrap();
    visit.go(&format!("tasks/{id}/files"));
    let export = |file: &str, mode: &str, conflict: &str| {
        browser.click(&format!("[data-file='{file}'] input[type=checkbox]"));
        browser.click("[data-action=open-export]");
        browser.fill("input[name=target]", &out);
        browser.click(&format!("input[name=mode][value={mode}]"));
        browser.click(&format!("input[name=conflict][value={conflict}]"));
        browser.wait("input[name=remember]");
        browser.click("[data-action=export]");
        browser.says("[data-confirm=export]", &out);
        browser.click("[data-confirm=export] [data-action=confirm]");
        browser.wait("[data-export]");
    };
    export("a.txt", "copy", "skip");
    browser.wait("[data-export] [data-item=SKIP]");
    assert_eq!(fs::read_to_string(site.path("outside/a.txt")).unwrap(), "was there");
    visit.go("tasks");
    visit.go(&format!("tasks/{id}/files"));
    browser.wait("[data-file='a.txt']");
    if browser.script("return document.querySelector(\"[data-file='a.txt'] input\").checked") == true {
        browser.click("[data-file='a.txt'] input[type=checkbox]");
    }
    export("b.txt", "move", "rename");
    browser.wait("[data-export] [data-testid=no-undo]");
    assert!(site.path("outside/b.txt").exists() && !site.root().join(&id).join("b.txt").exists());
    visit.assert_quiet();
}
