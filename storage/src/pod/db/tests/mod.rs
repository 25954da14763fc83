//! A database in a directory of its own, and tasks to put into it.

mod commit;
mod exports;
mod importing;
mod loading;
mod opening;
mod pruning;
mod starting;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};

use cofferdam_protocol::pod::{ModelChoice, TaskId, TaskStatus, TaskSummary};

use super::{Opened, PodDb, SCHEMA_VERSION};
use crate::disk::{Disk, FaultHook, Op};
use crate::pod::error::{Error, Result};
use crate::pod::model::{Change, TaskRecord};
use crate::pod::sandbox::Protected;

/// When a database is opened, if nothing else matters.
const NOW: i64 = 1_700_000_000_000;

/// A directory, and the database's path in it.
#[derive(Debug)]
struct Place {
    _dir: tempfile::TempDir,
    file: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("isolation-pod/pod.db");
        Self { _dir: dir, file }
    }

    /// One in whose database these changes were made, and which is closed.
    fn with(changes: &[Change]) -> Self {
        let place = Self::new();
        let mut db = place.open().db;
        db.commit(changes).unwrap();
        db.close().unwrap();
        place
    }

    fn dir(&self) -> &Path {
        self.file.parent().unwrap()
    }

    /// Where the predecessor's file is, if there is one.
    fn legacy(&self) -> PathBuf {
        self.dir().with_extension("json")
    }

    /// What another program does to the file.
    fn edit(&self, script: &str) {
        connect(&self.file).batch_execute(script).unwrap();
    }

    fn open(&self) -> Opened {
        self.try_open(&Disk::default(), NOW).unwrap()
    }

    fn try_open(&self, disk: &Disk, now: i64) -> Result<Opened> {
        PodDb::open_waiting(disk, &self.file, Some(&self.legacy()), &Protected::default(), now, 50)
    }
}

/// As any program opens it.
fn connect(file: &Path) -> SqliteConnection {
    SqliteConnection::establish(file.to_str().unwrap()).unwrap()
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

/// The texts that a query gives as `line`.
fn lines(db: &mut PodDb, query: &str) -> Vec<String> {
    let rows: Vec<Line> = db.read(|database| Ok(diesel::sql_query(query).load(database)?)).unwrap();
    rows.into_iter().map(|row| row.line).collect()
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

/// How many rows a table has.
fn count(db: &mut PodDb, table: &str) -> i64 {
    let query = format!("SELECT count(*) AS count FROM {table}");
    let row: Count = db.read(|database| Ok(diesel::sql_query(query).get_result(database)?)).unwrap();
    row.count
}

/// The audit of a task, oldest first.
fn audit_of(db: &mut PodDb, task: &str) -> Vec<String> {
    lines(db, &format!("SELECT what AS line FROM audit WHERE task = '{task}' ORDER BY key"))
}

/// The ids of what is loaded, in its order.
fn ids(tasks: &[TaskRecord]) -> Vec<&str> {
    tasks.iter().map(|task| task.summary.id.as_str()).collect()
}

/// Fails the operation or step of that number, counted from 0, and only that.
#[derive(Debug, Default)]
struct FailNth {
    nth: u64,
    seen: AtomicU64,
}

impl FailNth {
    fn disk(nth: u64) -> (Disk, Arc<Self>) {
        let hook = Arc::new(Self { nth, seen: AtomicU64::new(0) });
        (Disk::with_faults(hook.clone()), hook)
    }

    fn has_failed(&self) -> bool {
        self.seen.load(Ordering::Relaxed) > self.nth
    }

    fn count(&self) -> io::Result<()> {
        match self.seen.fetch_add(1, Ordering::Relaxed) == self.nth {
            true => Err(rustix::io::Errno::IO.into()),
            false => Ok(()),
        }
    }
}

impl FaultHook for FailNth {
    fn before(&self, _: Op) -> io::Result<()> {
        self.count()
    }

    fn step(&self, _: &str) -> io::Result<()> {
        self.count()
    }
}

fn task(row: i64, id: &str, status: TaskStatus) -> TaskRecord {
    let summary = TaskSummary {
        id: id.to_owned(),
        session_id: format!("s-{id}"),
        main_session_id: "m".to_owned(),
        label: "label".to_owned(),
        description: "description".to_owned(),
        status,
        subdir: String::new(),
        task_dir: format!("/root/{id}"),
        sandbox_root: "/root".to_owned(),
        created_at: NOW - 1000,
        queued_at: 0,
        started_at: 0,
        ended_at: 0,
        turns: 0,
        timeout_ms: 600_000,
        allow: vec!["read".to_owned()],
        available_tools: Vec::new(),
        preset_id: String::new(),
        model: ModelChoice::default(),
        sandbox_mode: String::new(),
        sandbox_probe: String::new(),
        fs_denied: false,
        last_text: String::new(),
        error: String::new(),
        legacy: false,
        turn_deadline: 0,
        queued_position: 0,
    };
    TaskRecord {
        row,
        summary,
        open_turn: None,
        last_turn: None,
        deadline_passed: false,
        cancel_requested: false,
        reattached_from: None,
    }
}

fn put(task: &TaskRecord) -> Change {
    Change::PutTask(Box::new(task.clone()))
}

fn id(text: &str) -> TaskId {
    TaskId::new(text).unwrap()
}

fn audit(task: &str, at: i64, what: &str) -> Change {
    Change::Audit { task: id(task), at, what: what.to_owned() }
}
