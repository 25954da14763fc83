//! How a page comes by its token (spec §9), and what it does when it has none: step by step.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

use super::*;

/// Asks with the page's client; the code of the failure, or `null`.
fn asked(browser: &Browser, options: &str) -> Value {
    browser.script_async(&format!(
        "const {{call}} = {}; return await call('getState', {{}}, {options}).then(() => null, (failure) => failure.code);",
        module("client.js")
    ))
}

/// Has the page's requests for these paths answered so from now on.
fn answer(browser: &Browser, paths: &[&str], with: &str) {
    browser.script(&format!(
        "globalThis.realFetch ??= globalThis.fetch;
         const paths = {}, real = globalThis.realFetch;
         globalThis.fetch = (path, ...rest) => paths.includes(path) ? Promise.resolve({with}) : real(path, ...rest);",
        json!(paths)
    ));
}

const API: &str = "/isolation-pod/api";
const BOOTSTRAP: &str = "/isolation-pod/bootstrap";
const NOTHING: &str = "new Response('nothing here', {status: 404})";

struct Restarted {
    visit: Visit,
    daemon: Daemon,
    port: u16,
}

/// A port that stays free while its daemon is started anew: one that the system gives to nobody who asks for any.
fn own_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Other runs of these tests begin elsewhere.
    let first = 20_000 + (std::process::id() % 500) as u16 * 20;
    let ports = std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::Relaxed));
    ports.take(1000).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

impl Restarted {
    fn new() -> Option<Self> {
        let visit = Visit::new()?;
        let port = own_port();
        let daemon = visit.site.start_at(&format!("127.0.0.1:{port}"));
        let root = format!("sandboxRoot={}", visit.site.root().display());
        visit.site.ok(&["config", "set", &root, "presetId=fake"]);
        visit.enter(&daemon);
        Some(Self { visit, daemon, port })
    }

    /// Another daemon at the same address: the page's token is good no more.
    fn again(self) -> Self {
        let Self { visit, daemon, port } = self;
        daemon.kill();
        let daemon = visit.site.start_at(&format!("127.0.0.1:{port}"));
        Self { visit, daemon, port }
    }
}

#[test]
fn the_row_in_the_page_is_enough() {
    let Some(visit) = Visit::new() else { return };
    let daemon = visit.site.start_with(&[]);
    visit.enter(&daemon);
    let browser = &visit.browser;
    assert_eq!(asked(browser, "{}"), Value::Null);
    let fetched = browser
        .script("return performance.getEntriesByType('resource').map((of) => new URL(of.name).pathname)");
    assert!(!fetched.as_array().unwrap().contains(&json!(BOOTSTRAP)), "{fetched}");
}

#[test]
fn after_a_restart_the_token_comes_from_bootstrap_and_the_page_stays() {
    let Some(place) = Restarted::new() else { return };
    place.visit.browser.script("globalThis.mark = true");
    answer(&place.visit.browser, &["/"], NOTHING);
    let place = place.again();
    let browser = &place.visit.browser;
    assert_eq!(asked(browser, "{}"), Value::Null);
    assert_eq!(browser.script("return globalThis.mark"), json!(true));
}

#[test]
fn without_bootstrap_it_comes_from_the_page_fetched_anew() {
    let Some(place) = Restarted::new() else { return };
    place.visit.browser.script("globalThis.mark = true");
    answer(&place.visit.browser, &[BOOTSTRAP], NOTHING);
    let place = place.again();
    let browser = &place.visit.browser;
    assert_eq!(asked(browser, "{}"), Value::Null);
    assert_eq!(browser.script("return globalThis.mark"), json!(true));
}

