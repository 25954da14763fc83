//! Dialogs: what asks before something is done, and what chooses a directory.

use super::*;

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
