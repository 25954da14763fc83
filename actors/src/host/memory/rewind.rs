//! Going back to what was before a turn: files, the agent's directory and the conversation, all of it or nothing.
//!
//! What is intended is written down first and removed last; every step in between can be done again. First there is a
//! checkpoint of what there is, and undoing a rewind is nothing but a rewind to that one: so it can be undone in turn, and
//! whatever was done since is never lost.

use std::io;
use std::path::Path;

use cofferdam_protocol::session::SessionErrorCode;
use cofferdam_storage::pod::AgentFile;
use tokio::sync::OwnedMutexGuard;

use super::messages::{RewindTo, UndoLastRewind, WentBack, Whose};
use super::turns::{Intent, Undo};
use super::{Kept, Slot};
use crate::host::failure::{HostFailure, HostRefusal};
use crate::host::live_task::failed;

type Held = OwnedMutexGuard<Slot>;

impl Kept {
    /// Goes back to what was before a turn.
    pub(super) async fn rewind_to(&self, to: RewindTo, mut slot: Held) -> Result<WentBack, HostFailure> {
        let RewindTo { whose, turn } = to;
        let notes = self.may_rewind(&whose, &mut slot).await?;
        let turns = self.turns(&whose.task).await.map_err(|error| unreadable(&error))?;
        let record = turns.get(turn).ok_or_else(|| {
            HostRefusal::BadRequest(format!(
                "the task has no turn {turn} that is known; see cofferdam task turns"
            ))
        })?;
        if record.kept.is_empty() {
            let why = &record.why;
            return Err(HostRefusal::BadRequest(format!(
                "there is no checkpoint from before turn {turn}, so it cannot be gone back to: {why}"
            ))
            .into());
        }
        let target = record.kept.clone();
        let done = self.go(&whose, &mut slot, turns.rewinds, target, turn, false).await?;
        Ok(WentBack { notes: [notes, done.notes].concat(), ..done })
    }

    /// Takes the last rewind back.
    pub(super) async fn undo_last(
        &self,
        undo: UndoLastRewind,
        mut slot: Held,
    ) -> Result<WentBack, HostFailure> {
        let UndoLastRewind { whose } = undo;
        let notes = self.may_rewind(&whose, &mut slot).await?;
        let turns = self.turns(&whose.task).await.map_err(|error| unreadable(&error))?;
        let Some(Undo { kept, turn }) = turns.undo else {
            return Err(
                HostRefusal::BadRequest("the task has no rewind that could be undone".to_owned()).into()
            );
        };
        let done = self.go(&whose, &mut slot, turns.rewinds, kept, turn, true).await?;
        Ok(WentBack { notes: [notes, done.notes].concat(), ..done })
    }

    /// Finishes what is unfinished. A turn that runs is in the way, and so is one whose agent nobody holds any more, since the
    /// core has gone, and which still ends: whoever held it says when nothing of it is left.
    async fn may_rewind(&self, whose: &Whose, slot: &mut Slot) -> Result<Vec<String>, HostFailure> {
        if slot.open.is_some() {
            let why = "the task's agent is in a turn; wait for its end, or cancel it";
            return Err(HostRefusal::TaskRunning(why.to_owned()).into());
        }
        let mut notes = Vec::new();
        self.mend(whose, slot, &mut notes).await?;
        Ok(notes)
    }

    async fn go(
        &self,
        whose: &Whose,
        slot: &mut Slot,
        rewinds: u64,
        target: String,
        turn: u64,
        undo: bool,
    ) -> Result<WentBack, HostFailure> {
        let (Some(trees), Some(agent)) = (&self.trees, self.agent_dir(&whose.task)) else {
            return Err(HostRefusal::BadRequest("this host takes no checkpoints".to_owned()).into());
        };
        let task = whose.task.clone();
        self.on_disk(move |dirs| dirs.make(&task)).await.map_err(|error| failed(error.to_string()))?;
        self.refresh_copy(whose, slot).await?;
        let dirs: [&Path; 2] = [&whose.dir, &agent];
        let keep = trees.free_name(dirs, &format!("rewind-{}", rewinds + 1)).await.map_err(failed)?;
        let intent = Intent { keep, target, turn, undo };
        let bytes = serde_json::to_vec(&intent).map_err(|error| failed(error.to_string()))?;
        let task = whose.task.clone();
        let written = self.on_disk(move |dirs| dirs.write(&task, AgentFile::Rewind, &bytes)).await;
        written.map_err(|error| {
            failed(format!("nothing was changed, since that cannot be written down: {error}"))
        })?;
        self.carry_out(whose, slot, intent).await
    }

