//! Checkpoints that the program takes for itself: no client sees anything of them.

use cofferdam_protocol::ckpt::{SnapshotId, WsCkptErrorCode as Code, WsCkptRequest, WsCkptResponse};
use cofferdam_storage::ckpt::{Backend, NewSnapshot, Store, StoreOptions};
use cofferdam_storage::peer::Peer;
use cofferdam_tests::files;
use cofferdam_tests::site::run;
use cofferdam_tests::wire::ask;

use crate::site;

fn id_of(name: &str) -> SnapshotId {
    SnapshotId::new(name).unwrap()
}

#[test]
fn nothing_of_what_is_kept_is_seen_or_reached_over_the_socket() {
    let site = site();
    let project = site.workspace("project");
    let task = project.join("task");
    files::write(task.join("file"), "of turn 1");
    // As a host leaves it that was killed.
    let id = {
        let store = Store::open(StoreOptions::new(site.state())).unwrap().0;
        let id = store.keep(&task).unwrap().workspace.id;
        for name in ["turn-1", "turn-2"] {
            let new = NewSnapshot {
                id: id_of(name),
                message: None,
                metadata: None,
                pin: false,
                skip_unchanged: false,
                even_empty: true,
            };
            store.checkpoint(&Peer::own(), &id, &new).unwrap();
        }
        files::write(task.join("file"), "of turn 2");
        store.rollback(&Peer::own(), &id, &id_of("turn-1")).unwrap();
        id.to_string()
    };
    let daemon = site.start();
    let task_path = task.to_str().unwrap();
    daemon.checkpoint(&project, "mine");
    let WsCkptResponse::ListOk { snapshots } = daemon.call(&ask::list_all()) else { panic!() };
    assert_eq!(snapshots.len(), 1);
    let WsCkptResponse::StatusOk { report } = daemon.call(&ask::status_all()) else { panic!() };
    assert_eq!(report.workspaces.len(), 1);
    for workspace in [task_path, &id] {
        for request in [
            ask::list(workspace),
            ask::status(workspace),
            ask::rollback(workspace, "turn-1"),
            ask::delete(workspace, "turn-1", true),
            ask::diff(workspace, "turn-1", "turn-2"),
            ask::cleanup(workspace, Some(0)),
            ask::recover(workspace),
        ] {
            let (code, message) = daemon.refused(&request);
            assert_eq!(
                (code, message),
                (Code::WorkspaceNotFound, format!("workspace not found: {workspace}"))
            );
        }
    }
    let (code, _) = daemon.refused(&ask::delete_anywhere("turn-1", true));
    assert_eq!(code, Code::SnapshotNotFound);
    let (code, message) = daemon.refused(&ask::init(&task));
    assert_eq!(code, Code::AlreadyInitialized, "as for any directory inside a workspace: {message}");
    let advisory = daemon.call(&WsCkptRequest::HealthAdvisory);
    assert!(!format!("{advisory:?}").contains(&id), "{advisory:?}");
    let trash = run(&mut site.cofferdam(&["ckpt", "trash", "list"]));
    assert_eq!(trash.stdout, "The trash is empty.\n");
    // Whatever a client does around it, it is there afterwards.
    files::write(task.join("file"), "of turn 3");
    daemon.rollback(&project, "mine");
    daemon.call(&ask::recover(&project));
    assert_eq!(daemon.stop().0, 0);
    assert_eq!(site.check(), 0);
    let store = Store::open(StoreOptions::new(site.state())).unwrap().0;
    let kept = store.kept().unwrap();
    assert_eq!((kept.len(), kept[0].snapshots.len()), (1, 2));
    files::write(task.join("file"), "changed");
    store.rollback(&Peer::own(), &kept[0].workspace.id, &id_of("turn-2")).unwrap();
    assert_eq!(files::read(task.join("file")), b"of turn 1");
}
