//! What the contract's first client left: shown as it was, and never run again.

use cofferdam_tests::pod::Sidecar;

use super::*;

const FILE: &str =
    include_str!("../../../../storage/src/pod/legacy/vectors/legacy-isolation-pod-v0.1.3.json");

/// Takes that client's file over, as its host does.
fn take_over(site: &HostSite) {
    let file = site.give("legacy.json", FILE);
    let database = site.path("state/pod/pod.db");
    files::mkdir(database.parent().unwrap());
    files::chmod(site.path("state"), 0o700);
    let mut pod = Sidecar::spawn(&mut site.program(env!("CARGO_BIN_EXE_isolation-pod-core")));
    pod.ok("initialize", json!({"protocol": 1, "dbPath": database, "legacyJsonPath": file}));
    pod.shutdown();
}

/// Which of red, green and amber a text is.
fn colour(browser: &Browser, selector: &str) -> &'static str {
    browser.wait(selector);
    let colour = browser
        .script(&format!("return getComputedStyle(document.querySelector({})).color", json!(selector)));
    let colour = colour.as_str().unwrap();
    let numbers = colour.trim_start_matches("rgb(").trim_end_matches(')').split(", ");
    match numbers.map(|number| number.parse::<u32>().unwrap()).collect::<Vec<_>>()[..] {
        [red, green, blue] if green > red && green > blue => "green",
        [red, green, blue] if red > 2 * green && red > 2 * blue => "red",
        [red, green, blue] if red > green && green > 2 * blue => "amber",
        _ => panic!("{colour}"),
    }
}

#[test]
fn what_the_first_client_left_is_shown_and_each_status_has_its_colour() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    take_over(site);
    let daemon = site.start();
    visit.enter(&daemon);
    for (task, status, tone) in [
        ("pod-mabc001", "completed", "green"),
        ("pod-mabc252", "failed", "red"),
        ("pod-mabc4a3", "timeout", "amber"),
        ("pod-mabc6f4", "cancelled", "amber"),
        ("pod-mabc945", "interrupted", "amber"),
    ] {
        let card = format!("[data-task='{task}'][data-status={status}]");
        assert_eq!(colour(browser, &format!("{card} [data-testid=status]")), tone, "{status}");
        assert_eq!(browser.count(&format!("{card} [data-action=cancel]")), 0);
    }
    visit.go("tasks/pod-mabc001");
    browser.wait("[data-testid=chips] [data-mode=workspace-write]");
    assert_eq!(colour(browser, "[data-testid=chips] [data-probe=denied]"), "green");
    browser.click("[data-testid=about] summary");
    browser.says("[data-testid=context-note]", "7 条上下文");
    browser.says("[data-testid=allowed]", "pwsh");
    browser.says("[data-testid=available]", "todo_write");
    browser.says("[data-testid=refused]", "todo_write");
    browser.wait("details[data-entry-kind=told]:not([open])");
    for kind in ["user", "assistant", "tool", "turn"] {
        browser.wait(&format!("[data-entry-kind={kind}]"));
    }
    assert_eq!(browser.count("textarea[name=followup]"), 0, "it goes on no more");
    visit.go("tasks/pod-mabc4a3");
    browser.wait("details[data-entry-kind=thinking]:not([open])");
    visit.go("tasks/pod-mabd4d10");
    browser.click("[data-testid=about] summary");
    browser.says("[data-testid=setup-note]", "preset 挂载失败");
    assert_eq!(colour(browser, "[data-testid=chips] [data-probe=failed]"), "red");
    visit.go("tasks/pod-mabd7211");
    assert_eq!(colour(browser, "[data-testid=chips] [data-probe=skipped-no-parent]"), "amber");
    visit.go("exports");
    browser.wait("[data-export=exp-mfe0b1] [data-testid=undone]");
    browser.wait("[data-export=exp-mfe162][data-mode=copy] [data-item=SKIP]");
    browser.wait("[data-export=exp-mfe162] [data-action=undo]");
    browser.wait("[data-export=exp-mfe2c4][data-mode=move] [data-testid=no-undo]");
    browser.says("[data-export=exp-mfe2c4] [data-item=FAIL]", "locked.xlsx");
    // Its preset is not there, and is chosen until another one is.
    visit.go("settings");
    browser.until(
        "document.querySelector('select[name=presetId] option[value=standard][data-broken]')?.selected",
    );
    visit.assert_quiet();
}
