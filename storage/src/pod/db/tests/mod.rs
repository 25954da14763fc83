//! A database in a directory of its own, and tasks to put into it.

mod commit;

use std::path::PathBuf;

use cofferdam_protocol::pod::{ModelChoice, TaskId, TaskStatus, TaskSummary};

use super::{Opened, PodDb};
use crate::disk::Disk;
use crate::pod::error::Result;
use crate::pod::model::{Change, TaskRecord};
use crate::pod::sandbox::Protected;

/// When a database is opened, if nothing else matters.
const NOW: i64 = 1_700_000_000_000;

/// A directory, and the database's path in it.
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

    fn open(&self) -> Opened {
        self.try_open(&Disk::default(), NOW).unwrap()
    }

    fn try_open(&self, disk: &Disk, now: i64) -> Result<Opened> {
        PodDb::open(disk, &self.file, None, &Protected::default(), now)
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