    /// Makes the copy what the conversation is now, since that is what a checkpoint of the agent's directory keeps of it.
    /// Whoever else writes to the store does not know of the copy.
    async fn refresh_copy(&self, whose: &Whose, slot: &Slot) -> Result<(), HostFailure> {
        let recalled = self.recall(whose, slot).await;
        let copied = match recalled.conversation {
            Some(conversation) => self.write_copy(whose, conversation).await,
            None => match recalled.copy_unread {
                Some(error) => Err(error),
                None if recalled.removed => self.remove_copy(whose).await,
                None => Ok(()),
            },
        };
        copied.map_err(|error| {
            failed(format!("nothing was changed, since the conversation cannot be kept: {error}"))
        })
    }

    /// Carries a rewind out, or what is left of it.
    pub(super) async fn carry_out(
        &self,
        whose: &Whose,
        slot: &mut Slot,
        intent: Intent,
    ) -> Result<WentBack, HostFailure> {
        let (Some(trees), Some(agent)) = (&self.trees, self.agent_dir(&whose.task)) else {
            return Err(unfinished("this host takes no checkpoints"));
        };
        self.step("rewind.intent").await?;
        for dir in [whose.dir.as_path(), &agent] {
            if let Err(why) = trees.keep_once(dir, &intent.keep).await {
                self.drop_intent(whose).await?;
                return Err(failed(format!(
                    "nothing was changed, since what there is cannot be kept: {why}"
                )));
            }
            self.step("rewind.kept").await?;
        }
        let mut done = WentBack { turn: intent.turn, ..WentBack::default() };
        match trees.rewind(&whose.dir, &intent.target).await {
            Ok(changed) => (done.changed, done.notes) = (changed.paths, changed.notes),
            Err(why) => {
                self.drop_intent(whose).await?;
                return Err(failed(format!("the task's files cannot be brought back: {why}")));
            }
        }
        self.step("rewind.files").await?;
        match trees.rewind(&agent, &intent.target).await {
            Ok(changed) => done.notes.extend(changed.notes),
            Err(why) => {
                // All of it or nothing.
                trees.rewind(&whose.dir, &intent.keep).await.map_err(|error| unfinished(&error))?;
                self.drop_intent(whose).await?;
                return Err(failed(format!("the agent's directory cannot be brought back: {why}")));
            }
        }
        self.step("rewind.agent").await?;
        let wanted = self.read_copy(whose).await;
        let wanted = wanted
            .map_err(|error| unfinished(&format!("the copy of the conversation cannot be read: {error}")))?;
        slot.unstored = None;
        if let Err(error) = self.restore(whose, wanted).await {
            match error.code {
                // The copy stands for what cannot be read.
                SessionErrorCode::Corrupt | SessionErrorCode::IncompatibleVersion => done.notes.push(format!(
                    "the stored conversation cannot be read, and was left as it is; its copy stands for it: {}",
                    error.message
                )),
                _ => return Err(unfinished(&error.message)),
            }
        }
        self.step("rewind.conversation").await?;
        let (keep, turn) = (intent.keep, intent.turn);
        let listed = self.change_turns(&whose.task, move |turns| {
            turns.rewinds += 1;
            turns.open = None;
            turns.undo = Some(Undo { kept: keep, turn });
        });
        listed.await.map_err(|error| unfinished(&error.to_string()))?;
        self.step("rewind.turns").await?;
        self.drop_intent(whose).await?;
        self.step("rewind.done").await?;
        Ok(done)
    }

    /// What was intended and not finished.
    pub(super) async fn intent(
        &self,
        task: &cofferdam_protocol::pod::TaskId,
    ) -> Result<Option<Intent>, HostFailure> {
        let task = task.clone();
        let read = self.on_disk(move |dirs| {
            let bytes = dirs.read(&task, AgentFile::Rewind)?;
            Ok(bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose()?)
        });
        Ok(read.await.map_err(|error| unfinished(&error.to_string()))?.flatten())
    }

    async fn drop_intent(&self, whose: &Whose) -> Result<(), HostFailure> {
        let task = whose.task.clone();
        let dropped = self.on_disk(move |dirs| dirs.remove_file(&task, AgentFile::Rewind)).await;
        dropped.map(drop).map_err(|error| unfinished(&error.to_string()))
    }

    /// A step has been reached; a test may end the process there.
    async fn step(&self, name: &'static str) -> Result<(), HostFailure> {
        let reached = self.on_disk(move |dirs| dirs.step(name)).await;
        reached.map(drop).map_err(|error| unfinished(&error.to_string()))
    }
}

fn unfinished(why: &str) -> HostFailure {
    failed(format!(
        "a rewind of the task is not finished: {why}; it goes on with the next rewind, turn or start"
    ))
}

/// The list of turns is of no use.
pub(super) fn unreadable(error: &io::Error) -> HostFailure {
    failed(format!("the list of the task's turns cannot be read: {error}"))
}
