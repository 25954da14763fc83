//! Somebody who has only the link that `cofferdam serve` prints does everything.

use std::fs;

use cofferdam_tests::files;
use cofferdam_tests::session::{directory_name, envelope, id, put};

use super::*;

/// A script for the preset `shell`, which works as any agent does.
const SCRIPT: &str =
    "echo working; mkdir -p notes; echo '# A plan' > notes/plan.md; echo 1 > numbers; echo done with it";

#[test]
fn a_person_sets_the_root_runs_a_task_exports_undoes_rewinds_rolls_back_and_clears() {
    let Some(visit) = Visit::new() else { return };
    let (site, browser) = (&visit.site, &visit.browser);
    let daemon = site.start();
    visit.enter(&daemon);

    // Nothing is set yet, and the page says what to do.
    browser.wait("[data-root=none]");
    browser.click("[data-root=none] a");
    browser.wait("main[data-page=settings]");
    let root = site.root();
    browser.fill("input[name=sandboxRoot]", root.to_str().unwrap());
    browser.choose("select[name=presetId]", "shell");
    if !browser
        .script("return document.querySelector('input[name=tool][value=bash]').checked")
        .as_bool()
        .unwrap()
    {
        browser.click("input[name=tool][value=bash]");
    }
    browser.click("[data-action=save]");
    browser.wait("[data-toast=good]");
    browser.wait("[data-root=willBeMade], [data-root=temp], [data-root=root]");

    // A task, from its start to its end.
    browser.click("nav [data-nav=new]");
    browser.fill("textarea[name=description]", SCRIPT);
    browser.click("[data-action=start]");
    browser.wait("main[data-page=task]");
    browser.wait("[data-task][data-status=completed]");
    visit.heard("done with it");
    let task = browser.script("return document.querySelector('article[data-task]').dataset.task");
    let task = task.as_str().unwrap().to_owned();

    // Its files: a look, an export with a second look, and the end of that.
    browser.click("[data-part=files]");
    browser.wait("[data-file='notes/plan.md']");
    browser.click("[data-file='notes/plan.md'] [data-action=preview]");
    browser.says("[data-preview='notes/plan.md']", "# A plan");
    browser.click("[data-file='notes/plan.md'] input[type=checkbox]");
    browser.click("[data-action=open-export]");
    browser.until("document.activeElement.name === 'target'");
    let outside = site.outside();
    browser.fill("input[name=target]", &outside);
    browser.click("[data-action=export]");
    browser.says("[data-confirm=export]", &outside);
    assert!(!site.path("outside/plan.md").exists(), "it is not done before the second look");
    browser.click("[data-confirm=export] [data-action=confirm]");
    browser.wait("[data-export][data-status=completed]");
    let exported = fs::read_dir(site.path("outside")).unwrap().count();
    assert!(exported > 0, "nothing was exported");
    browser.click("nav [data-nav=exports]");
    browser.click("[data-export] [data-action=undo]");
    browser.click("[data-confirm=undo] [data-action=confirm]");
    browser.wait("[data-export] [data-testid=undone]");
    assert_eq!(fs::read_dir(site.path("outside")).unwrap().count(), 0);

    // One more turn, and back to before it.
    visit.go(&format!("tasks/{task}"));
    browser.fill("textarea[name=followup]", "echo 2 > numbers; echo second turn");
    browser.click("[data-action=send]");
    visit.heard("second turn");
    browser.until("document.querySelectorAll('[data-entry-kind=turn]').length === 4");
    browser.wait("[data-task][data-status=completed]");
    let numbers = || fs::read_to_string(root.join(&task).join("numbers")).unwrap();
    assert_eq!(numbers(), "2\n");
    browser.click("[data-part=turns]");
    browser.click("[data-turn='2'] [data-action=rewind]");
    browser.click("[data-confirm] [data-action=confirm]");
    browser.gone("[data-confirm]");
    browser.wait("[data-action=undo-rewind]");
    browser.wait("[data-turn='2'][data-gone]");
    assert_eq!(numbers(), "1\n");
    browser.click("[data-action=undo-rewind]");
    browser.click("[data-confirm] [data-action=confirm]");
    browser.gone("[data-confirm]");
    browser.wait("[data-turn='2']:not([data-gone])");
    browser.says("[data-action=undo-rewind]", "Rewind again");
    assert_eq!(numbers(), "2\n");

    // A project is rolled back, and that is taken back.
    let project = site.path("project");
    files::write(project.join("main.rs"), "fn main() {}\n");
    visit.go("checkpoints");
    browser.fill("input[name=workspace]", project.to_str().unwrap());
    browser.click("[data-action=checkpoint]");
    browser.wait("[data-snapshot]");
    files::write(project.join("main.rs"), "fn broken(\n");
    files::write(project.join("junk"), "junk\n");
    browser.click("[data-snapshot] [data-action=diff]");
    browser.wait("[data-change=junk][data-kind=added]");
    browser.click("[data-change='main.rs'] [data-action=content]");
    browser.says("[data-hunks]", "fn broken(");
    browser.script("history.back()");
    browser.click("[data-snapshot] [data-action=rollback]");
    browser.says("[data-confirm] [data-testid=plan]", project.to_str().unwrap());
    browser.click("[data-confirm] [data-action=confirm]");
    browser.gone("[data-confirm]");
    browser.wait("[data-action=undo-rollback]");
    assert_eq!(fs::read_to_string(project.join("main.rs")).unwrap(), "fn main() {}\n");
    assert!(!project.join("junk").exists());
    browser.click("[data-action=undo-rollback]");
    browser.says("[data-confirm=undo-rollback] [data-testid=plan]", "newest roll back");
    browser.click("[data-confirm] [data-action=confirm]");
    browser.gone("[data-confirm]");
    assert_eq!(fs::read_to_string(project.join("main.rs")).unwrap(), "fn broken(\n");
    assert!(project.join("junk").exists());

    // Old conversations are cleared.
    let scope = site.path("home/.copilot-shell/cosh-core/sessions").join(directory_name(&project));
    for n in 1..=3 {
        put(&scope, &id(n), envelope(&id(n), &project), 1000);
    }
    visit.go("sessions");
    browser.click(&format!("[data-scope={}] [data-action=view]", json!(project)));
    browser.wait(&format!("[data-session='{}'][data-health=ready]", id(2)));
    browser.click(&format!("[data-session='{}'] [data-action=preview]", id(2)));
    browser.says("[data-preview] [data-role=user]", "hello");
    browser.click("[data-action=clear]");
    browser.says("[data-confirm=clear] [data-testid=plan]", project.to_str().unwrap());
    assert_eq!(browser.count("[data-plan]"), 3);
    browser.click("[data-confirm=clear] [data-action=confirm]");
    browser.gone("[data-session]");
    assert_eq!(fs::read_dir(&scope).unwrap().count(), 0);
    visit.assert_quiet();
}
