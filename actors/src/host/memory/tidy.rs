//! What goes with a task, and what a host that died has left.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use actix::prelude::Recipient;
use cofferdam_protocol::pod::TaskId;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::messages::{ForgetTask, Whose};
use super::{Kept, Slot};

impl Kept {
    /// Forgets the checkpoints of a task, and what else is kept of it if its record has gone.
    pub(super) async fn forget(&self, forget: ForgetTask, mut slot: OwnedMutexGuard<Slot>) -> Vec<String> {
        let ForgetTask { task, dir, record, unless_used } = forget;
        let Ok(task) = TaskId::new(task) else { return Vec::new() };
        if unless_used && let Err(why) = self.is_over(&task).await {
            return vec![why];
        }
        let mut notes = Vec::new();
        let known = self.turns(&task).await.map(|turns| PathBuf::from(turns.dir)).unwrap_or_default();
        let dir = if dir.is_absolute() { dir } else { known };
        if record {
            *slot = Slot::default();
            // First, so that whoever finds what is left of this knows that it is no loss of a database.
            let gone = self.change_turns(&task, |turns| turns.gone = !turns.dir.is_empty());
            if let Err(error) = gone.await {
                notes.push(format!("that {task} has gone is not written down: {error}"));
            }
        }
        let mut left_trees = false;
        if let (Some(trees), Some(agent)) = (&self.trees, self.agent_dir(&task)) {
            for dir in [dir.as_path(), &agent].into_iter().filter(|dir| dir.is_absolute()) {
                if let Err(why) = trees.forget(dir).await {
                    left_trees = true;
                    notes.push(format!("checkpoints of {} are left: {why}", dir.display()));
                }
            }
        }
        // Nothing else knows where the task worked: the next host that comes tries again.
        if record && left_trees {
            return notes;
        }
        let left = match record {
            true => {
                let removed = task.clone();
                self.on_disk(move |dirs| dirs.remove(&removed)).await.map(drop)
            }
            false => {
                let forgotten = self.change_turns(&task, |turns| {
                    turns.undo = None;
                    for record in turns.turns.iter_mut().filter(|record| !record.kept.is_empty()) {
                        record.kept.clear();
                        record.why =
                            "the task's files were removed, and its checkpoints with them".to_owned();
                    }
                });
                forgotten.await
            }
        };
        if let Err(error) = left {
            notes.push(format!("what was kept of {task} is left, or some of it: {error}"));
        }
        notes
    }

    /// Finishes rewinds and turns, and has removed what was kept of tasks that are no more.
    pub(super) async fn tidy(
        &self,
        tasks: Vec<(Arc<Mutex<Slot>>, Whose)>,
        all: Option<Vec<String>>,
        forget: Recipient<ForgetTask>,
    ) -> Vec<String> {
        let found = match self.on_disk(|dirs| dirs.tasks()).await {
            Ok(found) => found.unwrap_or_default(),
            Err(error) => return vec![format!("what is kept of tasks cannot be listed: {error}")],
        };
        let mut notes = Vec::new();
        for (slot, whose) in tasks {
            if found.binary_search(&whose.task).is_err() {
                continue;
            }
            let mut slot = slot.lock_owned().await;
            let mut said = Vec::new();
            if let Err(failure) = self.mend(&whose, &mut slot, &mut said).await {
                said.push(failure.message);
            }
            notes.extend(said.into_iter().map(|note| format!("{}: {note}", whose.task)));
        }
        // That there are no tasks at all may as well be the loss of a database: it proves nothing.
        let all: HashSet<String> = all.unwrap_or_default().into_iter().collect();
        if all.is_empty() {
            return notes;
        }
        for task in found.into_iter().filter(|task| !all.contains(task.as_str())) {
            let (task, dir) = (task.into(), PathBuf::new());
            let gone = ForgetTask { task, dir, record: true, unless_used: true };
            notes.extend(forget.send(gone).await.unwrap_or_default());
        }
        notes
    }

    /// Whether a task that is not in the database is no more; otherwise why that is not certain: the database may be an older
    /// one, and know nothing of a task that is there.
    async fn is_over(&self, task: &TaskId) -> Result<(), String> {
        let turns = match self.turns(task).await {
            Ok(turns) => turns,
            Err(error) => {
                return Err(format!(
                    "the task {task} is not in the database, but what is kept of it is left, since its list of turns \
                     cannot be read: {error}"
                ));
            }
        };
        let dir = PathBuf::from(turns.dir);
        if turns.gone || !dir.is_absolute() {
            return Ok(());
        }
        let looked_at = dir.clone();
        let looked = tokio::task::spawn_blocking(move || looked_at.symlink_metadata()).await;
        match looked {
            Ok(Err(error)) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(())
            }
            _ => Err(format!(
                "the task {task} is not in the database, but its directory is there, so its conversation, its agent's home \
                 and its checkpoints are left; if it is not needed any more, remove {}, and they go at the next start",
                dir.display()
            )),
        }
    }
}
