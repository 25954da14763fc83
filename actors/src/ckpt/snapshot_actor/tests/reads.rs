//! What is answered without a write: from memory, or from the store beside the writes.

use super::*;
use cofferdam_protocol::ckpt::{CleanupRetention, ConfigReport, DiffEntry, DiffKind, WorkspaceInfo};
use cofferdam_storage::ckpt::{Error, FsUsage, WarningKind};
use cofferdam_storage::clock::WallTime;

fn health(uid: u32) -> HealthAdvisory {
    HealthAdvisory { peer: user(uid) }
}

#[actix::test]
async fn a_list_is_sorted_by_time_over_all_workspaces_and_equal_times_by_order() {
    let backend = FakeBackend::with(&[]);
    let a = backend.registered("/a", ALICE, &["a1", "a2", "a3"]);
    let b = backend.registered("/b", ALICE, &["b1", "b2"]);
    for (ws, name, nanos) in
        [(&a, "a1", 5), (&a, "a2", 5), (&a, "a3", 1_767_323_045_100_000_000), (&b, "b1", 4)]
    {
        backend.change(ws, name, |snapshot| snapshot.created_at = WallTime(nanos));
    }
    backend.change(&b, "b2", |snapshot| snapshot.created_at = WallTime(6));
    backend.change(&b, "b2", |snapshot| snapshot.missing = true);
    let daemon = Daemon::start(&backend).await;
    let entries = daemon.ask(list(ALICE, None)).await.unwrap().entries();
    let shown: Vec<_> = entries.iter().map(|entry| (entry.id.as_str(), entry.workspace.as_str())).collect();
    assert_eq!(shown, [("b1", "/b"), ("a1", "/a"), ("a2", "/a"), ("b2", "/b"), ("a3", "/a")]);
    assert!(entries[3].meta.missing);
    assert_eq!(entries[4].meta.created_at.as_str(), "2026-01-02T03:04:05.100Z");
}

#[actix::test]
async fn requests_that_memory_answers_ask_the_engine_nothing() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["one"]);
    backend.set_usage(100, 40);
    let daemon = Daemon::start(&backend).await;
    let before = (backend.count("usage"), backend.count("canonical"), backend.count("workspaces"));
    backend.set_usage(100, 41);
    for _ in 0..100 {
        daemon.ask(list(ALICE, Some("/p"))).await.unwrap();
        daemon.ask(list(ALICE, None)).await.unwrap();
        assert_eq!(daemon.ask(status(ALICE, Some("/p"))).await.unwrap().fs_used_bytes, 40);
        daemon.ask(status(ALICE, None)).await.unwrap();
        daemon.ask(health(ALICE)).await.unwrap();
        daemon.ask(GetConfig { peer: user(ALICE) }).await.unwrap();
    }
    assert_eq!((backend.count("usage"), backend.count("canonical"), backend.count("workspaces")), before);
}

#[actix::test]
async fn a_status_names_the_peers_workspaces_and_the_uptime() {
    let backend = FakeBackend::with(&[]);
    let mine = backend.registered("/p", ALICE, &["one", "two"]);
    backend.registered("/q", BOB, &[]);
    backend.set_usage(1000, 10);
    backend.clock().set(Duration::from_secs(50));
    let daemon = Daemon::start(&backend).await;
    backend.clock().set(Duration::from_millis(53_900));
    let report = daemon.ask(status(ALICE, None)).await.unwrap();
    let info = WorkspaceInfo { ws_id: mine.to_string(), path: "/p".to_owned(), snapshot_count: 2 };
    assert_eq!(report.workspaces, [info]);
    assert_eq!((report.uptime_secs, report.fs_total_bytes, report.fs_used_bytes), (3, 1000, 10));
    assert_eq!(daemon.ask(status(0, None)).await.unwrap().workspaces.len(), 2);
}

