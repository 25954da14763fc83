//! The trash.

use cofferdam_storage::ckpt::TrashedTree;

use super::*;

fn restore(workspace: &str, item: u64, id: Option<&str>) -> RestoreTrashed {
    let (peer, workspace, id) = (user(ALICE), workspace.to_owned(), id.map(str::to_owned));
    RestoreTrashed { peer, workspace, item, id, pin: false }
}

#[actix::test]
async fn what_comes_back_from_the_trash_is_listed_where_it_was() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["one", "two"]);
    let daemon = Daemon::start(&backend).await;
    daemon.ask(DeleteSnapshot { force: true, ..delete(Some("/p"), "one") }).await.unwrap();
    let trash = daemon.ask(ListTrash { peer: user(ALICE) }).await.unwrap();
    assert_eq!(trash[0].tree, TrashedTree::Snapshot { id: id("one"), message: None });
    assert_eq!(daemon.ask(restore("/p", trash[0].item, None)).await.unwrap(), id("one"));
    assert_eq!(daemon.names("/p").await, ["one", "two"]);
}

#[actix::test]
async fn what_cannot_come_back_is_refused_before_the_engine_is_asked_or_by_it() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["one"]);
    let daemon = Daemon::start(&backend).await;
    let nowhere = daemon.ask(restore("/q", 0, None)).await;
    assert_refused(nowhere, Code::WorkspaceNotFound, "workspace not found: /q");
    let bad = daemon.ask(restore("/p", 0, Some("a/b"))).await.unwrap_err();
    assert_eq!(bad.code, Code::InvalidPath);
    assert_eq!(backend.changes(), [""; 0]);
    let text = "nothing in the trash has the number 7; trash list shows what there is";
    assert_refused(daemon.ask(restore("/p", 7, None)).await, Code::SnapshotNotFound, text);
}
