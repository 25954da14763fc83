//! The pod's actors in this process: whether they can be asked, and what the host hears of that.

use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

use cofferdam_protocol::host::CoreStatus;
use cofferdam_storage::clock::{Clock, RandomIds, WallTime};
use cofferdam_storage::disk::{Disk, FaultHook, Op};
use cofferdam_storage::pod::{PodDb, Protected, Surroundings};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{pause, sleep};

use super::*;
use crate::host::core::Keeper;
use crate::host::core::testing::{Fixture, SECOND, refused, unavailable};
use crate::pod::testing::{Said, VirtualClock};

fn pod_parts(disk: Disk) -> pod::Parts {
    pod::Parts {
        disk,
        clock: VirtualClock::new(),
        ids: Arc::new(RandomIds),
        tick: SECOND / 2,
        events: Arc::new(Said::default()),
        surroundings: Surroundings::default(),
        logs: Arc::new(Said::default()),
    }
}

/// In a directory that is there, and apart from the sandbox root.
fn database(dir: &TempDir) -> PathBuf {
    let beside = dir.path().join("isolation-pod");
    std::fs::create_dir_all(&beside).unwrap();
    beside.join("pod.db")
}

fn start_with(dir: &TempDir, pod: pod::Parts) -> Fixture {
    Fixture::start(database(dir), Keeper::Embedded(pod))
}

fn start(dir: &TempDir) -> Fixture {
    start_with(dir, pod_parts(Disk::default()))
}

/// With a sandbox root and a task that runs.
async fn with_task(dir: &TempDir, core: &mut Fixture) {
    let root = dir.path().join("root");
    let set = core.ask::<ConfigSet>(json!({"patch": {"sandboxRoot": root}})).await.unwrap();
    assert_eq!(set.messages, [""; 0]);
    core.ask::<TaskReserve>(json!({
        "taskId": "a", "sessionId": "s", "mainSessionId": "m", "label": "l", "description": "d",
        "leaseId": "L", "timeoutMs": 30_000,
    }))
    .await
    .unwrap();
    let PodEvent::TaskChanged { status, .. } = core.said().await else { panic!() };
    assert_eq!(status, TaskStatus::Starting);
}

#[actix::test]
async fn it_is_up_with_what_initialize_says_and_then_says_what_happens() {
    pause();
    let dir = tempfile::tempdir().unwrap();
    let mut core = start(&dir);
    assert_eq!(refused(core.ask::<TaskList>(json!({})).await), unavailable("STARTING"));
    let (state, initialized) = core.up().await;
    assert_eq!((state.status, state.embedded, state.starts), (CoreStatus::Ready, true, 1));
    assert_eq!((state.protocol, state.schema_version, &*state.version), (1, 1, CORE_VERSION));
    assert_eq!(state.pid, std::process::id());
    assert_eq!(initialized.unwrap().db_path, database(&dir).to_str().unwrap());
    assert_eq!(core.describe().await.state, state);
    with_task(&dir, &mut core).await;
    assert_eq!(core.ask::<TaskList>(json!({})).await.unwrap().tasks.len(), 1);
}

#[actix::test]
async fn nobody_else_says_initialize_or_shutdown() {
    pause();
    let dir = tempfile::tempdir().unwrap();
    let mut core = start(&dir);
    core.ready().await;
    let initialize = json!({"protocol": 1, "dbPath": database(&dir)});
    assert_eq!(refused(core.ask::<Initialize>(initialize).await).0, PodErrorCode::BadRequest);
    assert_eq!(refused(core.ask::<Shutdown>(json!({})).await).0, PodErrorCode::BadRequest);
    assert!(core.ask::<Health>(json!({})).await.unwrap().initialized);
}

