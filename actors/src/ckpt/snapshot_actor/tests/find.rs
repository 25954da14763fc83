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

/// The directory at `/p` becomes Bob's after Alice has worked in it.
async fn given_to_bob() -> (Arc<FakeBackend>, Daemon) {
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["hers"]);
    let daemon = Daemon::start(&backend).await;
    daemon.ask(rollback("/p", "hers")).await.unwrap();
    backend.give("/p", BOB);
    (backend, daemon)
}

#[actix::test]
async fn who_is_given_a_directory_learns_nothing_of_its_former_owner_and_the_other_way_round() {
    let (_, daemon) = given_to_bob().await;
    // Also not that the name was taken.
    assert_eq!(daemon.ask(checkpoint(BOB, "/p", "hers")).await.unwrap(), created("hers"));
    assert_eq!(daemon.ask(checkpoint(BOB, "/p", "his")).await.unwrap(), created("his"));
    let listed = daemon.ask(list(BOB, Some("/p"))).await.unwrap().entries();
    assert_eq!(listed.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), ["hers", "his"]);
    let last = GetLastRollback { peer: user(BOB), workspace: "/p".to_owned() };
    let text = "no rollback of this workspace since the daemon started";
    assert_refused(daemon.ask(last).await, Code::SnapshotNotFound, text);
    let text = "workspace not found: /p";
    assert_refused(daemon.ask(list(ALICE, Some("/p"))).await, Code::WorkspaceNotFound, text);
    assert_eq!(daemon.ask(list(ALICE, None)).await.unwrap(), SnapshotList::default());
}

#[actix::test]
async fn what_the_former_owner_asked_for_is_not_done_to_the_new_owners_workspace() {
    let (backend, daemon) = given_to_bob().await;
    let mut held = backend.hold("rollback");
    let running = daemon.send(rollback("/p", "hers"));
    held.entered().await;
    let first = daemon.send(checkpoint(BOB, "/p", "hers"));
    daemon.arrived().await;
    while backend.count("init") == 0 {
        tokio::task::yield_now().await;
    }
    // The engine was asked; the thread that asked it may not be back yet.
    for _ in 0..64 {
        spawn_blocking(std::thread::yield_now).await.unwrap();
        daemon.arrived().await;
    }
    let deleting = daemon.send(delete(Some("/p"), "hers"));
    daemon.arrived().await;
    held.release();
    running.await.unwrap().unwrap();
    assert_eq!(first.await.unwrap().unwrap(), created("hers"));
    assert_refused(deleting.await.unwrap(), Code::WorkspaceNotFound, "workspace not found: /p");
    assert_eq!(backend.count("delete"), 0);
}
