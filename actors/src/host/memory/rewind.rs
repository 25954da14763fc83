//! Going back to what was before a turn: files, the agent's directory and the conversation, all of it or nothing.
//!
//! What is intended is written down first and removed last; every step in between can be done again, but for that of the
//! files, which people change: when that is done it is written down, too. First there is a
//! checkpoint of what there is, and undoing a rewind is nothing but a rewind to that one: so it can be undone in turn, and
//! whatever was done since is never lost.

use std::io;
use std::mem::{replace, take};
use std::path::Path;
use std::sync::Arc;

use cofferdam_protocol::session::SessionErrorCode;
use cofferdam_storage::pod::AgentFile;
use tokio::sync::OwnedMutexGuard;

use super::messages::{RewindTo, UndoLastRewind, WentBack, Whose};
use super::trees::missing;
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
        let Some(Undo { kept, turn, of, .. }) = turns.undo else {
            return Err(
                HostRefusal::BadRequest("the task has no rewind that could be undone".to_owned()).into()
            );
        };
        let done = self.go(&whose, &mut slot, turns.rewinds, kept, turn, true).await?;
        Ok(WentBack { undid: Some(of), notes: [notes, done.notes].concat(), ..done })
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
        let (incomplete, before) = Default::default();
        let mut intent = Intent { keep, target, turn, undo, incomplete, files: false, before };
        let written = self.write_intent(whose, &intent).await;
        written.map_err(|error| {
            failed(format!("nothing was changed, since that cannot be written down: {error}"))
        })?;
        self.step("rewind.intent").await?;
        match self.keep_all(whose, &intent.keep).await {
            Ok(incomplete) => intent.incomplete = incomplete,
            Err(failure) => {
                self.drop_intent(whose).await?;
                return Err(failure);
            }
        }
        self.carry_out(whose, slot, intent).await
    }

    /// Goes on with a rewind that is not finished. As long as nothing was changed people went on working, so what there is
    /// now is kept, and not only what there was when the rewind began.
    pub(super) async fn resume(
        &self,
        whose: &Whose,
        slot: &mut Slot,
        mut intent: Intent,
    ) -> Result<WentBack, HostFailure> {
        if intent.files || self.trees.is_none() {
            return self.carry_out(whose, slot, intent).await;
        }
        match self.keep_anew(whose, slot, &intent.keep).await {
            Ok((keep, incomplete)) => {
                intent.incomplete = incomplete;
                let first = replace(&mut intent.keep, keep);
                if intent.before.is_empty() {
                    intent.before = first;
                }
            }
            Err(failure) => {
                self.drop_intent(whose).await?;
                return Err(failure);
            }
        }
        self.write_intent(whose, &intent).await.map_err(|error| unfinished(&error.to_string()))?;
        self.carry_out(whose, slot, intent).await
    }

    /// Keeps what there is now under a name that is like another one.
    async fn keep_anew(
        &self,
        whose: &Whose,
        slot: &Slot,
        name: &str,
    ) -> Result<(String, String), HostFailure> {
        let (Some(trees), Some(agent)) = (&self.trees, self.agent_dir(&whose.task)) else {
            return Err(unfinished("this host takes no checkpoints"));
        };
        self.refresh_copy(whose, slot).await?;
        let keep = trees.free_name([&whose.dir, &agent], name).await.map_err(failed)?;
        let incomplete = self.keep_all(whose, &keep).await?;
        Ok((keep, incomplete))
    }

    /// Keeps what there is now. Says what of it is not kept as it is.
    async fn keep_all(&self, whose: &Whose, name: &str) -> Result<String, HostFailure> {
        let (Some(trees), Some(agent)) = (&self.trees, self.agent_dir(&whose.task)) else {
            return Err(unfinished("this host takes no checkpoints"));
        };
        let cannot = |why| failed(format!("nothing was changed, since what there is cannot be kept: {why}"));
        let files = trees.keep(&whose.dir, name).await.map_err(cannot)?;
        self.step("rewind.kept").await?;
        let agent = trees.keep(&agent, name).await.map_err(cannot)?;
        self.step("rewind.kept").await?;
        Ok(missing(&files, &agent))
    }

    /// Makes the copy what the conversation is now, since that is what a checkpoint of the agent's directory keeps of it.
    /// Whoever else writes to the store does not know of the copy.
    async fn refresh_copy(&self, whose: &Whose, slot: &Slot) -> Result<(), HostFailure> {
        let recalled = self.recall(whose, slot).await;
        let copied = match recalled.conversation {
            Some(conversation) => self.write_copy(whose, Arc::new(conversation)).await,
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

    /// Carries out what is left of a rewind when what there is is kept.
    async fn carry_out(
        &self,
        whose: &Whose,
        slot: &mut Slot,
        mut intent: Intent,
    ) -> Result<WentBack, HostFailure> {
        let (Some(trees), Some(agent)) = (&self.trees, self.agent_dir(&whose.task)) else {
            return Err(unfinished("this host takes no checkpoints"));
        };
        let mut done = WentBack { turn: intent.turn, ..WentBack::default() };
        let in_one_go = !intent.files;
        if !intent.files {
            match trees.rewind(&whose.dir, &intent.target).await {
                Ok(changed) => (done.changed, done.notes) = (changed.paths, changed.notes),
                Err(why) => {
                    self.drop_intent(whose).await?;
                    return Err(failed(format!("the task's files cannot be brought back: {why}")));
                }
            }
            self.step("rewind.files").await?;
            // They were what they are to be: whoever began has done that, after everything was kept.
            let dirs: [&Path; 2] = [&whose.dir, &agent];
            let before = take(&mut intent.before);
            if done.changed == 0
                && !before.is_empty()
                && trees.has(dirs, &before).await.map_err(|why| unfinished(&why))?
            {
                intent.keep = before;
            }
            intent.files = true;
            self.write_intent(whose, &intent).await.map_err(|error| unfinished(&error.to_string()))?;
        }
        match trees.rewind(&agent, &intent.target).await {
            Ok(changed) => done.notes.extend(changed.notes),
            // People may have changed files since these were brought back.
            Err(why) if !in_one_go => return Err(unfinished(&why)),
            Err(why) => {
                // All of it or nothing.
                intent.files = false;
                self.write_intent(whose, &intent).await.map_err(|error| unfinished(&error.to_string()))?;
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
        if !intent.incomplete.is_empty() {
            done.notes
                .push(format!("an undo does not bring back all of what there was: {}", intent.incomplete));
        }
        let at = self.now_ms().cast_signed();
        let listed = self.change_turns(&whose.task, move |turns| turns.went_back(intent, at));
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

    async fn write_intent(&self, whose: &Whose, intent: &Intent) -> io::Result<()> {
        let (task, bytes) = (whose.task.clone(), serde_json::to_vec(intent)?);
        self.on_disk(move |dirs| dirs.write(&task, AgentFile::Rewind, &bytes)).await.map(drop)
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
