//! How it begins and ends.

use super::*;
use cofferdam_protocol::pod::PodErrorCode as Code;
use cofferdam_storage::disk::Disk;
use cofferdam_storage::pod::{PodDb, Protected};

#[actix::test]
async fn before_initialize_it_says_how_it_is_and_nothing_else() {
    let fixture = Fixture::closed();
    let failure = fixture.ask(TaskList {}).await.unwrap_err();
    assert_eq!(failure.code, Code::CoreUnavailable);
    assert_eq!(failure.data, json!({"reason": "NOT_INITIALIZED"}));
    assert!(!fixture.ask(Health {}).await.unwrap().initialized);
    pass(5 * SECOND).await;
    let report = fixture.ask(DiagnosticsGet {}).await.unwrap();
    assert!((5000..5100).contains(&report.uptime_ms), "{}", report.uptime_ms);
    assert_eq!((report.config, report.counts.tasks.len()), (None, TaskStatus::ALL.len()));
}

#[actix::test]
async fn a_host_of_another_protocol_is_refused_before_the_database_is_touched() {
    let fixture = Fixture::closed();
    let failure = fixture.ask(Initialize { protocol: 2, ..fixture.initialize() }).await.unwrap_err();
    assert_eq!(failure.code, Code::ProtocolMismatch);
    assert_eq!(failure.data, json!({"expected": 1, "actual": 2}));
    assert!(!fixture.db_path().parent().unwrap().exists());
    assert!(fixture.diagnostics().await[0].starts_with("Error initialize: the host speaks protocol 2"));
    assert!(fixture.ask(fixture.initialize()).await.is_ok());
}

#[actix::test]
async fn a_relative_path_is_no_database() {
    let fixture = Fixture::closed();
    for path in ["", "pod.db", "./pod.db"] {
        let request = Initialize { db_path: path.to_owned(), ..fixture.initialize() };
        assert_eq!(fixture.ask(request).await.unwrap_err().code, Code::BadRequest);
    }
}

#[actix::test]
async fn however_long_a_refused_path_is_its_diagnostic_is_short() {
    let fixture = Fixture::closed();
    let request = Initialize { db_path: "x".repeat(1_000_000), ..fixture.initialize() };
    assert_eq!(fixture.ask(request).await.unwrap_err().code, Code::BadRequest);
    assert!(fixture.diagnostics().await[0].len() < 3000);
}

#[actix::test]
async fn after_a_failure_initialize_runs_in_full() {
    let fixture = Fixture::closed();
    std::fs::create_dir_all(fixture.db_path().parent().unwrap()).unwrap();
    std::fs::write(fixture.db_path(), "no database at all, but long enough to look at".repeat(100)).unwrap();
    assert_eq!(fixture.ask(fixture.initialize()).await.unwrap_err().code, Code::DbError);
    assert!(!fixture.ask(Health {}).await.unwrap().initialized);
    assert!(fixture.diagnostics().await[0].starts_with("Error initialize: "));
    let other = fixture.dir.path().join("other.db").to_str().unwrap().to_owned();
    let answer = fixture.ask(Initialize { db_path: other.clone(), ..fixture.initialize() }).await.unwrap();
    assert_eq!((answer.db_path, answer.diagnostics.len()), (other, 1));
}

#[actix::test]
async fn initialize_again_shows_what_is_there_now_and_does_nothing() {
    let fixture = Fixture::open().await;
    fixture.insert("a", TaskStatus::Running);
    fixture.insert("b", TaskStatus::Completed);
    fixture.heard().await;
    let before = fixture.commits.seen();
    let answer = fixture.ask(fixture.initialize()).await.unwrap();
    let tasks: Vec<_> = answer.tasks.iter().map(|task| (task.id.as_str(), task.status)).collect();
    assert_eq!(tasks, [("b", TaskStatus::Completed), ("a", TaskStatus::Running)]);
    assert_eq!(fixture.commits.seen(), before);
    let other = Initialize { db_path: "/elsewhere/pod.db".to_owned(), ..fixture.initialize() };
    assert_eq!(fixture.ask(other).await.unwrap_err().code, Code::BadRequest);
    assert!(fixture.ask(Health {}).await.unwrap().initialized);
}

