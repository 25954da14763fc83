//! Where a task's files are.

use std::io;
use std::path::{Path, PathBuf};

use cofferdam_protocol::pod::TaskSummary;

use crate::fs::Root;

/// A task's directory, as its record names it.
#[derive(Clone, Debug)]
pub struct TaskPlace {
    /// The sandbox root when it was reserved; `None` where a migrated task's cannot be told.
    pub(super) root: Option<PathBuf>,
    /// Its own directory.
    pub(super) dir: PathBuf,
}

impl TaskPlace {
    /// That of a task; `None` for a migrated one whose directory is on another system.
    pub fn of(task: &TaskSummary) -> Option<Self> {
        let absolute = |text: &str| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
        Some(Self { root: absolute(&task.sandbox_root), dir: absolute(&task.task_dir)? })
    }

    /// The directory held open, reached beneath its sandbox root without following a link; `None` if it is gone.
    pub fn open(&self) -> io::Result<Option<Root>> {
        let _ = (&self.root, Path::new("/"));
        todo!()
    }
}
