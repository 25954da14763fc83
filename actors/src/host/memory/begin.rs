//! What is kept before a turn, and after it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_protocol::host::{EntryKind, TurnList};
use cofferdam_protocol::pod::TaskId;
use cofferdam_protocol::session::Envelope;
use cofferdam_storage::pod::AgentFile;
use cofferdam_storage::session::redact;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use super::heard::Heard;
use super::messages::{BeginTurn, Begun, Remembered, Whose};
use super::store::Recalled;
use super::turns::{OpenTurn, TurnRecord, Turns};
use super::{Kept, Slot, apart, past};
use crate::host::failure::HostFailure;

/// How long checkpoints before a turn may take. The turn begins without them after that.
const CHECKPOINTS: Duration = Duration::from_secs(60);

type Held = OwnedMutexGuard<Slot>;

impl Kept {
    /// The task's directory, and what was said before.
    pub(super) async fn make_ready(&self, whose: &Whose, mut slot: Held) -> Remembered {
        let mut ready = Remembered::default();
        if let Err(failure) = self.mend(whose, &mut slot, &mut ready.notes).await {
            ready.notes.push(failure.message);
        }
        let task = whose.task.clone();
        match self.on_disk(move |dirs| dirs.make(&task).map(|()| dirs.dir(&task))).await {
            Ok(dir) => ready.dir = dir,
            Err(error) => ready.notes.push(format!("the agent has no directory of its own: {error}")),
        }
        // One that cannot be read was mentioned.
        ready.last_turn = self.turns(&whose.task).await.map_or(0, |turns| turns.highest());
        let recalled = self.recall(whose, &slot).await;
        let trouble = trouble(&recalled);
        match recalled.conversation {
            Some(conversation) => {
                ready.notes.extend(trouble);
                ready.past = apart(move || past::entries(&conversation)).await;
            }
            None => ready.unreadable = recalled.trouble,
        }
        ready
    }

    /// Keeps what there is before a turn: the conversation's copy first, then checkpoints.
    pub(super) async fn begin(&self, begin: BeginTurn, mut slot: Held) -> Result<Begun, HostFailure> {
        let BeginTurn { whose, turn, told } = begin;
        let mut notes = Vec::new();
        // Whoever held the task before has said all it had to say of the last turn.
        slot.open = None;
        self.mend(&whose, &mut slot, &mut notes).await?;
        let mut recalled = self.recall(&whose, &slot).await;
        notes.extend(trouble(&recalled));
        if recalled.removed {
            notes.push("the stored conversation was removed; a new one begins".to_owned());
        }
        let given = recalled.conversation.take().filter(|conversation| !conversation.messages.is_empty());
        let given = given.map(Arc::new);
        let copied = match &given {
            Some(conversation) => self.write_copy(&whose, Arc::clone(conversation)).await,
            // It may be all that is left of what was said.
            None => match recalled.copy_unread.take() {
                Some(error) => Err(error),
                None => self.remove_copy(&whose).await,
            },
        };
        let messages = given.as_ref().map_or(0, |conversation| conversation.messages.len());
        slot.open = Some(given.clone());
        if self.dirs.is_some() {
            let record = TurnRecord {
                turn,
                at: self.now_ms().cast_signed(),
                asked: told.clone(),
                ..TurnRecord::default()
            };
            let kept = match copied {
                Err(error) => Err(format!("the copy of the conversation is not what it should be: {error}")),
                Ok(()) => self.keep_before(&whose, turn).await,
            };
            let record = match kept {
                Ok((kept, incomplete)) => {
                    if !incomplete.is_empty() {
                        notes
                            .push(format!("the checkpoint from before this turn is not whole: {incomplete}"));
                    }
                    TurnRecord { kept, incomplete, ..record }
                }
                Err(why) => {
                    // That this host takes none at all is no news.
                    let told = self
                        .trees
                        .as_ref()
                        .map(|_| format!("there is no checkpoint from before this turn: {why}"));
                    notes.extend(told);
                    TurnRecord { why, ..record }
                }
            };
            let dir = whose.dir.to_string_lossy().into_owned();
            let listed = self.change_turns(&whose.task, move |turns| {
                turns.dir = dir;
                turns.begin(record, &told, messages);
            });
            if let Err(error) = listed.await {
                notes.push(format!("this turn will not be listed, and cannot be gone back to: {error}"));
            }
        }
        Ok(Begun { conversation: given, notes })
    }

    /// Stores what was heard of a turn.
    pub(super) async fn end(&self, whose: &Whose, heard: Heard, mut slot: Held) -> Vec<String> {
        let given = slot.open.take().flatten();
        let mut notes = self.add(whose, &mut slot, given, heard).await;
        if let Err(error) = self.change_turns(&whose.task, |turns| turns.open = None).await {
            notes.push(format!("the end of the turn is not written down: {error}"));
        }
        notes
    }

