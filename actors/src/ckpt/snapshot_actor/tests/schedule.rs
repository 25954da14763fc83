//! What happens by itself, in virtual time.

use super::*;
use cofferdam_storage::ckpt::{Error, FsUsage};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const SECOND: Duration = Duration::from_secs(1);

/// Lets time pass. Nothing that blocks is under way when it has: virtual time stands still meanwhile.
async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

fn keep(rule: &str) -> Config {
    Config { auto_cleanup: true, auto_cleanup_keep: rule.parse().unwrap(), ..Config::default() }
}

#[actix::test]
async fn clean_up_runs_once_a_day_over_every_workspace() {
    tokio::time::pause();
    let backend = FakeBackend::with(&[]);
    backend.registered("/a", ALICE, &["a1", "a2", "a3"]);
    backend.registered("/b", BOB, &["b1", "b2"]);
    backend.registered("/c", BOB, &["c1"]);
    let daemon = Daemon::start_with(&backend, keep("1")).await;
    pass(DAY - SECOND).await;
    assert_eq!(backend.changes(), [""; 0]);
    pass(2 * SECOND).await;
    let mut changes = backend.changes();
    changes.sort();
    assert_eq!(changes, ["delete a1 a2 Unlink", "delete b1 Unlink"]);
    assert_eq!(daemon.names("/a").await, ["a3"]);
    for name in ["a4", "a5"] {
        daemon.ask(checkpoint(ALICE, "/a", name)).await.unwrap();
    }
    pass(DAY).await;
    assert_eq!(daemon.names("/a").await, ["a5"]);
}

#[actix::test]
async fn by_age_a_snapshot_goes_when_it_is_old_enough() {
    tokio::time::pause();
    let backend = FakeBackend::with(&[]);
    // Taken 1, 2 and 3 seconds after the epoch.
    backend.registered("/a", ALICE, &["a1", "a2", "a3"]);
    let settings = Config { auto_cleanup_interval_secs: 60, ..keep("1h") };
    let daemon = Daemon::start_with(&backend, settings).await;
    backend.clock().set(Duration::from_secs(3602));
    pass(61 * SECOND).await;
    assert_eq!(daemon.names("/a").await, ["a3"]);
}

#[actix::test]
async fn nothing_is_cleaned_up_unless_it_is_configured_and_a_reload_sets_the_timer_anew() {
    tokio::time::pause();
    let backend = FakeBackend::with(&[]);
    backend.registered("/a", ALICE, &["a1", "a2"]);
    let off = Config { auto_cleanup: false, ..keep("0") };
    let never = Config { auto_cleanup_interval_secs: 0, ..keep("0") };
    let someday = Config { auto_cleanup_interval_secs: u64::MAX, ..keep("0") };
    let soon = Config { auto_cleanup_interval_secs: 3600, ..keep("1") };
    let daemon = Daemon::start_with(&backend, keep("0")).await;
    for settings in [off, never, someday] {
        daemon.source.set(Some(settings));
        daemon.ask(ReloadConfig { peer: user(ALICE) }).await.unwrap();
        pass(3 * DAY).await;
    }
    assert_eq!(backend.changes(), [""; 0]);
    daemon.source.set(Some(soon));
    daemon.ask(ReloadConfig { peer: user(ALICE) }).await.unwrap();
    pass(3599 * SECOND).await;
    assert_eq!(backend.changes(), [""; 0]);
    pass(2 * SECOND).await;
    assert_eq!(backend.changes(), ["delete a1 Unlink"]);
}

#[actix::test]
async fn a_clean_up_that_fails_is_tried_again_the_next_time() {
    tokio::time::pause();
    let backend = FakeBackend::with(&[]);
    backend.registered("/a", ALICE, &["a1", "a2"]);
    backend.fail("delete", Error::Busy);
    let daemon = Daemon::start_with(&backend, keep("1")).await;
    pass(DAY + SECOND).await;
    assert_eq!(daemon.names("/a").await, ["a1", "a2"]);
    pass(DAY).await;
    assert_eq!(daemon.names("/a").await, ["a2"]);
}

