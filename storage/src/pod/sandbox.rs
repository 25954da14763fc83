//! The sandbox root and the directories of tasks in it.

use std::path::{Path, PathBuf};

use cofferdam_protocol::pod::{RootRefusal, SandboxPolicy, Subdir, TaskId};

use super::error::Result;
use crate::disk::Disk;

/// Where the process finds itself, as far as it matters for what is protected. A place that is not known is `None`.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// `DSH_HOME`, where it is set.
    pub dsh_home: Option<PathBuf>,
    /// The directory the program was started in.
    pub cwd: Option<PathBuf>,
    /// `SystemRoot` and `ProgramFiles`, where they are set.
    pub system: Vec<PathBuf>,
}

/// What no sandbox root may be or contain.
#[derive(Clone, Debug, Default)]
pub struct Protected {
    /// Each with what it is called in a message, such as `the home directory`.
    paths: Vec<(&'static str, PathBuf)>,
}

impl Protected {
    /// What is protected where a program finds itself there and has its database there. Without `DSH_HOME` that is the
    /// directory above the database's if that is called `isolation-pod`, else `.dsh` in the home directory.
    pub fn new(surroundings: &Surroundings, database: &Path) -> Self {
        let _ = (surroundings, database);
        todo!()
    }
}

/// The name under which `text` is a sandbox root: absolute, without trailing separators. Refused if it is relative or,
/// taken literally or with its links resolved, is or contains something protected.
pub fn check_root(text: &str, protected: &Protected) -> std::result::Result<String, RootRefusal> {
    let _ = (text, protected);
    todo!()
}

/// The directories that [`make_task_dir`] made, so that they can be removed while they are empty.
#[derive(Debug)]
pub struct MadeDir {
    /// The task's directory.
    pub path: PathBuf,
}

/// Makes `<root>/<subdir>/<task>` as far as it is missing, beneath the held root and following no link.
pub fn make_task_dir(disk: &Disk, root: &Path, subdir: &Subdir, task: &TaskId) -> Result<MadeDir> {
    let _ = (disk, root, subdir, task);
    todo!()
}

impl MadeDir {
    /// Removes again what was made, from the innermost on, as far as it is empty.
    pub fn unmake(self, disk: &Disk) {
        let _ = (disk, self.path);
        todo!()
    }
}

/// Where a task may write, given the strings of its record.
pub fn policy(root: &str, task_dir: &str) -> SandboxPolicy {
    let _ = (root, task_dir);
    todo!()
}
