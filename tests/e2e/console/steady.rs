//! What a page keeps right while things go on elsewhere: the core restarted, the page unseen, an address that is nonsense, a row
//! that is removed, an answer that takes its time.

use super::panel::{alter, attached};
use super::*;

#[test]
fn what_is_said_after_the_core_was_restarted_is_shown_in_a_conversation_that_is_open() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    visit.enter(&daemon);
    let id = visit.task("say one\nthink about it\nthink again\nsay two\ntool read a file\nsay three");
    visit.go(&format!("tasks/{id}"));
    visit.heard("three");
    assert_eq!(visit.call("restartCore", &json!({}))["core"]["status"], "ready");
    // Its agent was let go: it is taken up again, and counts what is said anew.
    site.until(&id, |row| row["live"] == false);
    site.ok(&["task", "resume", &id]);
    for said in ["four", "five"] {
        browser.wait("textarea[name=followup]");
        browser.fill("textarea[name=followup]", &format!("say {said}"));
        browser.click("[data-action=send]:not([aria-disabled])");
        visit.heard(said);
        browser.wait("[data-task][data-status=completed]");
    }
    let order =
        "[...document.querySelectorAll('[data-entry-kind=assistant]')].map((of) => of.innerText).join(' ')";
    let order = browser.script(&format!("return {order}"));
    let at: Vec<_> = ["one", "three", "four", "five"].map(|said| order.as_str().unwrap().find(said)).into();
    assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{order}");
    visit.assert_quiet();
}

#[test]
fn a_page_that_nobody_sees_leaves_its_connection_to_others() {
    let Some(visit) = Visit::new() else { return };
    let browser = &visit.browser;
    let daemon = visit.site.start_with(&[]);
    let unseen = "globalThis.seen = false;
        Object.defineProperty(Document.prototype, 'hidden', {get: () => !globalThis.seen});
        globalThis.streams = [];
        globalThis.EventSource = class extends EventSource {
            constructor(...rest) { super(...rest); streams.push(this); }
        };";
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({"source": unseen}));
    browser.open(&link(&daemon));
    browser.wait("nav [data-nav=tasks]");
    assert_eq!(browser.script("return streams.length"), json!(0), "it is opened behind another");
    let show = |seen: bool| {
        browser.script(&format!(
            "globalThis.seen = {seen}; document.dispatchEvent(new Event('visibilitychange'))"
        ));
    };
    show(true);
    browser.wait("[data-link=live]");
    show(false);
    browser.until("streams.every((of) => of.readyState === EventSource.CLOSED)");
    browser.wait("[data-link=connecting]");
    show(true);
    browser.wait("[data-link=live]");
    assert_eq!(browser.script("return streams.length"), json!(2));
    visit.assert_quiet();
}

#[test]
fn addresses_and_names_that_are_javascript_s_own_are_like_any_others() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    let _clients = ["another-session", "__proto__"].map(|id| attached(site, id, &site.path("home")));
    visit.enter(&daemon);
    let id = visit.task("say hello");
    for nonsense in ["constructor", "__proto__", "toString", "task", "task/x", "hasOwnProperty/x"] {
        browser.script(&format!("location.hash = {}", json!(format!("#/{nonsense}"))));
        browser.says("main [data-testid=empty]", &visit.word("app.notFound"));
        visit.go("tasks");
        browser.wait(&format!("[data-task='{id}']"));
    }
    visit.go(&format!("tasks/{id}/constructor"));
    visit.heard("hello");
    browser.choose("header [data-testid=main-session] select", "__proto__");
    visit.refresh();
    browser.until("document.querySelector('header [data-testid=main-session] select').value === '__proto__'");
    visit.assert_quiet();
    // What a page cannot draw leaves the others.
    alter(browser, "\"listExports\"", "{ok: true, exports: [{}], truncated: false}");
    visit.browser.script("location.hash = '#/exports'");
    browser.wait("main[data-page=exports] [role=alert][data-code=INTERNAL]");
    visit.go("tasks");
    browser.wait(&format!("[data-task='{id}']"));
    assert_ne!(browser.complaints(), Vec::<String>::new(), "it is said on the browser's console");
}

#[test]
fn the_focus_stays_near_when_what_had_it_is_removed() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    visit.enter(&daemon);
    let ids = [visit.task("say one"), visit.task("say two"), site.task("hold")];
    let within = |id: &str| {
        browser
            .until(&format!("document.activeElement.closest('[data-task]')?.dataset.task === {}", json!(id)));
    };
    browser.click(&format!("[data-task='{}'] [data-action=cancel]", ids[2]));
    browser.gone(&format!("[data-task='{}'] [data-action=cancel]", ids[2]));
    within(&ids[2]);
    // Newest first: what comes after it is in its place, and before the last one there is one.
    for (removed, near) in [(1, 0), (0, 2)] {
        browser.click(&format!("[data-task='{}'] [data-action=cleanup]", ids[removed]));
        browser.click("[data-confirm=cleanup] [data-action=confirm]:not([aria-disabled])");
        browser.gone(&format!("[data-task='{}']", ids[removed]));
        within(&ids[near]);
    }
    browser.click(&format!("[data-task='{}'] [data-action=cleanup]", ids[2]));
    browser.click("[data-confirm=cleanup] [data-action=confirm]:not([aria-disabled])");
    browser.wait("main [data-testid=empty]");
    browser.until("document.activeElement.id === 'main'");
    visit.assert_quiet();
}

