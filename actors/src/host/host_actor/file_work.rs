//! Who works on tasks' files. Going back to what they were bears nothing beside it.

use std::path::Path;

use cofferdam_protocol::pod::{PodErrorCode, TaskSummary};
use serde_json::json;

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

    /// Why a task cannot be brought back now to what it was, as far as that is for tasks whose directories lie in its own, or
    /// around it: what is brought back in one is in the other.
    pub(super) fn if_no_neighbour_works(&self, task: &TaskSummary) -> Result<(), HostFailure> {
        let works =
            |other: &TaskSummary| other.status.is_active() || self.file_works.of(&other.id).next().is_some();
        let tasks = self.cache.tasks().into_iter();
        let working: Vec<_> = tasks.filter(|other| are_nested(task, other) && works(other)).collect();
        if working.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = working.into_iter().map(|other| other.id.as_str()).collect();
        Err(HostFailure {
            code: PodErrorCode::TaskBusy.into(),
            message: format!(
                "other tasks work in that directory, or around it: {}; wait for their end, or cancel them",
                ids.join(", ")
            ),
            data: json!({ "sharedWith": ids }),
        })
    }

    /// Why nothing may be done with a task now.
    pub(super) fn if_not_rewinding(&self, id: &str) -> Result<(), HostFailure> {
        let concerns = |other: &str| match (self.cache.task(id), self.cache.task(other)) {
            _ if other == id => true,
            (Some(task), Some(other)) => are_nested(task, other),
            _ => false,
        };
        let mut rewinds = self.file_works.0.iter().filter(|(_, work)| *work == FileWork::Rewind);
        match rewinds.find(|(other, _)| concerns(other.as_str())) {
            Some((_, work)) => Err(busy(*work)),
            None => Ok(()),
        }
    }
}

/// Whether the directory of one of two tasks lies in the other's.
fn are_nested(one: &TaskSummary, other: &TaskSummary) -> bool {
    let [one_dir, other_dir] = [one, other].map(|task| Path::new(&task.task_dir));
    let is_known = one_dir.is_absolute() && other_dir.is_absolute();
    one_dir != other_dir && is_known && (one_dir.starts_with(other_dir) || other_dir.starts_with(one_dir))
}

fn busy(work: FileWork) -> HostFailure {
    let why = match work {
        FileWork::Rewind => "the task is being brought back to what it was; try again in a moment",
        FileWork::CleanUp => "the task is being removed, or its files are; see what becomes of that first",
        FileWork::Export => "files of the task are being exported; try again when that is done",
    };
    HostRefusal::TaskBusy(why.to_owned()).into()
}
