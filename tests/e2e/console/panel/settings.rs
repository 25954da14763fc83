//! The settings.

use super::*;

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
    // One that cannot be used says so, and why.
    let broken =
        browser.until("document.querySelector('option[value=fake-broken][data-broken]')?.textContent");
    assert_eq!(
        broken,
        visit.word("settings.presetId.broken").replace("{name}", "scripted agent that is broken")
    );
    browser.choose("select[name=presetId]", "fake-broken");
    browser.says("[data-testid=why]", "it is there to show what is broken");
    browser.choose("select[name=presetId]", "fake");
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
fn every_setting_is_changed_kept_and_shown_again() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start();
    visit.enter(&daemon);
    visit.go("settings");
    // Who has no directory in mind gets one offered.
    browser.click("[data-action=suggest]");
    let suggested = site.path("home/pods");
    browser
        .until(&format!("document.querySelector('input[name=sandboxRoot]').value === {}", json!(suggested)));
    for name in ["allowWrites", "readContext", "enableExport", "allowRememberChoice"] {
        browser.click(&format!("input[name={name}]"));
    }
    browser.fill("input[name=timeoutSeconds]", "120");
    browser.fill("input[name=maxConcurrent]", "5");
    browser.choose("select[name=presetId]", "fake");
    browser.click("input[name=tool][value=glob]");
    browser.click("[data-action=save]");
    browser.wait("[data-toast=good]");
    assert_eq!(browser.count("[data-testid=messages]"), 0);
    let config = site.json(&["config", "get"]);
    for (key, value) in [
        ("sandboxRoot", json!(suggested)),
        ("allowWrites", json!(false)),
        ("readContext", json!(false)),
        ("enableExport", json!(false)),
        ("allowRememberChoice", json!(true)),
        ("timeoutMs", json!(120_000)),
        ("maxConcurrent", json!(5)),
        ("presetId", json!("fake")),
    ] {
        assert_eq!(config[key], value, "{key}");
    }
    // Tools that write are allowed for when writing is, and saving forgets none.
    let tools =
        |config: &Value| serde_json::from_value::<Vec<String>>(config["allowedTools"].clone()).unwrap();
    let allowed = tools(&config);
    assert!(!allowed.contains(&"glob".to_owned()) && allowed.contains(&"write".to_owned()), "{allowed:?}");
    browser.script("location.reload()");
    browser.until(
        "document.querySelector('[data-link=live]') && document.querySelector('input[name=timeoutSeconds]')?.value === '120'",
    );
    let shown = browser.script(
        "const value = (name) => document.querySelector(`[name=${name}]`).value;
         const ticked = (name) => document.querySelector(`input[name=${name}]`).checked;
         return [value('sandboxRoot'), value('maxConcurrent'), value('presetId'), ticked('allowWrites'), ticked('readContext'),
             ticked('enableExport'), ticked('allowRememberChoice')]",
    );
    assert_eq!(shown, json!([suggested, "5", "fake", false, false, false, true]));
    let ticked = browser
        .script("return [...document.querySelectorAll('input[name=tool]:checked')].map((of) => of.value)");
    let mut ticked: Vec<String> = serde_json::from_value(ticked).unwrap();
    let mut allowed = allowed;
    ticked.sort();
    allowed.sort();
    assert_eq!(ticked, allowed);
    visit.assert_quiet();
}

#[test]
fn where_there_is_no_list_of_presets_one_is_typed() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    visit.enter(&daemon);
    alter(browser, "\"getState\"", "{...document, presetChoices: []}");
    visit.refresh();
    visit.go("settings");
    browser.fill("input[name=presetId]", "one-of-mine");
    browser.click("[data-action=save]");
    browser.wait("[data-toast=good]");
    assert_eq!(site.json(&["config", "get"])["presetId"], "one-of-mine");
    visit.assert_quiet();
}