#[actix::test]
async fn the_advisory_counts_the_peers_workspaces_with_more_than_a_thousand_snapshots() {
    let backend = FakeBackend::with(&[]);
    let names: Vec<String> = (0..1001).map(|n| n.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    backend.registered("/many", ALICE, &names);
    backend.registered("/just-not", ALICE, &names[1..]);
    backend.registered("/theirs", BOB, &names);
    backend.set_usage(8, 7);
    let daemon = Daemon::start(&backend).await;
    let usage = FsUsage { total: 8, used: 7 };
    for (uid, over_limit_workspaces) in [(ALICE, 1), (BOB, 1), (0, 2)] {
        let advisory = Advisory { over_limit_workspaces, usage };
        assert_eq!(daemon.ask(health(uid)).await.unwrap(), advisory, "{uid}");
    }
}

#[actix::test]
async fn a_diff_compares_what_its_references_name() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["one", "two-a", "two-b"]);
    backend.registered("/q", ALICE, &["@live", "@live2"]);
    let daemon = Daemon::start(&backend).await;
    let changes = daemon.ask(diff("/p", "o", "two-a")).await.unwrap();
    let entry = |path: &str, change_type, detail: &str| DiffEntry {
        path: path.to_owned(),
        change_type,
        detail: Some(detail.to_owned()),
    };
    let directory = entry("dir", DiffKind::Added, "directory");
    let renamed = entry("new\\xff", DiffKind::Renamed, "old → new\\xff");
    assert_eq!(changes, [directory, renamed]);
    daemon.ask(diff("/p", "one", "@live")).await.unwrap();
    daemon.ask(diff("/q", "@live2", "@live")).await.unwrap();
    assert_eq!(backend.changes(), ["diff one two-a", "diff one LIVE", "diff @live2 @live"]);

    let not_found = Code::SnapshotNotFound;
    assert_refused(
        daemon.ask(diff("/p", "one", "two")).await,
        not_found,
        "ambiguous snapshot prefix 'two': 2 matches",
    );
    assert_refused(daemon.ask(diff("/p", "no", "one")).await, not_found, "snapshot not found: no");
    assert_refused(daemon.ask(diff("/p", "@live", "one")).await, not_found, "snapshot not found: @live");
}

#[actix::test]
async fn a_diff_waits_for_no_write_and_only_so_many_run_at_once() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["one"]);
    let daemon = Daemon::start(&backend).await;
    let mut write = backend.hold("checkpoint");
    let writing = daemon.send(checkpoint(ALICE, "/p", "two"));
    write.entered().await;
    let mut held: Vec<_> = (0..MAX_READS).map(|_| backend.hold("diff")).collect();
    let mut running: Vec<_> = (0..=MAX_READS).map(|_| daemon.send(diff("/p", "one", "@live"))).collect();
    for held in &mut held {
        held.entered().await;
    }
    assert_eq!(backend.count("diff"), MAX_READS);
    held.pop().unwrap().release();
    running.pop().unwrap().await.unwrap().unwrap();
    assert_eq!(backend.count("diff"), MAX_READS + 1);
    held.into_iter().for_each(Held::release);
    for running in running {
        running.await.unwrap().unwrap();
    }
    write.release();
    writing.await.unwrap().unwrap();
}

#[actix::test]
async fn a_read_that_panics_or_fails_is_an_error_and_the_daemon_lives() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["one"]);
    let daemon = Daemon::start(&backend).await;
    backend.panic("diff");
    backend.panic("canonical");
    backend.fail("diff", Error::Corrupt("pack 7".to_owned()));
    for _ in 0..2 {
        assert_eq!(daemon.ask(diff("/p", "one", "one")).await.unwrap_err().code, Code::InternalError);
    }
    daemon.ask(diff("/p", "one", "one")).await.unwrap();
    assert_eq!(daemon.ask(list(ALICE, Some("/x"))).await.unwrap_err().code, Code::WorkspaceNotFound);
    assert_eq!(daemon.names("/p").await, ["one"]);
}

#[actix::test]
async fn warnings_are_those_of_the_snapshot_that_is_meant() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["one"]);
    let daemon = Daemon::start(&backend).await;
    let ask = |snapshot: &str| {
        let (workspace, snapshot) = ("/p".to_owned(), snapshot.to_owned());
        daemon.ask(SnapshotWarnings { peer: user(ALICE), workspace, snapshot })
    };
    assert_eq!(ask("o").await.unwrap()[0].kind, WarningKind::Unreadable);
    assert_refused(ask("x").await, Code::SnapshotNotFound, "snapshot not found: x");
    assert_eq!(backend.changes(), ["warnings one"]);
}

