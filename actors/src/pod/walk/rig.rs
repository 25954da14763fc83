//! The real actors over a real database, in virtual time, with a disk that can fail.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cofferdam_protocol::pod::{Initialize, Initialized, LogLevel, PodEvent};
use cofferdam_storage::clock::{Clock, RandomIds, WallTime};
use cofferdam_storage::disk::{Disk, FaultHook, Op as DiskOp};
use cofferdam_storage::pod::Surroundings;
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use super::operation::{Answered, Op};
use crate::pod::{EventSink, LogControl, Parts, Pod, start};

/// How often deadlines are looked at.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// Where a walk keeps its files, in memory where there is such a place; it outlives every system.
pub(super) struct Place(TempDir);

impl Place {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    /// The sandbox root.
    pub(super) fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }

    fn database(&self) -> PathBuf {
        self.0.path().join("db/pod.db")
    }
}

/// What came out of the actors.
#[derive(Debug)]
pub(super) enum Heard {
    /// The answer to the request of that number.
    Answer(usize, Answered),
    Event(PodEvent),
}

/// A running system; dropping it is a restart's first half.
pub(super) struct Rig {
    pub(super) pod: Pod,
    clock: Arc<VirtualClock>,
    faults: Arc<Faults>,
    sender: UnboundedSender<Heard>,
    heard: UnboundedReceiver<Heard>,
}

impl Rig {
    /// Starts the actors at that time, in milliseconds, in the running actix system.
    pub(super) async fn start(place: &Place, at: i64) -> (Self, Initialized) {
        let base = Duration::from_millis(u64::try_from(at).unwrap());
        let clock = Arc::new(VirtualClock { base, started: Instant::now() });
        let faults = Arc::new(Faults::default());
        let (sender, heard) = unbounded_channel();
        let pod = start(Parts {
            disk: Disk::with_faults(Arc::clone(&faults) as Arc<dyn FaultHook>),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ids: Arc::new(RandomIds),
            tick: TICK,
            events: Arc::new(Sink(sender.clone())),
            surroundings: Surroundings::default(),
            logs: Arc::new(NoLogs),
        });
        let initialize = Initialize {
            protocol: 1,
            plugin_version: "0.2.0".to_owned(),
            db_path: place.database().to_str().unwrap().to_owned(),
            legacy_json_path: None,
            host_pid: None,
            platform: None,
            features: None,
        };
        let initialized = pod.ask(initialize).await.unwrap();
        (Self { pod, clock, faults, sender, heard }, initialized)
    }

    /// Wall time in milliseconds.
    pub(super) fn now(&self) -> i64 {
        self.clock.wall().0 / 1_000_000
    }

    /// When it was started: deadlines are looked at every [`TICK`] from then on.
    pub(super) fn born(&self) -> i64 {
        i64::try_from(self.clock.base.as_millis()).unwrap()
    }

    /// Sends requests one right after the other and waits for all answers. Returns everything heard, in order.
    pub(super) async fn ask(&mut self, ops: &[Op]) -> Vec<Heard> {
        for (n, op) in ops.iter().cloned().enumerate() {
            let sender = self.sender.clone();
            // Nobody listens any more once a check has failed.
            op.send(&self.pod, move |answer| drop(sender.send(Heard::Answer(n, answer))));
        }
        let (mut all, mut answers) = (Vec::new(), 0);
        while answers < ops.len() {
            let heard = self.heard.recv().await.unwrap();
            answers += usize::from(matches!(heard, Heard::Answer(..)));
            all.push(heard);
        }
        // The events of the last one came with its answer.
        all.extend(std::iter::from_fn(|| self.heard.try_recv().ok()));
        all
    }

    /// Lets time pass and returns what was told meanwhile.
    pub(super) async fn pass(&mut self, time: Duration) -> Vec<PodEvent> {
        tokio::time::sleep(time).await;
        let heard = std::iter::from_fn(|| self.heard.try_recv().ok());
        heard
            .map(|heard| match heard {
                Heard::Event(event) => event,
                Heard::Answer(n, answer) => panic!("answered {n} twice: {answer:?}"),
            })
            .collect()
    }

    /// Has the next commit fail.
    pub(super) fn break_commit(&self) {
        self.faults.armed.store(true, Ordering::SeqCst);
    }

    /// Takes that back; returns whether one has failed.
    pub(super) fn mend(&self) -> bool {
        !self.faults.armed.swap(false, Ordering::SeqCst)
    }
}

/// Tokio's time, which stands still while something works and jumps when nothing does.
struct VirtualClock {
    base: Duration,
    started: Instant,
}

impl Clock for VirtualClock {
    fn wall(&self) -> WallTime {
        WallTime(i64::try_from(self.monotonic().as_nanos()).unwrap())
    }

    fn monotonic(&self) -> Duration {
        self.base + self.started.elapsed()
    }
}

#[derive(Debug, Default)]
struct Faults {
    armed: AtomicBool,
}

impl FaultHook for Faults {
    fn before(&self, op: DiskOp) -> io::Result<()> {
        match op == DiskOp::Commit && self.armed.swap(false, Ordering::SeqCst) {
            true => Err(io::Error::other("planned")),
            false => Ok(()),
        }
    }

    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

struct Sink(UnboundedSender<Heard>);

impl EventSink for Sink {
    fn event(&self, event: PodEvent) {
        drop(self.0.send(Heard::Event(event)));
    }
}

struct NoLogs;

impl LogControl for NoLogs {
    fn set_level(&self, _: LogLevel) {}

    fn open_beside(&self, _: &Path) -> Option<PathBuf> {
        None
    }
}