    /// What was said and done.
    pub(super) async fn past(&self, whose: &Whose, mut slot: Held) -> Vec<(EntryKind, String)> {
        let mut notes = Vec::new();
        if let Err(failure) = self.mend(whose, &mut slot, &mut notes).await {
            notes.push(failure.message);
        }
        let recalled = self.recall(whose, &slot).await;
        notes.extend(trouble(&recalled));
        let mut entries = match recalled.conversation {
            Some(conversation) => apart(move || past::entries(&conversation)).await,
            None => Vec::new(),
        };
        entries.extend(notes.into_iter().map(|note| (EntryKind::Note, note)));
        entries
    }

    /// The turns there were.
    pub(super) async fn list_turns(&self, whose: &Whose, mut slot: Held) -> Result<TurnList, HostFailure> {
        self.mend(whose, &mut slot, &mut Vec::new()).await?;
        let turns = self.turns(&whose.task).await.map_err(|error| super::rewind::unreadable(&error))?;
        Ok(turns.shown())
    }

    /// Finishes what a host that died has left: a rewind, and a turn that did not end.
    pub(super) async fn mend(
        &self,
        whose: &Whose,
        slot: &mut Slot,
        notes: &mut Vec<String>,
    ) -> Result<(), HostFailure> {
        if let Some(intent) = self.intent(&whose.task).await? {
            notes.extend(self.resume(whose, slot, intent).await?.notes);
        }
        if slot.open.is_some() {
            return Ok(());
        }
        let open = match self.turns(&whose.task).await {
            Ok(turns) => turns.open,
            Err(error) => {
                notes.push(format!("the list of turns cannot be read: {error}"));
                None
            }
        };
        if let Some(open) = open {
            let stored = self.recall(whose, slot).await.conversation;
            let heard = Heard::new(open.turn, Some(&open.told));
            // It may have been stored, and only that it is over was not written down.
            if !apart(move || stored.is_some_and(|stored| has(&stored, &open))).await {
                notes.extend(self.add(whose, slot, None, heard).await);
            }
            if let Err(error) = self.change_turns(&whose.task, |turns| turns.open = None).await {
                notes.push(format!("the end of the turn is not written down: {error}"));
            }
        }
        Ok(())
    }

    /// Takes the checkpoints from before a turn. Returns their name, and what is not in them as it is.
    async fn keep_before(&self, whose: &Whose, turn: u64) -> Result<(String, String), String> {
        let Some(trees) = &self.trees else { return Err("this host takes none".to_owned()) };
        let Some(agent) = self.agent_dir(&whose.task) else { return Err("this host takes none".to_owned()) };
        let taken = async {
            let dirs: [&Path; 2] = [&whose.dir, &agent];
            let name = trees.free_name(dirs, &format!("turn-{turn}")).await?;
            let incomplete = trees.keep_both(dirs, &name).await?;
            Ok((name, incomplete))
        };
        let limit = timeout(self.real(CHECKPOINTS), taken);
        limit.await.unwrap_or_else(|_| Err("it took more than 60 s".to_owned()))
    }

    /// Where the task's own directory is.
    pub(super) fn agent_dir(&self, task: &TaskId) -> Option<std::path::PathBuf> {
        self.dirs.as_ref().map(|dirs| dirs.dir(task))
    }

    /// The list of turns.
    pub(super) async fn turns(&self, task: &TaskId) -> io::Result<Turns> {
        let task = task.clone();
        let read = self.on_disk(move |dirs| read_turns(dirs.read(&task, AgentFile::Turns)?));
        Ok(read.await?.unwrap_or_default())
    }

    /// Changes the list of turns, durably.
    pub(super) async fn change_turns(
        &self,
        task: &TaskId,
        change: impl FnOnce(&mut Turns) + Send + 'static,
    ) -> io::Result<()> {
        let task = task.clone();
        let changed = self.on_disk(move |dirs| {
            let mut turns = read_turns(dirs.read(&task, AgentFile::Turns)?)?;
            let before = turns.clone();
            change(&mut turns);
            if turns == before {
                return Ok(());
            }
            dirs.write(&task, AgentFile::Turns, &serde_json::to_vec(&turns).map_err(io::Error::other)?)
        });
        changed.await.map(drop)
    }
}

/// Whether a conversation has what was asked in a turn already.
fn has(conversation: &Envelope, open: &OpenTurn) -> bool {
    let mut asked = Heard::new(open.turn, Some(&open.told)).messages();
    asked.iter_mut().for_each(redact::message);
    let Some(before) = open.messages else { return false };
    // Of one that was shortened since nobody knows where the turn begins.
    let since = conversation.messages.get(before..).unwrap_or(&conversation.messages);
    since
        .iter()
        .any(|message| message.role == "user" && asked.iter().any(|asked| asked.content == message.content))
}

fn read_turns(bytes: Option<Vec<u8>>) -> io::Result<Turns> {
    bytes.map_or_else(|| Ok(Turns::default()), |bytes| Ok(serde_json::from_slice(&bytes)?))
}

/// What people are told of a conversation that cannot be read.
fn trouble(recalled: &Recalled) -> Option<String> {
    let why = recalled.trouble.as_ref()?;
    Some(match recalled.conversation {
        Some(_) => format!("the stored conversation cannot be read, and its copy stands for it: {why}"),
        None => format!("the stored conversation cannot be read, and the agent does not know it: {why}"),
    })
}
