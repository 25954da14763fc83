//! What the database holds, as the rest of the program sees it.

use cofferdam_protocol::pod::{
    Config, Diagnostic, ExportItem, ExportRecord, ExportStatus, TaskId, TaskStatus, TaskSummary,
};

/// A task with what the wire does not show. All of it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Its place in the order of insertion, which is also the order of the queue.
    pub row: i64,
    /// What the wire shows; `queued_position` is 0 here, since the queue says it.
    pub summary: TaskSummary,
    /// The turn that is open.
    pub open_turn: Option<u64>,
    /// The turn that was opened last.
    pub last_turn: Option<u64>,
    /// Whether the open turn's deadline has passed, and the host was told.
    pub deadline_passed: bool,
    /// Whether somebody asked for the active task to be cancelled.
    pub cancel_requested: bool,
    /// The status it had before it was reattached, as long as no turn has begun since.
    pub reattached_from: Option<TaskStatus>,
}

/// One change of the database.
#[derive(Clone, Debug)]
pub enum Change {
    /// Insert or replace a task, by its id.
    PutTask(Box<TaskRecord>),
    /// Delete a task with its audit rows and transcript; export records stay.
    DeleteTask(TaskId),
    /// Replace the configuration.
    PutConfig(Box<Config>),
    /// Add an audit row; a task keeps its last 200.
    Audit {
        /// Whose.
        task: TaskId,
        /// When, in milliseconds since the epoch.
        at: i64,
        /// What happened: a word or two, such as `running` or `cancel requested`.
        what: String,
    },
    /// Insert an export record with its items.
    PutExport(Box<ExportRecord>),
    /// Replace some items of an export.
    PutExportItems {
        /// Which export.
        export: String,
        /// Each with its place in the record.
        items: Vec<(usize, ExportItem)>,
    },
    /// Keep what an export's undo must know and the wire does not show, in place of what was kept.
    PutExportNotes {
        /// Which export.
        export: String,
        /// What `export` says; opaque to everybody else, empty at first.
        notes: String,
    },
    /// Say how an export stands.
    SettleExport {
        /// Which export.
        export: String,
        /// How it stands.
        status: ExportStatus,
        /// When something of it was undone, in milliseconds since the epoch; 0 if nothing was.
        undone_at: i64,
    },
    /// Delete an export record.
    DeleteExport(String),
    /// Remember where to a main session's exports go; those of the last 200 sessions are.
    RememberTarget {
        /// Which main session.
        session: String,
        /// Where to.
        target_dir: String,
        /// When, in milliseconds since the epoch.
        at: i64,
    },
}

/// An export as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptExport {
    /// Its record with all of its files.
    pub record: ExportRecord,
    /// What its undo must know besides.
    pub notes: String,
}

/// Everything the database says that is kept in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// All tasks, by row.
    pub tasks: Vec<TaskRecord>,
    /// The row the next task gets: higher than any task has.
    pub next_row: i64,
    /// The configuration.
    pub config: Config,
    /// What could not be read and was replaced by defaults, or else should be known.
    pub diagnostics: Vec<Diagnostic>,
}

/// Which export records are wanted, and which of their files.
#[derive(Clone, Debug, Default)]
pub struct ExportPage {
    /// One record only.
    pub export: Option<String>,
    /// How many files of each are left out.
    pub item_offset: usize,
    /// How many files of each are given at most.
    pub item_limit: usize,
}

impl ExportPage {
    /// How many files of each record a list shows.
    pub const ITEMS: usize = 200;

    /// All records, each with its first files.
    pub fn all() -> Self {
        Self { export: None, item_offset: 0, item_limit: Self::ITEMS }
    }
}
