//! Who works on tasks' files. Going back to what they were bears nothing beside it.

use super::HostActor;
use crate::host::failure::{HostFailure, HostRefusal};

/// What is done with a task's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileWork {
    /// They are brought back to what they were.
    Rewind,
    /// They, or the task's record, are removed.
    CleanUp,
    /// Some are exported.
    Export,
}

/// All that is being done with them; the same as often as it is done.
#[derive(Debug, Default)]
pub(super) struct FileWorks(Vec<(String, FileWork)>);

impl FileWorks {
    /// Something begins.
    pub(super) fn begin(&mut self, task: &str, work: FileWork) {
        self.0.push((task.to_owned(), work));
    }

    /// Something that began is done, or has failed.
    pub(super) fn end(&mut self, task: &str, work: FileWork) {
        if let Some(at) = self.0.iter().position(|(other, its)| other == task && *its == work) {
            self.0.swap_remove(at);
        }
    }

    fn of<'a>(&'a self, task: &'a str) -> impl Iterator<Item = FileWork> + 'a {
        self.0.iter().filter(move |(other, _)| other == task).map(|(_, work)| *work)
    }
}

impl HostActor {
    /// Why a task cannot be brought back now to what it was, as far as that is for what is done with its files.
    pub(super) fn if_nothing_works_on_files(&self, task: &str) -> Result<(), HostFailure> {
        match self.file_works.of(task).next() {
            Some(work) => Err(busy(work)),
            None => Ok(()),
        }
    }

    /// Why nothing may be done with a task now.
    pub(super) fn if_not_rewinding(&self, task: &str) -> Result<(), HostFailure> {
        match self.file_works.of(task).find(|work| *work == FileWork::Rewind) {
            Some(work) => Err(busy(work)),
            None => Ok(()),
        }
    }
}

fn busy(work: FileWork) -> HostFailure {
    let why = match work {
        FileWork::Rewind => "the task is being brought back to what it was; try again in a moment",
        FileWork::CleanUp => "the task is being removed, or its files are; see what becomes of that first",
        FileWork::Export => "files of the task are being exported; try again when that is done",
    };
    HostRefusal::TaskBusy(why.to_owned()).into()
}