#[actix::test]
async fn what_the_newest_rollback_or_undo_did_is_remembered_also_over_an_init() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["one"]);
    let daemon = Daemon::start(&backend).await;
    let last = |uid| GetLastRollback { peer: user(uid), workspace: "/p".to_owned() };
    let none = "no rollback of this workspace since the daemon started";
    assert_refused(daemon.ask(last(ALICE)).await, Code::SnapshotNotFound, none);

    daemon.ask(rollback("/p", "one")).await.unwrap();
    daemon.ask(init(ALICE, "/p")).await.unwrap();
    let done = daemon.ask(last(ALICE)).await.unwrap();
    assert_eq!((&done.done, done.changed), (&LastDone::To(id("one")), 3));

    let undone = daemon.ask(undo("/p")).await.unwrap().rollback;
    let done = daemon.ask(last(ALICE)).await.unwrap();
    assert_eq!((&done.done, done.changed), (&LastDone::Undone(undone), 2));
    assert_refused(daemon.ask(last(BOB)).await, Code::WorkspaceNotFound, "workspace not found: /p");
}

#[actix::test]
async fn an_undo_of_another_rollback_than_the_newest_does_nothing() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/p", ALICE, &["one"]);
    let daemon = Daemon::start(&backend).await;
    let newest = |uid| NewestRollback { peer: user(uid), workspace: "/p".to_owned() };
    let shown = daemon.ask(newest(ALICE)).await.unwrap().unwrap().operation;
    let expecting = |operation: &str| UndoRollback { expected: Some(operation.to_owned()), ..undo("/p") };
    let text = "another rollback is the newest by now; look which one it is, and ask again";
    assert_refused(daemon.ask(expecting("another")).await, Code::ConfirmationRequired, text);
    assert!(!backend.changes().iter().any(|call| call.starts_with("undo")), "{:?}", backend.changes());
    daemon.ask(expecting(&shown)).await.unwrap();
    assert!(backend.changes().iter().any(|call| call.starts_with("undo")), "{:?}", backend.changes());
    assert_refused(daemon.ask(newest(BOB)).await, Code::WorkspaceNotFound, "workspace not found: /p");
}

#[actix::test]
async fn the_store_as_a_whole_is_not_everybodys_business() {
    let backend = FakeBackend::with(&[]);
    let daemon = Daemon::start(&backend).await;
    let text = "only the daemon's own user may do that";
    let check = CheckStore { peer: user(ALICE), read_data: true };
    assert_refused(daemon.ask(check).await, Code::InternalError, text);
    assert_refused(daemon.ask(StoreSize { peer: user(ALICE) }).await, Code::InternalError, text);
    assert_eq!(backend.changes(), [""; 0]);
    for peer in [user(0), Peer::own()] {
        let check = CheckStore { peer: peer.clone(), read_data: true };
        assert_eq!(daemon.ask(check).await.unwrap().snapshots, 7);
        assert_eq!(daemon.ask(StoreSize { peer }).await.unwrap().packs, 5);
    }
    assert_eq!(backend.changes(), ["check true", "size", "check true", "size"]);
}

#[actix::test]
async fn what_a_check_or_a_read_finds_lost_or_whole_again_the_list_shows() {
    let backend = FakeBackend::with(&[]);
    let ws = backend.registered("/p", ALICE, &["one", "two"]);
    let daemon = Daemon::start(&backend).await;
    let mark = |snapshot: &str, missing| backend.change(&ws, snapshot, |one| one.missing = missing);
    let lost = async || {
        let entries = daemon.ask(list(ALICE, Some("/p"))).await.unwrap().entries();
        let lost = entries.into_iter().filter(|entry| entry.meta.missing);
        lost.map(|entry| entry.id).collect::<Vec<_>>()
    };
    let check = async |expected: &[&str]| {
        daemon.ask(CheckStore { peer: user(0), read_data: false }).await.unwrap();
        assert_eq!(lost().await, expected);
        // The workspace's next write does not bring back what was known before.
        daemon.ask(cleanup("/p", None)).await.unwrap();
        assert_eq!(lost().await, expected);
    };
    let missing = || Error::SnapshotMissing(id("two"));
    mark("one", true);
    assert_eq!(lost().await, [""; 0]);
    check(&["one"]).await;
    mark("one", false);
    check(&[]).await;

    mark("two", true);
    backend.fail("diff", missing());
    assert_eq!(daemon.ask(diff("/p", "one", "two")).await.unwrap_err().code, Code::SnapshotNotFound);
    daemon.ask(cleanup("/p", None)).await.unwrap();
    assert_eq!(lost().await, ["two"]);
    mark("two", false);
    check(&[]).await;

    mark("two", true);
    backend.fail("rollback", missing());
    assert_eq!(daemon.ask(rollback("/p", "two")).await.unwrap_err().code, Code::SnapshotNotFound);
    assert_eq!(lost().await, ["two"]);
}

