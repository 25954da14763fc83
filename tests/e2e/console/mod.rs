//! The console in a real browser. Skipped, with a text, where there is none.

mod address;
mod hostile;
mod ladder;
mod looks;
mod panel;
mod pictures;
mod steady;
mod story;

use std::path::{Path, PathBuf};

use cofferdam_tests::browser::Browser;
use cofferdam_tests::host::HostSite;
use cofferdam_tests::site::Daemon;
use serde_json::{Value, json};

/// A place with a console, and a browser.
struct Visit {
    site: HostSite,
    browser: Browser,
}

impl Visit {
    /// `None` where there is no browser.
    fn new() -> Option<Self> {
        let browser = Browser::start()?;
        let site = HostSite::new(super::programs(), None).with_http();
        Some(Self { site, browser })
    }

    /// Goes in by the link that the daemon prints, and returns it without its code.
    #[track_caller]
    fn enter(&self, daemon: &Daemon) -> String {
        let link = link(daemon);
        self.browser.open(&link);
        self.browser.wait("[data-link=live]");
        link.split_once("login").unwrap().0.to_owned()
    }

    /// Goes to a page.
    #[track_caller]
    fn go(&self, page: &str) {
        self.browser.script(&format!("location.hash = {}", json!(format!("#/{page}"))));
        let section = page.split('/').next().unwrap();
        let shown = if section == "tasks" && page != "tasks" { "task" } else { section };
        self.browser.wait(&format!("main[data-page={shown}] h1, main[data-page={shown}] h2"));
    }

    /// Has the page ask for its state anew.
    #[track_caller]
    fn refresh(&self) {
        self.browser.script_async(&format!("const {{refresh}} = {}; await refresh();", module("live.js")));
    }

    /// What the pages call something, in English.
    #[track_caller]
    fn word(&self, key: &str) -> String {
        let words = format!(
            "const {{dictionaries}} = {}; return dictionaries.en[{}];",
            module("i18n/all.js"),
            json!(key)
        );
        self.browser.script_async(&words).as_str().unwrap_or_else(|| panic!("no text {key}")).to_owned()
    }

    /// Asks a method of the contract, as the page does.
    #[track_caller]
    fn call(&self, method: &str, args: &Value) -> Value {
        let body = json!({"method": method, "args": args}).to_string();
        self.browser.script_async(&format!(
            "const answer = await fetch('/isolation-pod/api', {{method: 'POST', body: {}, headers: {{
                 'x-ipp-token': (await (await fetch('/isolation-pod/bootstrap')).json()).token}}}});
             return await answer.json();",
            json!(body)
        ))
    }

    /// Waits until a task's agent has said something with this text in it.
    #[track_caller]
    fn heard(&self, text: &str) {
        self.browser.until(&format!(
            "[...document.querySelectorAll('[data-entry-kind=assistant]')].some((of) => of.innerText.includes({}))",
            json!(text)
        ));
    }

    /// Starts a task of the scripted agent, and waits for its end; returns its id.
    #[track_caller]
    fn task(&self, script: &str) -> String {
        self.site.ok(&["task", "run", script, "--wait"]);
        self.site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned()
    }

    /// Nothing was said on the browser's console, and no policy was violated.
    #[track_caller]
    fn assert_quiet(&self) {
        assert_eq!(self.browser.complaints(), Vec::<String>::new());
    }
}

/// The link that the daemon printed.
#[track_caller]
fn link(daemon: &Daemon) -> String {
    let line = daemon.line();
    line.strip_prefix("console: ").unwrap_or_else(|| panic!("{line}")).to_owned()
}

/// An expression for one of the page's own modules.
fn module(name: &str) -> String {
    format!(
        "await import(document.querySelector('script[type=module]').src.replace('main.js', {}))",
        json!(name)
    )
}

/// Where pictures go: they are for the README, and for whoever looks into a failure.
fn pictures() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("console")
}
