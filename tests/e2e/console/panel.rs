//! What the panel of the contract's first client offered, line by line.

use std::fs;

use cofferdam_tests::files;
use cofferdam_tests::program::LineProgram;

use super::*;

/// The next line that a program prints.
fn next(program: &mut LineProgram) -> String {
    String::from_utf8(program.next_line().unwrap()).unwrap()
}

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
        let excerpt = browser.text(&format!("{} .excerpt bdi", card(id)));
        assert!((100..=241).contains(&excerpt.chars().count()), "{excerpt}");
    }
    let failure = browser.text(&format!("{} .excerpt.bad bdi", card(&failed)));
    assert!(failure.chars().count() <= 161, "{failure}");
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
fn a_new_task_needs_a_description_and_a_root() {
    let Some(visit) = Visit::new() else { return };
    let browser = &visit.browser;
    let daemon = visit.site.start();
    visit.enter(&daemon);
    visit.go("new");
    browser.fill("textarea[name=description]", "say hello");
    browser.wait("[data-action=start][aria-disabled=true]");
    let root = format!("sandboxRoot={}", visit.site.root().display());
    visit.site.ok(&["config", "set", &root, "presetId=fake"]);
    browser.wait("[data-action=start]:not([aria-disabled])");
    browser.fill("input[name=subdir]", "../above");
    browser.click("[data-action=start]");
    browser.wait("[role=alert][data-code=BAD_SUBDIR]");
    browser.fill("input[name=subdir]", "below");
    browser.click("[data-action=start]");
    browser.wait("main[data-page=task] [data-status=completed]");
    assert!(visit.site.root().join("below").is_dir());
    visit.assert_quiet();
}

#[test]
fn a_task_s_page_shows_its_sandbox_its_talk_and_its_files_and_takes_more() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&["enableExport=false"]);
    visit.enter(&daemon);
    let id =
        visit.task("tools read,write\nthink about it\ntool read a file\nsay hello\nwrite a.txt some text");
    visit.go(&format!("tasks/{id}"));
    browser.wait("[data-testid=chips] .chip");
    browser.says("[data-testid=task-dir]", site.root().join(&id).to_str().unwrap());
    for kind in ["prompt", "thinking", "tool", "assistant", "turn"] {
        browser.wait(&format!("[data-entry-kind={kind}]"));
    }
    for folded in ["prompt", "thinking"] {
        assert_eq!(browser.count(&format!("details[data-entry-kind={folded}]:not([open])")), 1, "{folded}");
    }
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
    browser.click("[data-action=cleanup-files]");
    browser.click("[data-confirm=cleanup] [data-action=confirm]:not([aria-disabled])");
    browser.gone("[data-file]");
    assert!(site.row(&id)["id"].is_string(), "the record stays");
    browser.click("[data-action=cleanup-all]");
    browser.click("[data-confirm=cleanup] [data-action=confirm]:not([aria-disabled])");
    browser.wait("main[data-page=tasks]");
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

#[test]
fn a_text_goes_back_to_the_main_conversation_once_it_was_looked_at() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    let home = site.path("project");
    files::write(home.join("x"), "");
    let mut attached = site.spawn(&["main", "attach", "main-session-1", "--cwd", home.to_str().unwrap()]);
    assert!(next(&mut attached).contains("Attached"));
    visit.enter(&daemon);
    let id = visit.task("say the conclusion");
    visit.go(&format!("tasks/{id}/return"));
    browser.click("[data-action=return-preview]");
    browser.until("document.querySelector('textarea[name=return-text]')?.value.includes('the conclusion')");
    browser.fill("textarea[name=return-text]", "what I say about it");
    browser.click("[data-action=return-send]");
    browser.wait("[data-toast=good]");
    while !next(&mut attached).contains("what I say about it") {}
    visit.assert_quiet();
}

#[test]
fn settings_are_kept_and_what_was_adjusted_is_said() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    visit.enter(&daemon);
    visit.go("settings");
    for name in ["allowWrites", "readContext", "enableExport", "allowRememberChoice"] {
        browser.wait(&format!("input[name={name}]"));
    }
    assert_eq!(browser.count("select[name=presetId] option[value=fake-broken]"), 1);
    browser.fill("input[name=timeoutSeconds]", "7");
    browser.fill("input[name=maxConcurrent]", "4");
    browser.click("input[name=allowRememberChoice]");
    browser.click("[data-action=save]");
    browser.wait("[data-testid=messages]");
    browser.until("document.querySelector('input[name=timeoutSeconds]').value === '30'");
    let config = site.json(&["config", "get"]);
    assert_eq!(
        (&config["timeoutMs"], &config["maxConcurrent"], &config["allowRememberChoice"]),
        (&json!(30_000), &json!(4), &json!(true))
    );
    visit.assert_quiet();
}

