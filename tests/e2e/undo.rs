//! What undo takes back, and for whom: it says which rollback that was, and a client that lost the answer gets it again.

use std::fs::File;
use std::path::Path;

use cofferdam_tests::site::{Ran, Site, run};
use cofferdam_tests::{files, project};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use crate::site;

fn undo(site: &Site, ws: &Path, more: &[&str]) -> Ran {
    run(&mut site.cofferdam(&[&["ckpt", "undo", "-w", ws.to_str().unwrap()], more].concat()))
}

#[track_caller]
fn undone(site: &Site, ws: &Path) -> String {
    let ran = undo(site, ws, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.stdout
}

#[test]
fn undo_names_the_rollback_that_it_took_back() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    files::write(ws.join("file"), "work of today\n");
    daemon.checkpoint(&ws, "two");
    daemon.rollback(&ws, "one");
    daemon.checkpoint(&ws, "three");
    // It has nothing to do, so that undo goes further back than this.
    daemon.rollback(&ws, "three");
    // Also for a daemon that did not see it.
    daemon.kill();
    let _daemon = site.start();
    let told = undone(&site, &ws);
    assert!(
        told.starts_with("Undid the rollback to one of 20") && told.ends_with(": 1 path(s) changed\n"),
        "{told}"
    );
    assert_eq!(files::read(ws.join("file")), b"work of today\n");
    let told = undone(&site, &ws);
    assert!(told.starts_with("Undid the undo of 20"), "{told}");
    let json = undo(&site, &ws, &["--format", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["rollback"]["undo"], &json["changed"]), (&Value::Bool(true), &Value::from(1)));
    assert_eq!(files::read(ws.join("file")), b"work of today\n");
}

#[test]
fn a_client_that_lost_the_answer_to_an_undo_gets_it_when_it_asks_again() {
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    project::make(&ws);
    daemon.checkpoint(&ws, "one");
    files::write(ws.join("new"), "work of today");
    daemon.rollback(&ws, "one");
    // Somebody else is at work on the directory until the client has lost patience.
    let somebody = File::open(&ws).unwrap();
    flock(&somebody, FlockOperation::LockExclusive).unwrap();
    let impatient = undo(&site, &ws, &["--timeout", "300ms"]);
    assert!(impatient.code == 1 && impatient.stderr.contains("no answer within 300 ms"), "{impatient:?}");
    flock(&somebody, FlockOperation::Unlock).unwrap();
    // Its turn comes after the undo's.
    daemon.checkpoint(&ws, "after");
    assert_eq!(files::read(ws.join("new")), b"work of today");
    let told = undone(&site, &ws);
    assert!(told.starts_with("Undid the rollback to one of 20"), "{told}");
    assert_eq!(files::read(ws.join("new")), b"work of today", "it was not taken back again");
    let told = undone(&site, &ws);
    assert!(told.starts_with("Undid the undo of 20"), "{told}");
    assert!(!ws.join("new").exists());
}
