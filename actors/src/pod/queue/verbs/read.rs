//! Methods that change nothing.

use cofferdam_protocol::pod::{
    ConfigGet, ConfigResult, ExportList, ExportRows, LegacyLog, TaskBySession, TaskGet, TaskLegacyLog,
    TaskList, TaskOrNull, TaskResult, TaskRows,
};
use cofferdam_storage::pod::ExportPage;

use super::{Facts, Outcome, Queue, Refusal, Verb};

impl Verb for ConfigGet {
    type Found = ();

    fn apply(self, queue: &mut Queue, _: Facts<()>) -> Result<Outcome<ConfigResult>, Refusal> {
        Ok(Outcome::Done(ConfigResult { config: queue.config().clone() }))
    }
}

impl Verb for TaskList {
    type Found = ();

    fn apply(self, queue: &mut Queue, _: Facts<()>) -> Result<Outcome<TaskRows>, Refusal> {
        Ok(Outcome::Done(TaskRows { tasks: queue.list(), truncated: false }))
    }
}

impl Verb for TaskGet {
    type Found = ();

    fn apply(self, queue: &mut Queue, _: Facts<()>) -> Result<Outcome<TaskResult>, Refusal> {
        queue.answer(&self.task_id)
    }
}

impl Verb for TaskBySession {
    type Found = ();

    fn apply(self, queue: &mut Queue, _: Facts<()>) -> Result<Outcome<TaskOrNull>, Refusal> {
        let task = queue.by_session(&self.session_id).map(|task| queue.shown(task));
        Ok(Outcome::Done(TaskOrNull { task }))
    }
}

impl Verb for TaskLegacyLog {
    type Found = ();

    fn apply(self, queue: &mut Queue, _: Facts<()>) -> Result<Outcome<LegacyLog>, Refusal> {
        queue.task(&self.task_id)?;
        Ok(Outcome::Read(Box::new(move |db| Ok(db.legacy_log(&self.task_id)?))))
    }
}

impl Verb for ExportList {
    type Found = ();

    fn apply(self, _: &mut Queue, _: Facts<()>) -> Result<Outcome<ExportRows>, Refusal> {
        let size = |number: i64| usize::try_from(number.max(0)).unwrap_or(usize::MAX);
        let page = ExportPage {
            export: self.export_id,
            item_offset: self.item_offset.map_or(0, size),
            item_limit: self.item_limit.map_or(ExportPage::ITEMS, size),
        };
        Ok(Outcome::Read(Box::new(move |db| {
            let found = db.exports(&page)?;
            match page.export {
                Some(id) if found.exports.is_empty() => Err(Refusal::ExportNotFound(id)),
                Some(_) => Ok(found),
                None => Ok(ExportRows { remembered: db.remembered_targets()?, ..found }),
            }
        })))
    }
}