#[test]
fn what_is_typed_while_an_answer_is_awaited_stays() {
    let Some(visit) = Visit::new() else { return };
    let browser = &visit.browser;
    let daemon = visit.site.start_with(&[]);
    visit.enter(&daemon);
    let id = visit.task("say one");
    visit.go(&format!("tasks/{id}"));
    visit.heard("one");
    browser.script(
        "const real = globalThis.fetch;
         globalThis.fetch = async (...rest) => {
             const answer = await real(...rest);
             if (!String(rest[0]).endsWith('/followUp')) return answer;
             return new Promise((settle) => { globalThis.goOn = () => settle(answer); });
         };",
    );
    browser.fill("textarea[name=followup]", "say two");
    browser.keys("textarea[name=followup]", "\u{e007}");
    browser.until("globalThis.goOn");
    browser.fill("textarea[name=followup]", "say three");
    browser.script("globalThis.goOn()");
    visit.heard("two");
    browser.wait("[data-task][data-status=completed]");
    browser.click("[data-action=send]:not([aria-disabled]):not([aria-busy])");
    visit.heard("three");
    browser.script("globalThis.goOn()");
    browser.until("document.querySelector('textarea[name=followup]').value === ''");
    visit.assert_quiet();
}

#[test]
fn a_page_whose_daemon_was_away_goes_on_by_itself() {
    let Some(visit) = Visit::new() else { return };
    let browser = &visit.browser;
    let daemon = visit.site.start_with(&[]);
    visit.enter(&daemon);
    browser.script(
        "const real = globalThis.fetch;
         globalThis.away = true;
         globalThis.fetch = (...rest) => away && String(rest[1]?.body).includes('\"listExports\"')
             ? Promise.reject(new TypeError('no route')) : real(...rest);",
    );
    visit.go("exports");
    browser.wait("main[data-page=exports] [role=alert][data-code=NETWORK]");
    browser.script("globalThis.away = false");
    browser.wait("main[data-page=exports] [data-testid=empty]");
    browser.gone("[role=alert]");
    visit.assert_quiet();
}

#[test]
fn a_page_that_could_not_be_fetched_comes_by_itself_and_nothing_is_loaded_anew() {
    let Some(visit) = Visit::new() else { return };
    let browser = &visit.browser;
    let daemon = visit.site.start_with(&[]);
    visit.enter(&daemon);
    browser.devtools("Network.enable", &json!({}));
    let block = |urls: Value| browser.devtools("Network.setBlockedURLs", &json!({"urls": urls}));
    block(json!(["*/pages/exports.js*", "*/isolation-pod/status"]));
    browser.script("globalThis.mark = true; location.hash = '#/exports'");
    browser.wait("main[data-page=exports] [role=alert][data-code=NETWORK]");
    block(json!([]));
    browser.wait("main[data-page=exports] [data-testid=empty]");
    browser.gone("[role=alert]");
    assert_eq!(browser.script("return globalThis.mark"), json!(true));
}

#[test]
fn names_that_differ_look_different() {
    let Some(visit) = Visit::new() else { return };
    let browser = &visit.browser;
    let daemon = visit.site.start_with(&[]);
    visit.enter(&daemon);
    let shown = |kind: &str, texts: &[String]| -> Vec<String> {
        let shown = browser.script_async(&format!(
            "const {{{kind}}} = {}; return {}.map((text) => {kind}(text, 500));",
            module("text.js"),
            json!(texts)
        ));
        serde_json::from_value(shown).unwrap()
    };
    // Controls, marks of direction, what joins, varies, fills or is blank, signs of shorthand, music and hieroglyphs, tags.
    let unseen =
        "0-8 b-1f 7f-a0 ad 34f 61c 115f-1160 17b4-17b5 180b-180f 2000-200f 2028-202f 205f-206f 2800 3000 3164
        fe00-fe0f feff ffa0 fff9-fffb 13430-1343f 1bca0-1bca3 1d173-1d17a e0001-e007f e0100-e01ef";
    let hex = |text| u32::from_str_radix(text, 16).unwrap();
    let unseen: Vec<char> = unseen
        .split_whitespace()
        .map(|range| range.split_once('-').unwrap_or((range, range)))
        .flat_map(|(first, last)| (hex(first)..=hex(last)).map(|of| char::from_u32(of).unwrap()))
        .collect();
    let names: Vec<_> = unseen.iter().map(|of| format!("a{of}b")).collect();
    for kind in ["oneLine", "exactLine"] {
        for (of, shown) in unseen.iter().zip(shown(kind, &names)) {
            assert_eq!(shown, format!("a⟨U+{:04X}⟩b", u32::from(*of)), "{kind}");
        }
    }
    let of = |kind: &str, text: &str| shown(kind, &[text.to_owned()]).remove(0);
    assert_eq!(of("oneLine", " a  b\t\r\nc "), "⟨U+0020⟩a  b⟨U+0009⟩⟨U+000D⟩⟨U+000A⟩c⟨U+0020⟩");
    assert_eq!(of("exactLine", "\ta  b \t"), "\ta  b⟨U+0020⟩⟨U+0009⟩");
    assert_eq!(of("exactLine", "a\r"), "a⟨U+000D⟩");
    // Texts keep what they are written with.
    let woven = "نمی\u{200c}خواهم ۝ 👩\u{200d}👧 葛\u{e0100} ᠠ\u{180b}";
    assert_eq!(of("visible", woven), woven);
    assert_eq!(of("visible", "a\r\nb\u{202e}\u{1d173}"), "a\nb⟨U+202E⟩⟨U+1D173⟩");
    assert_eq!(of("folded", "👩\u{200d}👧 葛\u{e0100}"), "👩\u{200d}👧 葛\u{e0100}");
    // Two blanks are two.
    visit.go("new");
    assert_eq!(
        browser.script("return getComputedStyle(document.querySelector('main .path')).whiteSpace"),
        json!("pre-wrap")
    );
    visit.assert_quiet();
}
