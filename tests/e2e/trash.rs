//! The way back from the trash, as people go it.

use cofferdam_tests::files;
use cofferdam_tests::site::{Ran, Site, run};
use cofferdam_tests::tree::Tree;
use cofferdam_tests::wire::ask;
use serde_json::Value;

use crate::site;

fn trash(site: &Site, arguments: &[&str]) -> Ran {
    run(&mut site.cofferdam(&[&["ckpt", "trash"], arguments].concat()))
}

/// What is in it.
fn items(site: &Site) -> Vec<Value> {
    let listed = trash(site, &["list", "--format", "json"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    serde_json::from_str(&listed.stdout).unwrap()
}

#[test]
fn a_workspace_that_was_forgotten_by_mistake_gets_its_snapshots_back() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let path = ws.to_str().unwrap();
    daemon.call(&ask::checkpoint_with(&ws, "one", Some("before the agent"), Some("{\"a\":1}"), true));
    let (listed, before) = (daemon.list(&ws), Tree::read(&ws));
    files::write(ws.join("file"), "broken");
    assert_eq!(trash(&site, &["list"]).stdout, "The trash is empty.\n");
    daemon.call(&ask::recover(&ws));
    let table = trash(&site, &["list"]).stdout;
    assert!(table.contains("before the agent") && table.ends_with("Total: 1 item(s)\n"), "{table}");
    let item = items(&site)[0]["item"].to_string();
    let early = trash(&site, &["restore", &item, "-w", path]);
    assert_eq!(early.code, 1);
    assert!(early.stderr.contains("\nHint: register it first: cofferdam ckpt init"), "{early:?}");
    daemon.init(&ws);
    let restored = trash(&site, &["restore", &item, "-w", path]);
    assert_eq!((restored.code, &*restored.stdout), (0, "Restored: one\n"), "{restored:?}");
    assert_eq!(daemon.list(&ws), listed);
    daemon.rollback(&ws, "one");
    before.assert_same(&Tree::read(&ws), "after the rollback");
    assert_eq!(items(&site), [] as [Value; 0]);
    assert_eq!(site.check(), 1);
}

#[test]
fn the_tree_before_an_older_rollback_can_be_had_after_undo_has_gone_past_it() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let path = ws.to_str().unwrap();
    daemon.checkpoint(&ws, "one");
    for work in ["of yesterday", "of today"] {
        files::write(ws.join("file"), work);
        daemon.rollback(&ws, "one");
    }
    // A daemon that starts keeps it, too.
    daemon.kill();
    let daemon = site.start();
    let item = &items(&site)[0];
    assert_eq!(item["message"], "the tree before the rollback to one");
    let item = item["item"].to_string();
    let restored = trash(&site, &["restore", &item, "-w", path, "-i", "yesterday", "--pin"]);
    assert_eq!((restored.code, &*restored.stdout), (0, "Restored: yesterday\n"), "{restored:?}");
    assert!(daemon.list(&ws).iter().any(|one| one.id == "yesterday" && one.meta.pinned));
    daemon.rollback(&ws, "yesterday");
    assert_eq!(files::read(ws.join("file")), b"of yesterday");
    let again = trash(&site, &["restore", &item, "-w", path]);
    assert!(again.code == 1 && again.stderr.contains("nothing in the trash has the number"), "{again:?}");
}
