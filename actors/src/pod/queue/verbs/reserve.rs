//! `task.reserve`: a task comes into being, with its directory and its holder.

use std::path::Path;

use cofferdam_protocol::pod::{Reserved, SandboxPolicy, Subdir, TaskReserve, TaskStatus, TaskSummary, label};
use cofferdam_storage::pod::{check_root, make_task_dir, policy};

use super::{Facts, Look, Outcome, Queue, Refusal, Site, Undo, Verb};

/// Where a task is going to work.
pub(in crate::pod) struct Place {
    root: String,
    subdir: String,
    dir: String,
    policy: SandboxPolicy,
    /// Removes the directory again.
    undo: Undo,
}

impl Verb for TaskReserve {
    type Found = Option<Result<Place, Refusal>>;

    fn admit(&self, queue: &Queue) -> Result<(), Refusal> {
        if queue.config().effective_tools(self.allow.as_deref()).is_empty() {
            let what = "no tool is left for the task; allow some of allowedTools, or writes";
            return Err(Refusal::Config(what.to_owned()));
        }
        match queue.config().sandbox_root.is_empty() {
            true => Err(Refusal::NoSandboxRoot),
            false => Ok(()),
        }
    }

    /// The refusals of the root come before those of the queue, and a refused task leaves no directory: so the root is
    /// checked in any case, and the directory made only for a task that memory accepts.
    fn look(&self, queue: &Queue, site: &Site) -> Look<Self::Found> {
        let (accepted, taken_away) = (accepted(self, queue), queue.taken_away());
        let (root, task, site) = (queue.config().sandbox_root.clone(), self.task_id.clone(), site.clone());
        Look::Blocking(Box::new(move || {
            let place = || {
                let root = check_root(&root, &site.protected)?;
                let subdir = accepted?;
                taken_away.check(&Path::new(&root).join(subdir.to_string()).join(task.as_str()))?;
                let made = make_task_dir(&site.disk, Path::new(&root), &subdir, &task)?;
                let dir = made.path.to_string_lossy().into_owned();
                let policy = policy(&root, &dir);
                let undo = Box::new(move || made.unmake(&site.disk));
                Ok(Place { root, subdir: subdir.to_string(), dir, policy, undo })
            };
            Some(place())
        }))
    }

    fn discard(found: Self::Found) -> Option<Undo> {
        Some(found?.ok()?.undo)
    }

    fn apply(self, queue: &mut Queue, facts: Facts<Self::Found>) -> Result<Outcome<Reserved>, Refusal> {
        let Place { root, subdir, dir, policy, undo } = facts.found.unwrap_or(Err(Refusal::NoSandboxRoot))?;
        let start_now = queue.starts_new();
        let policy = start_now.then_some(policy);
        let config = queue.config();
        let (status, queued_at) = match start_now {
            true => (TaskStatus::Starting, 0),
            false => (TaskStatus::Queued, facts.at),
        };
        let summary = TaskSummary {
            id: self.task_id.to_string(),
            session_id: self.session_id,
            main_session_id: self.main_session_id,
            label: label(self.label.as_deref(), &self.description),
            description: self.description,
            status,
            subdir,
            task_dir: dir,
            sandbox_root: root,
            created_at: facts.at,
            queued_at,
            started_at: 0,
            ended_at: 0,
            turns: 0,
            timeout_ms: config.timeout_for(self.timeout_ms),
            allow: config.effective_tools(self.allow.as_deref()),
            available_tools: Vec::new(),
            preset_id: self.preset_id.unwrap_or_else(|| config.preset_id.clone()),
            model: self.model,
            sandbox_mode: String::new(),
            sandbox_probe: String::new(),
            fs_denied: false,
            last_text: String::new(),
            error: String::new(),
            legacy: false,
            turn_deadline: 0,
            queued_position: 0,
        };
        queue.insert(summary, facts.at)?;
        queue.lease(&self.task_id, &self.lease_id);
        let task = queue.shown(queue.task(self.task_id.as_str())?);
        let queued_position = task.queued_position;
        Ok(Outcome::DoneOrUndo(Reserved { task, start_now, queued_position, policy }, undo))
    }
}

/// What memory says: where below the root the task's directory goes, if it is accepted.
fn accepted(request: &TaskReserve, queue: &Queue) -> Result<Subdir, Refusal> {
    let subdir = Subdir::new(&request.subdir).map_err(Refusal::Subdir)?;
    if queue.task(request.task_id.as_str()).is_ok() {
        return Err(Refusal::busy("there is a task of that taskId already; choose another one"));
    }
    if queue.by_session(&request.session_id).is_some() {
        return Err(Refusal::busy("there is a task of that sessionId already; choose another one"));
    }
    let dir = Path::new(&queue.config().sandbox_root).join(subdir.to_string()).join(request.task_id.as_str());
    queue.check_place_is_free(request.task_id.as_str(), &dir)?;
    match queue.starts_new() || queue.queues_new() {
        true => Ok(subdir),
        false => Err(Refusal::busy("all slots are taken, and the queue is off; try again later")),
    }
}
