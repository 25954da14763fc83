//! Which workspace an argument means.

use super::*;

#[actix::test]
async fn a_workspace_is_found_by_id_by_any_spelling_of_its_path_and_through_a_link() {
    let backend = FakeBackend::with(&[]);
    let ws = backend.registered("/home/p", ALICE, &["one"]);
    backend.link("/link", "/home/p");
    backend.link("/home/a/../p", "/home/p");
    let daemon = Daemon::start(&backend).await;
    for spelling in [ws.as_str(), "/home/p", "/home/p/", "/home/p//", "//home/./p", "/link/", "/home/a/../p"]
    {
        assert_eq!(daemon.names(spelling).await, ["one"], "{spelling}");
    }
}

#[actix::test]
async fn what_names_no_workspace_is_not_found_by_any_request() {
    let backend = FakeBackend::with(&[("/home/p/sub", ALICE)]);
    let ws = backend.registered("/home/p", ALICE, &["one"]);
    let daemon = Daemon::start(&backend).await;
    let shortened = &ws.as_str()[..ws.as_str().len() - 1];
    for nothing in [
        "",
        "  ",
        "\n",
        "/",
        "home/p",
        ".",
        "./p",
        "/home/p/sub",
        "/home",
        "/nowhere",
        shortened,
        "ws-ffffff",
    ] {
        let text = format!("workspace not found: {nothing}");
        let not_found = |failure: Failure| {
            assert_eq!((failure.code, &failure.message), (Code::WorkspaceNotFound, &text));
        };
        not_found(daemon.ask(rollback(nothing, "one")).await.unwrap_err());
        not_found(daemon.ask(undo(nothing)).await.unwrap_err());
        not_found(daemon.ask(delete(Some(nothing), "one")).await.unwrap_err());
        not_found(daemon.ask(list(ALICE, Some(nothing))).await.unwrap_err());
        not_found(daemon.ask(diff(nothing, "one", "one")).await.unwrap_err());
        not_found(daemon.ask(status(ALICE, Some(nothing))).await.unwrap_err());
        not_found(daemon.ask(cleanup(nothing, Some(0))).await.unwrap_err());
        not_found(daemon.ask(recover(nothing)).await.unwrap_err());
        let (peer, snapshot) = (user(ALICE), "one".to_owned());
        let warnings = SnapshotWarnings { peer, workspace: nothing.to_owned(), snapshot };
        not_found(daemon.ask(warnings).await.unwrap_err());
    }
    assert_eq!(backend.changes(), [""; 0]);
}

#[actix::test]
async fn another_users_workspace_does_not_exist() {
    let backend = FakeBackend::with(&[]);
    let theirs = backend.registered("/home/bob", BOB, &["secret"]);
    let daemon = Daemon::start(&backend).await;
    for name in [theirs.as_str(), "/home/bob"] {
        let text = format!("workspace not found: {name}");
        assert_refused(daemon.ask(list(ALICE, Some(name))).await, Code::WorkspaceNotFound, &text);
        assert_refused(daemon.ask(rollback(name, "secret")).await, Code::WorkspaceNotFound, &text);
        assert_refused(daemon.ask(recover(name)).await, Code::WorkspaceNotFound, &text);
    }
    let text = "snapshot not found: secret";
    assert_refused(daemon.ask(delete(None, "secret")).await, Code::SnapshotNotFound, text);
    assert_eq!(daemon.ask(list(ALICE, None)).await.unwrap(), SnapshotList::default());
    assert_eq!(daemon.ask(status(ALICE, None)).await.unwrap().workspaces, []);
    assert_eq!(backend.changes(), [""; 0]);

    assert_eq!(daemon.ask(list(BOB, None)).await.unwrap().workspaces.len(), 1);
    assert_eq!(daemon.ask(list(0, None)).await.unwrap().workspaces.len(), 1);
    let own = ListSnapshots { peer: Peer::own(), workspace: Some(theirs.to_string()) };
    assert_eq!(daemon.ask(own).await.unwrap().entries().len(), 1);
}

#[actix::test]
async fn where_directories_of_two_owners_stood_each_finds_its_own_workspace() {
    let backend = FakeBackend::with(&[]);
    let before = backend.registered("/shared", ALICE, &["hers"]);
    let after = backend.registered("/shared", BOB, &["his"]);
    let daemon = Daemon::start(&backend).await;
    for (uid, id) in [(ALICE, &before), (BOB, &after), (0, &after)] {
        let status = daemon.ask(status(uid, Some("/shared"))).await.unwrap();
        assert_eq!(status.workspaces[0].ws_id, id.as_str(), "{uid}");
    }
}
