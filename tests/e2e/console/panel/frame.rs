//! What surrounds every page: how the sandbox root stands, the main conversation, messages, errors, and how news come.

use super::*;

#[test]
fn each_section_is_one_step_away_and_says_that_it_is_the_one() {
    let Some(visit) = Visit::new() else { return };
    let browser = &visit.browser;
    let daemon = visit.site.start_with(&[]);
    visit.enter(&daemon);
    for section in ["new", "checkpoints", "sessions", "exports", "settings", "diagnostics", "tasks"] {
        browser.click(&format!("nav [data-nav={section}]"));
        browser.wait(&format!("main[data-page={section}] h1"));
        assert_eq!(browser.count("nav [data-nav][aria-current=page]"), 1);
        browser.wait(&format!("nav [data-nav={section}][aria-current=page]"));
    }
    visit.assert_quiet();
}

#[test]
fn a_banner_says_how_the_sandbox_root_stands() {
    let Some(visit) = Visit::new() else { return };
    let browser = &visit.browser;
    let daemon = visit.site.start();
    visit.enter(&daemon);
    browser.wait("[data-root=none]");
    browser.click("[data-root=none] a");
    browser.wait("main[data-page=settings]");
    alter(
        browser,
        "\"getState\"",
        "{...document, sandbox: {...document.sandbox, set: true, root: '/home/me/pods', exists: true, inTemp: false,
            insideMainCwd: false, ...globalThis.verdict}}",
    );
    for (verdict, shown, warns) in [
        (json!({"exists": false}), "willBeMade", 0),
        (json!({}), "root", 0),
        (json!({"insideMainCwd": true}), "inside", 1),
        (json!({"inTemp": true}), "temp", 1),
    ] {
        browser.script(&format!("globalThis.verdict = {verdict}"));
        visit.refresh();
        browser.says(&format!("[data-root={shown}]"), "/home/me/pods");
        assert_eq!(browser.count("[data-testid=root]"), 1, "{shown}");
        assert_eq!(browser.count("[data-testid=root].warn"), warns, "{shown}");
    }
    visit.assert_quiet();
}

#[test]
fn a_root_inside_the_main_conversation_s_directory_is_warned_of() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    let _client = attached(site, "main-session-2", &site.path(""));
    visit.enter(&daemon);
    browser.wait("[data-root=inside]");
    browser.says("header", "main-session-2");
    visit.assert_quiet();
}

#[test]
fn the_main_session_is_shown_by_16_characters_and_that_there_is_none_is_said() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    visit.enter(&daemon);
    browser.wait("header [data-testid=main-session].none");
    let _one = attached(site, "0123456789abcdefghij", &site.path("home"));
    visit.refresh();
    browser.wait("header [data-testid=main-session]:not(.none)");
    assert_eq!(browser.text("header [data-testid=main-session]"), "0123456789abcdef…");
    // Of two, one is chosen.
    let _other = attached(site, "another-main-session", &site.path("home"));
    visit.refresh();
    browser.choose("header [data-testid=main-session] select", "another-main-session");
    visit.refresh();
    browser.until(
        "document.querySelector('header [data-testid=main-session] select').value === 'another-main-session'",
    );
    visit.assert_quiet();
}

#[test]
fn what_goes_wrong_is_said_with_a_way_out_and_goes_away_once_it_goes_well() {
    let Some(visit) = Visit::new() else { return };
    let browser = &visit.browser;
    let daemon = visit.site.start_with(&[]);
    visit.enter(&daemon);
    alter(browser, "\"getState\"", "{ok: false, code: 'DB_ERROR', message: 'the disk is full'}");
    visit.refresh();
    browser.says("[role=alert][data-code=DB_ERROR]", "the disk is full");
    browser.script("globalThis.mark = true");
    browser.click("[role=alert][data-code=DB_ERROR] button");
    browser.until("globalThis.mark === undefined && document.querySelector('[data-link=live]')");
    browser.gone("[role=alert]");
    // A page has a place of its own for what it asks for, and asks again.
    alter(browser, "\"listExports\"", "{ok: false, code: 'DB_ERROR', message: 'the disk is full'}");
    visit.go("exports");
    browser.says("main[data-page=exports] [role=alert][data-code=DB_ERROR]", "the disk is full");
    browser.script("globalThis.fetch = real");
    browser.click("main[data-page=exports] [role=alert] button");
    browser.wait("main[data-page=exports] [data-testid=empty]");
    browser.gone("[role=alert]");
    visit.assert_quiet();
}

#[test]
fn a_message_stays_for_some_seconds() {
    let Some(visit) = Visit::new() else { return };
    let browser = &visit.browser;
    let daemon = visit.site.start_with(&[]);
    visit.enter(&daemon);
    browser.script(
        "globalThis.said = []; globalThis.left = [];
         new MutationObserver((changes) => {
             for (const {addedNodes, removedNodes} of changes) {
                 for (const [nodes, times] of [[addedNodes, said], [removedNodes, left]]) {
                     if ([...nodes].some((node) => node.dataset?.toast)) times.push(performance.now());
                 }
             }
         }).observe(document.querySelector('.toasts'), {childList: true});",
    );
    let id = visit.task("say hello");
    browser.wait("[role=status] [data-toast=good]");
    browser.says(&format!("[data-task='{id}']"), "hello");
    browser.gone("[data-toast]");
    let stayed = browser.script("return left[0] - said[0]").as_f64().unwrap();
    // A machine that is busy may be late, and never early.
    assert!((4400.0..15_000.0).contains(&stayed), "{stayed} ms");
    visit.assert_quiet();
}

#[test]
fn without_a_stream_of_news_the_page_asks_by_itself_and_has_one_question_out_at_a_time() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    // Whatever page comes counts what it asks.
    let count = "globalThis.asks = {all: 0, now: 0, most: 0};
        const asked = globalThis.fetch;
        globalThis.fetch = async (...rest) => {
            const counts = String(rest[1]?.body).includes('\"getState\"');
            if (counts) { asks.all += 1; asks.now += 1; asks.most = Math.max(asks.most, asks.now); }
            try { return await asked(...rest); } finally { if (counts) asks.now -= 1; }
        };";
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({"source": count}));
    // All the streams that there can be.
    let streams: Vec<_> = (0..64).map(|_| site.events()).collect();
    browser.open(&link(&daemon));
    browser.wait("[data-link=polling]");
    let started = visit.call("startTask", &json!({"mainSessionId": "", "description": "say one"}));
    let task = started["taskId"].as_str().unwrap();
    browser.wait(&format!("[data-task='{task}'][data-status=completed]"));
    // A conversation that is open goes on, too.
    visit.go(&format!("tasks/{task}"));
    visit.heard("one");
    browser.fill("textarea[name=followup]", "say two");
    browser.keys("textarea[name=followup]", "\u{e007}");
    visit.heard("two");
    browser.until("asks.all >= 3");
    assert_eq!(browser.script("return asks.most"), 1);
    drop(streams);
    browser.wait("[data-link=live]");
}