#[test]
fn a_root_inside_the_main_conversation_s_directory_is_warned_of() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    let here = site.path("");
    let mut attached = site.spawn(&["main", "attach", "main-session-2", "--cwd", here.to_str().unwrap()]);
    assert!(next(&mut attached).contains("Attached"));
    visit.enter(&daemon);
    browser.wait("[data-root=inside]");
    browser.says("header", "main-session-2");
    visit.assert_quiet();
}

#[test]
fn a_dialog_stays_until_what_it_does_is_done() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    visit.enter(&daemon);
    let id = visit.task("say hello");
    browser.script(
        "const real = globalThis.fetch;
         globalThis.fetch = async (...rest) => {
             const answer = await real(...rest);
             if (!String(rest[1]?.body).includes('\"cleanup\"')) return answer;
             return new Promise((settle) => { globalThis.goOn = () => settle(answer); });
         };",
    );
    browser.click(&format!("[data-task='{id}'] [data-action=cleanup]"));
    browser.click("[data-confirm=cleanup] [data-action=confirm]:not([aria-disabled])");
    browser.until("globalThis.goOn");
    browser.wait("[data-confirm=cleanup] [data-action=dismiss][aria-disabled=true]");
    // Browsers close a dialog by themselves at a second Escape.
    browser.press("\u{e00c}\u{e00c}\u{e00c}");
    browser.click("[data-confirm=cleanup] [data-action=dismiss]");
    browser.wait("dialog[open][data-confirm=cleanup] [aria-busy=true]");
    browser.script("globalThis.goOn()");
    browser.gone("[data-confirm]");
    browser.wait("[data-toast=good]");
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
    browser.click("[data-confirm=cleanup] [data-action=confirm]:not([aria-disabled])");
    browser.says("[data-confirm=cleanup] [data-code=TASK_BUSY]", "share the directory");
    browser.click("[data-confirm=cleanup] [data-action=dismiss]:not([aria-disabled])");
    browser.click("[data-action=bulk-cleanup]");
    browser.wait(&format!("[data-confirm=bulk-cleanup] [data-plan='{done}']"));
    browser.click("input[name=bulk-files]");
    browser.click("[data-confirm=bulk-cleanup] [data-action=confirm]");
    browser.says(&format!("[data-testid=bulk-failed] [data-failed='{done}']"), "TASK_BUSY");
    browser.click("[data-testid=bulk-failed] [data-action=dismiss]");
    browser.gone("dialog");
    browser.click(&format!("[data-task='{held}'] [data-action=cancel]"));
    browser.wait(&format!("[data-task='{held}'][data-status=cancelled]"));
    visit.assert_quiet();
}

#[test]
fn a_directory_that_may_not_be_read_is_not_chosen_and_can_be_left() {
    let Some(visit) = Visit::new() else { return };
    let browser = &visit.browser;
    let daemon = visit.site.start_with(&[]);
    visit.enter(&daemon);
    visit.go("checkpoints");
    browser.script("globalThis.real = globalThis.fetch");
    for (status, code) in [(409, "PermissionDenied"), (403, "Forbidden")] {
        browser.script(&format!(
            "globalThis.fetch = async (...rest) => String(rest[1]?.body).includes('closed')
                 ? new Response(JSON.stringify({{code: '{code}', message: 'closed to you'}}), {{status: {status}}})
                 : real(...rest)"
        ));
        browser.fill("input[name=workspace]", "/closed");
        browser.click("[data-action=choose-directory]");
        browser.says(&format!("[data-testid=directories] [data-code={code}]"), "closed to you");
        browser.wait("[data-action=choose][aria-disabled=true]");
        browser.click("[data-testid=directories] [data-action=up]");
        browser.click("[data-action=choose]:not([aria-disabled])");
        browser.until("document.querySelector('input[name=workspace]').value === '/'");
    }
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
    visit.assert_quiet();
    browser.click("[data-action=undo-any]");
    browser.says("[data-confirm=undo-rollback] [data-testid=plan]", "Nothing was rolled back");
    browser.wait("[data-confirm=undo-rollback] [data-action=confirm][aria-disabled=true]");
    browser.click("[data-confirm=undo-rollback] [data-action=dismiss]");
    // Somebody else does.
    files::write(project.join("a"), "b\n");
    site.ok(&["ckpt", "rollback", "-w", project.to_str().unwrap(), "-s", "one"]);
    browser.click("[data-action=undo-any]");
    browser.says("[data-confirm=undo-rollback] [data-testid=plan]", "to one,");
    browser.click("[data-confirm=undo-rollback] [data-action=confirm]:not([aria-disabled])");
    browser.gone("[data-confirm]");
    assert_eq!(fs::read_to_string(project.join("a")).unwrap(), "b\n");
}