#[actix::test]
async fn a_new_process_finds_what_was_answered_and_interrupts_what_ran() {
    let fixture = Fixture::open().await;
    fixture.insert("a", TaskStatus::Running);
    fixture.insert("b", TaskStatus::Completed);
    fixture.call("shutdown", Shutdown {});
    fixture.heard().await;
    let file = fixture.db_path();
    let opened = PodDb::open(&Disk::default(), &file, None, &Protected::default(), 5).unwrap();
    let tasks: Vec<_> = opened.loaded.tasks.iter().map(|task| task.summary.status).collect();
    assert_eq!(tasks, [TaskStatus::Interrupted, TaskStatus::Completed]);
}

#[actix::test]
async fn a_plugin_of_another_release_is_worth_a_warning() {
    let fixture = Fixture::closed();
    let request = Initialize { plugin_version: "0.1.9".to_owned(), ..fixture.initialize() };
    let answer = fixture.ask(request).await.unwrap();
    assert_eq!(answer.diagnostics[0].level, LogLevel::Warn);
    assert!(answer.diagnostics[0].message.contains("0.1.9"));
}

#[actix::test]
async fn the_log_level_follows_the_configuration_once_that_is_durable() {
    let fixture = Fixture::closed();
    fixture.ask(fixture.initialize()).await.unwrap();
    assert_eq!(fixture.said.take(), ["log Info"]);
    let report = fixture.ask(DiagnosticsGet {}).await.unwrap();
    assert_eq!(report.log_path, fixture.db_path().with_file_name("core.log").to_str().unwrap());
    let level = |level: &str| params::<ConfigSet>(json!({"patch": {"logLevel": level}}));
    fixture.call("set", level("debug"));
    assert_eq!(fixture.heard().await, ["set ok", "log Debug"]);
    fixture.commits.fail(1, 1, EIO);
    fixture.call("set", level("warn"));
    assert_eq!(fixture.heard().await, ["set DB_ERROR"]);
}

#[actix::test]
async fn shutdown_is_answered_when_everything_is_durable_and_nothing_after_it_is_carried_out() {
    let fixture = Fixture::open().await;
    fixture.commits.hold();
    fixture.insert("a", TaskStatus::Completed);
    fixture.insert("b", TaskStatus::Completed);
    fixture.applied().await;
    assert_eq!(fixture.said.take(), [""; 0]);
    for name in ["shutdown", "again"] {
        fixture.call(name, Shutdown {});
    }
    fixture.insert("c", TaskStatus::Completed);
    fixture.commits.let_go();
    assert!(fixture.ask(Health {}).await.is_err());
    assert_eq!(
        fixture.said.take(),
        [
            "insert a ok",
            "changed a completed",
            "insert b ok",
            "changed b completed",
            "shutdown ok",
            "again CORE_UNAVAILABLE",
            "insert c CORE_UNAVAILABLE",
        ]
    );
    let opened = PodDb::open(&Disk::default(), &fixture.db_path(), None, &Protected::default(), 5).unwrap();
    assert_eq!(opened.loaded.tasks.len(), 2);
}

#[actix::test]
async fn shutdown_needs_no_initialize() {
    let fixture = Fixture::closed();
    assert!(fixture.ask(Shutdown {}).await.unwrap().ok);
    assert_eq!(fixture.ask(fixture.initialize()).await.unwrap_err().code, Code::CoreUnavailable);
    assert!(!fixture.db_path().exists());
}

#[actix::test]
async fn shutdown_is_answered_though_the_disk_fails() {
    let fixture = Fixture::open().await;
    fixture.commits.fail(1, 100, EIO);
    fixture.insert("a", TaskStatus::Completed);
    fixture.call("shutdown", Shutdown {});
    assert_eq!(fixture.heard().await, ["insert a DB_ERROR", "shutdown ok"]);
    pass(SECOND).await;
    assert!(!fixture.queue.connected());
}