#[actix::test]
async fn scheduled_clean_up_waits_for_its_turn_as_long_as_it_takes() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/a", ALICE, &["a1", "a2"]);
    let settings = Config { auto_cleanup_interval_secs: 60, ..keep("1") };
    let daemon = Daemon::start_with(&backend, settings).await;
    let mut held = backend.hold("rollback");
    let writing = daemon.send(rollback("/a", "a2"));
    held.entered().await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    daemon.arrived().await;
    tokio::time::advance(Duration::from_secs(30)).await;
    daemon.arrived().await;
    assert_eq!(backend.changes(), ["rollback a2"]);
    held.release();
    writing.await.unwrap().unwrap();
    pass(SECOND).await;
    assert_eq!(daemon.names("/a").await, ["a2"]);
}

#[actix::test]
async fn the_space_is_asked_for_on_a_schedule_and_after_a_write() {
    tokio::time::pause();
    let backend = FakeBackend::with(&[]);
    backend.registered("/a", ALICE, &["a1"]);
    let daemon = Daemon::start(&backend).await;
    let usage = async || daemon.ask(HealthAdvisory { peer: user(ALICE) }).await.unwrap().usage;
    backend.set_usage(10, 1);
    assert_eq!(usage().await, FsUsage::default());
    pass(31 * SECOND).await;
    assert_eq!(usage().await, FsUsage { total: 10, used: 1 });
    backend.set_usage(10, 2);
    daemon.ask(rollback("/a", "a1")).await.unwrap();
    pass(SECOND).await;
    assert_eq!(usage().await, FsUsage { total: 10, used: 2 });
    backend.fail("usage", Error::Busy);
    pass(31 * SECOND).await;
    assert_eq!(usage().await, FsUsage { total: 10, used: 2 }, "what was last heard");
}

#[actix::test]
async fn collection_goes_on_step_by_step_until_nothing_is_left() {
    tokio::time::pause();
    let backend = FakeBackend::with(&[]);
    backend.registered("/a", ALICE, &["a1"]);
    backend.collections(&[true, true, false]);
    let daemon = Daemon::start(&backend).await;
    pass(SECOND).await;
    assert_eq!(backend.count("collect"), 3, "what the last daemon left");
    backend.collections(&[true]);
    daemon.ask(delete(Some("/a"), "a1")).await.unwrap();
    pass(SECOND).await;
    assert_eq!(backend.count("collect"), 5);
    pass(Duration::from_secs(3600)).await;
    assert_eq!(backend.count("collect"), 6, "the trash has its time");
}

#[actix::test]
async fn announcements_while_collection_runs_become_one_more_step() {
    let backend = FakeBackend::with(&[]);
    backend.registered("/a", ALICE, &["a1", "a2", "a3"]);
    let mut held = backend.hold("collect");
    let daemon = Daemon::start(&backend).await;
    held.entered().await;
    for name in ["a1", "a2", "a3"] {
        daemon.ask(delete(Some("/a"), name)).await.unwrap();
    }
    tokio::time::pause();
    held.release();
    pass(2 * SECOND).await;
    assert_eq!(backend.count("collect"), 2);
}

#[actix::test]
async fn collection_that_fails_or_panics_goes_on_at_the_next_occasion() {
    tokio::time::pause();
    let backend = FakeBackend::with(&[]);
    backend.registered("/a", ALICE, &["a1", "a2"]);
    backend.fail("collect", Error::Busy);
    backend.panic("collect");
    let daemon = Daemon::start(&backend).await;
    for (name, count) in [("a1", 1), ("a2", 2)] {
        pass(SECOND).await;
        assert_eq!(backend.count("collect"), count);
        daemon.ask(delete(Some("/a"), name)).await.unwrap();
    }
    pass(SECOND).await;
    assert_eq!(backend.count("collect"), 3);
}
