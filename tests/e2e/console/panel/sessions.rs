//! Stored conversations.

use cofferdam_tests::session::{directory_name, envelope, id, put};

use super::*;

#[test]
fn conversations_of_all_directories_are_listed_with_their_health_and_one_is_removed() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start_with(&[]);
    let store = site.path("home/.copilot-shell/cosh-core/sessions");
    let (here, there) = (site.site().directory("here"), site.site().directory("there"));
    for (n, workspace) in [(1, &here), (2, &here), (3, &there)] {
        put(&store.join(directory_name(workspace)), &id(n), envelope(&id(n), workspace), 1000);
    }
    put(&store.join(directory_name(&here)), &id(4), "{", 1000);
    visit.enter(&daemon);
    visit.go("sessions");
    browser.wait(&format!("[data-scope={}]", json!(there)));
    browser.fill("input[name=scope]", here.to_str().unwrap());
    browser.click("[data-action=scope]");
    browser.wait(&format!("[data-session='{}'][data-health=corrupt] .chip.bad", id(4)));
    assert_eq!(browser.count("[data-session]"), 3);
    browser.click("input[name=all-workspaces]");
    browser.says(&format!("[data-session='{}']", id(3)), there.to_str().unwrap());
    assert_eq!(browser.count("[data-session]"), 4);
    browser.click("input[name=all-workspaces]");
    browser.gone(&format!("[data-session='{}']", id(3)));
    browser.click(&format!("[data-session='{}'] [data-action=remove]", id(1)));
    browser.wait(&format!("[data-confirm=clear] [data-plan='{}']", id(1)));
    assert_eq!(browser.count("[data-plan]"), 1);
    browser.click("[data-confirm=clear] [data-action=confirm]");
    browser.gone(&format!("[data-session='{}']", id(1)));
    browser.wait(&format!("[data-session='{}'][data-health=ready]", id(2)));
    visit.assert_quiet();
}
