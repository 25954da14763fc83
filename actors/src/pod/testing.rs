//! What the tests of these actors share: a clock that follows tokio's, a disk whose commits fail or wait, and a record of
//! everything that is said.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use cofferdam_protocol::pod::{LogLevel, PodEvent};
use cofferdam_storage::clock::{Clock, WallTime};
use cofferdam_storage::disk::{Disk, FaultHook, Op};
use tokio::time::Instant;

use super::{EventSink, LogControl};

/// A clock whose monotonic time is tokio's, so that whoever pauses that decides about both. Its wall time goes along, and
/// can be set besides.
pub(crate) struct VirtualClock {
    began: Instant,
    /// Wall time at the beginning, in milliseconds since the epoch.
    epoch: AtomicI64,
}

impl VirtualClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), epoch: AtomicI64::new(1_000_000) })
    }

    /// Sets the wall clock forward, or back.
    pub(crate) fn set_wall(&self, by_ms: i64) {
        self.epoch.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Clock for VirtualClock {
    fn wall(&self) -> WallTime {
        let since = i64::try_from(self.began.elapsed().as_nanos()).unwrap();
        WallTime(self.epoch.load(Ordering::Relaxed) * 1_000_000 + since)
    }

    fn monotonic(&self) -> Duration {
        self.began.elapsed()
    }
}

/// Everything that was said, in order, each in a few words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    /// Adds a line.
    pub(crate) fn say(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    /// What was said since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl EventSink for Said {
    fn event(&self, event: PodEvent) {
        self.say(match event {
            PodEvent::QueueDispatch { task_id } => format!("dispatch {task_id}"),
            PodEvent::DeadlineExpired { task_id, turn } => format!("expired {task_id} {turn}"),
            PodEvent::TaskChanged { task_id, status, task } => match task.last_text.as_str() {
                "" => format!("changed {task_id} {}", status.as_str()),
                text => format!("changed {task_id} {} {text}", status.as_str()),
            },
            PodEvent::ExportProgress { task_id, done, total, .. } => {
                format!("progress {task_id} {done}/{total}")
            }
            PodEvent::CoreWarning { message, .. } => format!("warning {message}"),
        });
    }
}

impl LogControl for Said {
    fn set_level(&self, level: LogLevel) {
        self.say(format!("log {level:?}"));
    }

    fn open_beside(&self, database: &Path) -> Option<PathBuf> {
        Some(database.with_file_name("core.log"))
    }
}

/// Decides what becomes of commits.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    state: Mutex<Plan>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Plan {
    seen: usize,
    /// Commits that fail: from the first of these on, up to the second.
    failing: Option<(usize, usize, i32)>,
    held: bool,
}

impl Commits {
    /// The disk on which they happen.
    pub(crate) fn disk(self: &Arc<Self>) -> Disk {
        Disk::with_faults(Arc::clone(self) as Arc<dyn FaultHook>)
    }

    /// How many were begun.
    pub(crate) fn seen(&self) -> usize {
        self.state.lock().unwrap().seen
    }

    /// The nth from now on (from 1) and as many as `count` in all fail so.
    pub(crate) fn fail(&self, nth: usize, count: usize, errno: i32) {
        let mut plan = self.state.lock().unwrap();
        plan.failing = Some((plan.seen + nth, plan.seen + nth + count, errno));
    }

    /// None ends until they are let go.
    pub(crate) fn hold(&self) {
        self.state.lock().unwrap().held = true;
    }

    /// Lets them go.
    pub(crate) fn let_go(&self) {
        self.state.lock().unwrap().held = false;
        self.changed.notify_all();
    }
}

impl FaultHook for Commits {
    fn before(&self, op: Op) -> io::Result<()> {
        if op != Op::Commit {
            return Ok(());
        }
        let mut plan = self.state.lock().unwrap();
        plan.seen += 1;
        let nth = plan.seen;
        let plan = self.changed.wait_while(plan, |plan| plan.held).unwrap();
        match plan.failing {
            Some((from, to, errno)) if (from..to).contains(&nth) => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }

    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}