#[test]
fn without_either_the_page_is_loaded_once_more_and_not_twice_within_five_seconds() {
    let Some(place) = Restarted::new() else { return };
    // One that reloaded a moment ago, and again and again, does not do so once more: it says what is missing.
    place.visit.browser.script(
        "globalThis.mark = true;
         globalThis.just = setInterval(() => sessionStorage.setItem('cofferdam.reloaded', String(Date.now())), 50);",
    );
    place.visit.browser.until("sessionStorage.getItem('cofferdam.reloaded')");
    answer(&place.visit.browser, &[BOOTSTRAP, "/"], NOTHING);
    let place = place.again();
    let browser = &place.visit.browser;
    assert_eq!(asked(browser, "{}"), json!("TOKEN_MISSING"));
    browser.wait("[role=alert][data-code=TOKEN_MISSING]");
    assert_eq!(browser.script("return globalThis.mark"), json!(true));
    // One that did not, does; then the row is there.
    browser.script(&format!(
        "clearInterval(just); sessionStorage.removeItem('cofferdam.reloaded');
         (async () => {{ const {{call}} = {}; call('getState') }})()",
        module("client.js")
    ));
    browser.until("globalThis.mark === undefined && document.querySelector('[data-link=live]')");
    assert_eq!(asked(browser, "{}"), Value::Null);
    assert_ne!(browser.script("return sessionStorage.getItem('cofferdam.reloaded')"), Value::Null);
}

#[test]
fn each_of_the_five_codes_of_the_transport_has_its_case() {
    let Some(place) = Restarted::new() else { return };
    let browser = &place.visit.browser;
    answer(
        browser,
        &[API],
        "new Response(JSON.stringify({ok: false, code: 'FORBIDDEN', message: 'no'}), {status: 403})",
    );
    assert_eq!(asked(browser, "{}"), json!("TOKEN_STALE"));
    answer(browser, &[API], "new Response('<p>not JSON</p>', {status: 200})");
    assert_eq!(asked(browser, "{}"), json!("INVALID_RESPONSE"));
    answer(browser, &[API], "Promise.reject(new TypeError('no route'))");
    assert_eq!(asked(browser, "{}"), json!("NETWORK"));
    answer(
        browser,
        &[API],
        "new Promise((_, reject) => rest[0].signal.addEventListener('abort', () => reject(rest[0].signal.reason)))",
    );
    assert_eq!(asked(browser, "{patience: 50}"), json!("NETWORK"));
    answer(browser, &[], NOTHING);
    assert_eq!(asked(browser, "{signal: AbortSignal.abort()}"), json!("ABORTED"));
    browser.script(
        "setInterval(() => sessionStorage.setItem('cofferdam.reloaded', String(Date.now())), 50);
         sessionStorage.setItem('cofferdam.reloaded', String(Date.now()))",
    );
    answer(
        browser,
        &[API, BOOTSTRAP, "/"],
        "new Response(JSON.stringify({ok: false, code: 'UNAUTHORIZED', message: 'no'}), {status: 401})",
    );
    assert_eq!(asked(browser, "{}"), json!("TOKEN_MISSING"));
    drop(place.daemon);
}

#[test]
fn a_page_stays_where_it_was_over_a_restart_and_goes_on_telling_news() {
    let Some(place) = Restarted::new() else { return };
    let id = place.visit.task("say before");
    let browser = &place.visit.browser;
    place.visit.go(&format!("tasks/{id}"));
    browser.says("[role=log]", "before");
    browser.script("globalThis.mark = true");
    let Restarted { visit, daemon, port } = place;
    daemon.kill();
    let browser = &visit.browser;
    browser.until("['lost', 'polling'].includes(document.querySelector('[data-link]').dataset.link)");
    let _daemon = visit.site.start_at(&format!("127.0.0.1:{port}"));
    browser.wait("[data-link=live]");
    let other = visit.task("say after");
    visit.go("tasks");
    browser.wait(&format!("[data-task='{other}'][data-status=completed]"));
    browser.wait(&format!("[data-task='{id}'][data-status=completed]"));
    assert_eq!(browser.script("return globalThis.mark"), json!(true), "the page was loaded anew");
    assert_eq!(browser.count("[role=alert]"), 0);
}
