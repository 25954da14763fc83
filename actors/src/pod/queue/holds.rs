//! Files that somebody works on beside the queue, and what may not happen to their task meanwhile. None of it is
//! durable: such work ends with the process.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cofferdam_protocol::pod::TaskId;
use cofferdam_storage::pod::leads_into;

use super::Queue;
use crate::pod::failure::Refusal;

/// What is being done with the files of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pod) enum FileUse {
    /// They are read, and stay.
    Copied,
    /// They leave, one after the other.
    Moved,
    /// They are being removed.
    Removed,
}

impl FileUse {
    fn takes_them_away(self) -> bool {
        self != Self::Copied
    }

    fn word(self) -> &'static str {
        match self {
            Self::Copied | Self::Moved => "exported",
            Self::Removed => "removed",
        }
    }
}

/// Whose files are in use. A task of which the record was deleted meanwhile may be among them.
#[derive(Debug, Default)]
pub(in crate::pod) struct Holds(HashMap<TaskId, (FileUse, PathBuf)>);

impl Queue {
    /// Somebody begins to work on a task's files, and says when it is over with [`Self::let_go`].
    pub(in crate::pod) fn hold(&mut self, id: &str, usage: FileUse) -> Result<TaskId, Refusal> {
        let dir = PathBuf::from(&self.task(id)?.summary.task_dir);
        let id = self.id(id)?;
        self.holds.0.insert(id.clone(), (usage, dir));
        Ok(id)
    }

    /// Nobody works on the task's files any more.
    pub(in crate::pod) fn let_go(&mut self, id: &TaskId) {
        self.holds.0.remove(id);
    }

    /// Memory was loaded again; what is being worked on still is.
    pub(in crate::pod) fn keep_holds_of(&mut self, before: &mut Self) {
        self.holds = std::mem::take(&mut before.holds);
    }

    /// Refuses what needs a task's files for itself.
    pub(super) fn check_unused(&self, id: &str) -> Result<(), Refusal> {
        self.holds.0.get(id).map_or(Ok(()), |(usage, _)| Err(in_use(*usage)))
    }

    /// Refuses to let an agent work on files that are being taken away.
    pub(super) fn check_files_stay(&self, id: &str) -> Result<(), Refusal> {
        match self.holds.0.get(id) {
            Some((usage, _)) if usage.takes_them_away() => Err(in_use(*usage)),
            _ => Ok(()),
        }
    }

    /// Refuses a new task where files are being taken away, of its own id or around its directory, as the
    /// two are called.
    pub(super) fn check_place_is_free(&self, id: &str, dir: &Path) -> Result<(), Refusal> {
        let around =
            self.holds.0.values().find(|(usage, held)| usage.takes_them_away() && dir.starts_with(held));
        match around {
            Some((usage, _)) => Err(in_use(*usage)),
            None => self.check_unused(id),
        }
    }

    /// The directories that are being taken away, to be compared with a new task's where the disk can be asked.
    pub(super) fn taken_away(&self) -> TakenAway {
        let taken = self.holds.0.values().filter(|(usage, _)| usage.takes_them_away());
        TakenAway(taken.cloned().collect())
    }
}

/// Directories that are being taken away.
pub(super) struct TakenAway(Vec<(FileUse, PathBuf)>);

impl TakenAway {
    /// Refuses a directory that is in one of them by another name. Asks the disk.
    pub(super) fn check(&self, dir: &Path) -> Result<(), Refusal> {
        match self.0.iter().find(|(_, taken)| leads_into(dir, taken)) {
            Some((usage, _)) => Err(in_use(*usage)),
            None => Ok(()),
        }
    }
}

fn in_use(usage: FileUse) -> Refusal {
    Refusal::busy(&format!("files of the task are being {}; try again when that is done", usage.word()))
}