#[actix::test]
async fn a_database_that_is_locked_is_tried_again_after_1_2_4_up_to_30_s() {
    pause();
    let dir = tempfile::tempdir().unwrap();
    let mut first = start(&dir);
    first.ready().await;
    let mut second = start(&dir);
    let down = second.down().await;
    assert_eq!((down.status, down.code), (CoreStatus::Down, Some(PodErrorCode::DbError)));
    assert!(down.message.contains("pod.db"), "{}", down.message);
    assert_eq!(refused(second.ask::<TaskList>(json!({})).await), unavailable("DOWN"));
    let mut starts = vec![second.starts().await];
    for wait in [1, 2, 4, 8, 16, 30, 30] {
        sleep(SECOND * wait - SECOND / 2).await;
        assert_eq!(second.starts().await, *starts.last().unwrap(), "not before its time");
        sleep(SECOND / 2 + SECOND / 100).await;
        starts.push(second.starts().await);
    }
    assert_eq!(starts, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(second.heard().is_none(), "nothing new to say");
    drop(first);
    assert_eq!(second.ready().await.starts, 9);
}

#[actix::test]
async fn a_restart_tries_at_once_and_says_why_it_was_in_vain() {
    pause();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(database(&dir), "this is no database, and long enough to see that".repeat(50)).unwrap();
    let mut core = start(&dir);
    let down = core.down().await;
    assert_eq!(down.code, Some(PodErrorCode::DbError));
    let failure = core.restart().await.unwrap_err();
    assert_eq!((failure.code, failure.message), (PodErrorCode::DbError, down.message));
    assert_eq!(core.starts().await, 2);
    std::fs::File::create(database(&dir)).unwrap();
    core.restart().await.unwrap();
    assert_eq!(core.ready().await.starts, 3);
}

/// Sets the number of its schema in the head of an SQLite file.
fn set_schema(database: &Path, number: u32) {
    let file = std::fs::OpenOptions::new().write(true).open(database).unwrap();
    file.write_all_at(&number.to_be_bytes(), 60).unwrap();
    file.sync_all().unwrap();
}

#[actix::test]
async fn a_newer_database_is_a_mismatch_that_only_a_restart_tries_again() {
    pause();
    let dir = tempfile::tempdir().unwrap();
    let file = database(&dir);
    drop(PodDb::open(&Disk::default(), &file, None, &Protected::default(), 0).unwrap());
    set_schema(&file, 99);
    let mut core = start(&dir);
    let (state, initialized) = core.up().await;
    assert_eq!((state.status, state.code), (CoreStatus::Mismatch, Some(PodErrorCode::SchemaMismatch)));
    assert!(initialized.is_none() && !state.message.is_empty());
    sleep(1000 * SECOND).await;
    assert_eq!(core.starts().await, 1);
    assert!(!core.ask::<Health>(json!({})).await.unwrap().initialized, "it can be asked");
    assert_eq!(refused(core.ask::<TaskList>(json!({})).await), unavailable("NOT_INITIALIZED"));
    set_schema(&file, 1);
    core.restart().await.unwrap();
    core.down().await;
    core.ready().await;
}

#[actix::test]
async fn a_restart_interrupts_tasks_and_forgets_leases() {
    pause();
    let dir = tempfile::tempdir().unwrap();
    let mut core = start(&dir);
    core.ready().await;
    with_task(&dir, &mut core).await;
    core.restart().await.unwrap();
    let down = core.down().await;
    assert_eq!((down.status, down.code), (CoreStatus::Starting, Some(PodErrorCode::CoreUnavailable)));
    let (state, initialized) = core.up().await;
    assert_eq!(state.starts, 2);
    assert_eq!(initialized.unwrap().tasks[0].status, TaskStatus::Interrupted);
    let heartbeat = core.ask::<TaskHeartbeat>(json!({"taskId": "a", "leaseId": "L"})).await;
    assert_eq!(refused(heartbeat).0, PodErrorCode::StaleLease);
}

#[actix::test]
async fn restarts_that_are_wanted_at_the_same_time_are_one() {
    pause();
    let dir = tempfile::tempdir().unwrap();
    let mut core = start(&dir);
    core.ready().await;
    let all = tokio::join!(core.restart(), core.restart(), core.restart(), async {
        tokio::task::yield_now().await;
        core.ask::<TaskList>(json!({})).await
    });
    assert_eq!((all.0, all.1, all.2), (Ok(()), Ok(()), Ok(())));
    assert_eq!(refused(all.3), unavailable("STARTING"));
    core.down().await;
    assert_eq!(core.ready().await.starts, 2);
    assert!(core.heard().is_none());
}

/// A clock that panics once in the actor's hands when that is wanted.
struct Trap {
    clock: Arc<VirtualClock>,
    set: AtomicBool,
}

impl Clock for Trap {
    fn wall(&self) -> WallTime {
        assert!(!self.set.swap(false, Ordering::Relaxed), "sprung");
        self.clock.wall()
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }
}

impl Trap {
    async fn spring(&self, core: &mut Fixture) {
        self.set.store(true, Ordering::Relaxed);
        assert_eq!(refused(core.ask::<TaskList>(json!({})).await), unavailable("STOPPING"));
        let down = core.down().await;
        assert!(down.message.contains("unexpectedly"), "{}", down.message);
        assert_eq!(refused(core.ask::<TaskList>(json!({})).await), unavailable("DOWN"));
    }
}

/// How long it takes until it is up.
async fn time_to_up(core: &mut Fixture) -> u64 {
    let since = Instant::now();
    let (state, _) = core.up().await;
    assert_eq!(state.status, CoreStatus::Ready);
    since.elapsed().as_secs()
}

#[actix::test]
async fn actors_that_have_ended_are_started_again_later_each_time_until_they_have_worked_for_a_minute() {
    pause();
    let dir = tempfile::tempdir().unwrap();
    let trap = Arc::new(Trap { clock: VirtualClock::new(), set: AtomicBool::new(false) });
    let mut core = start_with(&dir, pod::Parts { clock: trap.clone(), ..pod_parts(Disk::default()) });
    core.ready().await;
    for wait in [1, 2, 4] {
        trap.spring(&mut core).await;
        assert_eq!(time_to_up(&mut core).await, wait);
    }
    sleep(59 * SECOND).await;
    trap.spring(&mut core).await;
    assert_eq!(time_to_up(&mut core).await, 8);
    sleep(61 * SECOND).await;
    trap.spring(&mut core).await;
    assert_eq!(time_to_up(&mut core).await, 1);
}

/// A disk on which nothing is renamed until that is allowed.
#[derive(Debug, Default)]
struct Held {
    held: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Held {
    fn set(&self, held: bool) {
        self.held.lock().unwrap().0 = held;
        self.changed.notify_all();
    }

    /// Waits until something is held up.
    fn wait(&self) {
        drop(self.changed.wait_while(self.held.lock().unwrap(), |(_, waiting)| *waiting == 0).unwrap());
    }
}

/// Lets a disk go, also where a test fails: its end would wait for what is held up.
struct LettingGo(Arc<Held>);

impl Drop for LettingGo {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl FaultHook for Held {
    fn before(&self, op: Op) -> io::Result<()> {
        if op == Op::Rename {
            let mut held = self.held.lock().unwrap();
            held.1 += 1;
            self.changed.notify_all();
            drop(self.changed.wait_while(held, |(held, _)| *held).unwrap());
        }
        Ok(())
    }

    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

/// In the machine's time, since an export that is held up would hold virtual time.
#[actix::test]
async fn a_restart_waits_until_an_export_that_cannot_end_has_let_the_database_go() {
    let dir = tempfile::tempdir().unwrap();
    let held = Arc::<Held>::default();
    let disk = Disk::with_faults(Arc::clone(&held) as Arc<dyn FaultHook>);
    let mut core = start_with(&dir, pod_parts(disk));
    core.ready().await;
    with_task(&dir, &mut core).await;
    let mut file = std::fs::File::create(dir.path().join("root/a/file")).unwrap();
    file.write_all(b"text").unwrap();
    let letting_go = LettingGo(Arc::clone(&held));
    held.set(true);
    let export = json!({"taskId": "a", "entries": ["file"], "targetDir": dir.path().join("target")});
    let pod = core.core.pod.clone();
    let export =
        actix::spawn(
            async move { pod.ask(crate::host::core::testing::params::<ExportCreate>(export)).await },
        );
    let begun = Arc::clone(&held);
    tokio::task::spawn_blocking(move || begun.wait()).await.unwrap();

    let control = core.core.control.clone();
    let restarted =
        actix::spawn(async move { Carries::<Restart>::recipient(&control).send(Restart).await.unwrap() });
    assert!(matches!(core.said().await, PodEvent::ExportProgress { done: 0, .. }));
    // The export outlives its actors.
    core.down().await;
    while core.starts().await < 4 {
        tokio::task::yield_now().await;
    }
    assert!(!restarted.is_finished());
    assert_eq!(refused(core.ask::<TaskList>(json!({})).await), unavailable("STARTING"));
    drop(letting_go);
    restarted.await.unwrap().unwrap();
    core.ready().await;
    drop(export.await);
}

#[actix::test]
async fn a_core_that_nobody_knows_any_more_closes_its_database() {
    pause();
    let dir = tempfile::tempdir().unwrap();
    let mut core = start(&dir);
    core.ready().await;
    drop(core);
    let mut next = start(&dir);
    let (mut event, mut tries) = (next.next().await, 1);
    while let CoreEvent::Down { .. } = event {
        (event, tries) = (next.next().await, tries + 1);
    }
    assert!(matches!(event, CoreEvent::Up { .. }) && tries < 3);
}