#[actix::test]
async fn one_check_runs_at_a_time() {
    let backend = FakeBackend::with(&[]);
    let daemon = Daemon::start(&backend).await;
    let mut held = backend.hold("check");
    let check = CheckStore { peer: user(0), read_data: false };
    let (first, second) = (daemon.send(check.clone()), daemon.send(check));
    held.entered().await;
    // A read beside it goes through while the second check waits.
    daemon.ask(StoreSize { peer: user(0) }).await.unwrap();
    assert_eq!(backend.count("check"), 1);
    held.release();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(backend.count("check"), 2);
}

#[actix::test]
async fn the_configuration_in_effect_is_reported() {
    let backend = FakeBackend::with(&[]);
    let settings = Config {
        auto_cleanup: true,
        auto_cleanup_keep: "30d".parse().unwrap(),
        auto_cleanup_interval_secs: 7,
        health_check_interval_secs: 8,
        ..Config::default()
    };
    let daemon = Daemon::start_with(&backend, settings).await;
    let expected = ConfigReport {
        mount_path: "/state".to_owned(),
        socket_path: "/run/ckpt.sock".to_owned(),
        log_level: "info".to_owned(),
        auto_cleanup: true,
        auto_cleanup_keep: "30d".parse().unwrap(),
        auto_cleanup_interval_secs: 7,
        health_check_interval_secs: 8,
        img_size: 0,
        img_max_percent: 0.0,
    };
    assert_eq!(daemon.ask(GetConfig { peer: user(ALICE) }).await.unwrap(), expected);
}

#[actix::test]
async fn a_reload_takes_effect_at_once_and_one_that_fails_changes_nothing() {
    let backend = FakeBackend::with(&[("/p", ALICE)]);
    let daemon = Daemon::start(&backend).await;
    let keep = async || daemon.ask(GetConfig { peer: user(ALICE) }).await.unwrap().auto_cleanup_keep;
    let reload = || daemon.ask(ReloadConfig { peer: user(ALICE) });
    let changed =
        Config { auto_cleanup_keep: CleanupRetention::Count(3), skip_unchanged: true, ..Config::default() };
    daemon.source.set(Some(changed));
    assert_eq!(keep().await, CleanupRetention::Count(20));
    reload().await.unwrap();
    assert_eq!(keep().await, CleanupRetention::Count(3));
    daemon.source.set(None);
    let text = "Failed to reload config: c.toml line 3: no";
    assert_refused(reload().await, Code::InternalError, text);
    assert_eq!(keep().await, CleanupRetention::Count(3));
    daemon.ask(checkpoint(ALICE, "/p", "one")).await.unwrap();
    let skipped = daemon.ask(checkpoint(ALICE, "/p", "two")).await.unwrap();
    assert!(matches!(skipped, CheckpointOutcome::Skipped { .. }));
}

#[actix::test]
async fn a_configuration_that_cannot_be_used_at_the_start_means_the_defaults() {
    let backend = FakeBackend::with(&[]);
    let (parts, source) = parts(&backend, Config::default());
    source.set(None);
    let ckpt = start(parts).await.unwrap();
    let config = ckpt.ask(GetConfig { peer: user(ALICE) }).await.unwrap();
    assert_eq!(config.auto_cleanup_keep, CleanupRetention::Count(20));
}

#[actix::test]
async fn an_engine_that_cannot_say_what_there_is_keeps_the_daemon_from_starting() {
    let backend = FakeBackend::with(&[]);
    backend.fail("workspaces", Error::Catalog("torn".to_owned()));
    assert!(start(parts(&backend, Config::default()).0).await.is_err());
    backend.panic("workspaces");
    assert!(start(parts(&backend, Config::default()).0).await.is_err());
    backend.fail("usage", Error::Catalog("torn".to_owned()));
    start(parts(&backend, Config::default()).0).await.unwrap();
}
