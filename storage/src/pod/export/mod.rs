//! Exports: files leave the sandbox verified, and so that it can be undone. What they take from there is hostile; it is
//! read and written beneath held descriptors only, through no link and across no mount.

mod ahead;
mod backup;
mod batch;
mod bring_back;
mod carry_out;
mod content;
mod discard;
mod forbidden;
mod ground;
mod left;
mod moves;
mod names;
mod notes;
mod plan;
mod reconcile;
mod source;
#[cfg(test)]
mod tests;
mod undo;
mod undo_item;

use std::path::PathBuf;

use cofferdam_protocol::pod::{ConflictMode, ExportMode};

use super::error::Result;
use super::model::Change;
use super::place::TaskPlace;

pub use discard::{check_discard, discard};
pub(super) use notes::UNFINISHED;
pub use plan::{ExportPlan, plan};
pub use reconcile::{is_settled, reconcile};
pub use undo::undo;

/// Keeps the records of exports: whoever owns the database.
pub trait ExportLog {
    /// Makes changes durable before it returns.
    fn save(&mut self, changes: Vec<Change>) -> Result<()>;
}

/// What is to be exported.
#[derive(Clone, Debug)]
pub struct ExportRequest {
    /// The record's id.
    pub id: String,
    /// Whose files.
    pub task: String,
    /// That task's label.
    pub label: String,
    /// When, in milliseconds since the epoch.
    pub at: i64,
    /// Where they are; `None` if they are on another system.
    pub place: Option<TaskPlace>,
    /// The sandbox root of the configuration, which no export may write to either.
    pub current_root: Option<PathBuf>,
    /// The sidecar's own files, its database and its log: no export may write there, or beside them where they have more.
    pub own_files: Vec<PathBuf>,
    /// Directories that no export may write to, since the program keeps its own files there.
    pub own_dirs: Vec<PathBuf>,
    /// Which, below the task's directory.
    pub entries: Vec<String>,
    /// Where to.
    pub target_dir: PathBuf,
    /// Whether the sources stay.
    pub mode: ExportMode,
    /// What to do about files in the way.
    pub conflict: ConflictMode,
}
