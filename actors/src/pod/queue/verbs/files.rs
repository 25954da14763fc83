//! `files.list`, `files.stat`, `files.read`: what a task has made, as a person may look at it.

use cofferdam_protocol::pod::{FileRows, FileStat, FileText, FilesList, FilesRead, FilesStat};
use cofferdam_storage::pod::{TaskPlace, files};

use super::{Facts, Later, Outcome, Queue, Refusal, Verb};

/// The most characters of a text that the wire has room for (spec §7).
const MAX_CHARS: i64 = 1_000_000;

impl Verb for FilesList {
    type Found = ();

    fn apply(self, queue: &mut Queue, _: Facts<()>) -> Result<Outcome<FileRows>, Refusal> {
        let place = place(queue, &self.task_id)?;
        Ok(Later::answer(Vec::new(), move || files::list(place.as_ref())))
    }
}

impl Verb for FilesStat {
    type Found = ();

    fn apply(self, queue: &mut Queue, _: Facts<()>) -> Result<Outcome<FileStat>, Refusal> {
        let place = place(queue, &self.task_id)?;
        Ok(Later::answer(Vec::new(), move || files::stat(place.as_ref(), &self.rel_path)))
    }
}

impl Verb for FilesRead {
    type Found = ();

    fn apply(self, queue: &mut Queue, _: Facts<()>) -> Result<Outcome<FileText>, Refusal> {
        let place = place(queue, &self.task_id)?;
        let config = queue.config();
        let limit = u64::try_from(config.preview_bytes).unwrap_or(0);
        let chars = self.max_chars.unwrap_or(config.preview_chars).clamp(1, MAX_CHARS);
        let chars = usize::try_from(chars).unwrap_or(1);
        Ok(Later::answer(Vec::new(), move || files::read(place.as_ref(), &self.rel_path, limit, chars)))
    }
}

/// Where the task's files are, if they are on this system.
fn place(queue: &Queue, task: &str) -> Result<Option<TaskPlace>, Refusal> {
    Ok(TaskPlace::of(&queue.task(task)?.summary))
}
