//! What the memory takes.

use std::path::PathBuf;
use std::sync::Arc;

use actix::prelude::Message;
use cofferdam_protocol::host::{EntryKind, TurnList, WayBack};
use cofferdam_protocol::pod::{TaskId, TaskSummary, session_uuid};
use cofferdam_protocol::session::{Envelope, SessionId};

use super::heard::Heard;
use crate::host::failure::HostFailure;
use crate::mailbox::mailboxes;

mailboxes! {
    /// The way to what is kept of tasks.
    pub(in crate::host) struct Memory {
        make_ready: MakeReady,
        begin: BeginTurn,
        end: EndTurn,
        past: ReadPast,
        turns: ListKeptTurns,
        rewind: RewindTo,
        undo: UndoLastRewind,
        forget: ForgetTask,
        tidy: Tidy,
        finish: Finish,
    }
}

/// A task, as far as what is kept of it depends on that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::host) struct Whose {
    /// The task.
    pub(super) task: TaskId,
    /// The id of its conversation.
    pub(super) session: SessionId,
    /// The sandbox root, in whose scope that is stored.
    pub(super) root: PathBuf,
    /// Where it works.
    pub(super) dir: PathBuf,
    /// Its model; may be empty.
    pub(super) model: String,
}

impl Whose {
    /// Nothing for a task that no host of this kind has made: such a one has no conversation of ours.
    pub(in crate::host) fn of(task: &TaskSummary) -> Option<Self> {
        let session = SessionId::new(session_uuid(&task.session_id)?).ok()?;
        Some(Self {
            task: TaskId::new(task.id.as_str()).ok().filter(|_| !task.legacy)?,
            session,
            root: PathBuf::from(&task.sandbox_root),
            dir: PathBuf::from(&task.task_dir),
            model: task.model.model.clone(),
        })
    }
}

/// Makes the task's directory, and says what was said before. Sent by `LiveTask` before it has an agent made ready.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Remembered")]
pub(in crate::host) struct MakeReady(pub(in crate::host) Whose);

/// What there is of a task before it has an agent.
#[derive(Debug, Default)]
pub(in crate::host) struct Remembered {
    /// The task's directory; nothing if none is kept.
    pub(in crate::host) dir: Option<PathBuf>,
    /// What was said and done before, oldest first.
    pub(in crate::host) past: Vec<(EntryKind, String)>,
    /// The last turn that is known of; 0: none is.
    pub(in crate::host) last_turn: u64,
    /// Why the conversation cannot be gone on with: it is stored, and cannot be read.
    pub(in crate::host) unreadable: Option<String>,
    /// What people should know.
    pub(in crate::host) notes: Vec<String>,
}

/// A turn is about to begin: keeps what there is, so that it can be gone back to. Sent by `LiveTask`; the agent is told only
/// when the reply is there. Whatever cannot be kept is a note, and no reason against the turn; the error is a rewind that is
/// not finished.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<Begun, HostFailure>")]
pub(in crate::host) struct BeginTurn {
    /// Whose.
    pub(in crate::host) whose: Whose,
    /// The number it will have.
    pub(in crate::host) turn: u64,
    /// What the agent will be told.
    pub(in crate::host) told: String,
}

/// A turn can begin.
#[derive(Debug, Default)]
pub(in crate::host) struct Begun {
    /// The conversation so far; nothing if there is none.
    pub(in crate::host) conversation: Option<Arc<Envelope>>,
    /// What people should know.
    pub(in crate::host) notes: Vec<String>,
}

/// A turn is over, and nothing of the agent works on it any more. Sent by `LiveTask`. The reply says what people should know;
/// what could not be stored is tried again with the next turn.
#[derive(Debug, Message)]
#[rtype(result = "Vec<String>")]
pub(in crate::host) struct EndTurn {
    /// Whose.
    pub(in crate::host) whose: Whose,
    /// What was heard of it.
    pub(in crate::host) heard: Heard,
}

/// Asks what was said and done, oldest first. Sent by `HostActor` for a task that nobody holds.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Vec<(EntryKind, String)>")]
pub(in crate::host) struct ReadPast(pub(in crate::host) Whose);

/// Asks which turns there were. Sent by `HostActor`.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<TurnList, HostFailure>")]
pub(in crate::host) struct ListKeptTurns(pub(in crate::host) Whose);

/// Brings files, the agent's directory and the conversation back to what they were before a turn. Sent by `HostActor` for a
/// task whose agent is in no turn. An error that is not an unfinished rewind has
/// changed nothing.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<WentBack, HostFailure>")]
pub(in crate::host) struct RewindTo {
    /// Whose.
    pub(in crate::host) whose: Whose,
    /// Before which turn.
    pub(in crate::host) turn: u64,
}

/// Takes the last rewind back, or the last undoing of one. Sent by `HostActor` as [`RewindTo`] is.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<WentBack, HostFailure>")]
pub(in crate::host) struct UndoLastRewind {
    /// Whose.
    pub(in crate::host) whose: Whose,
}

/// What was done to go back.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::host) struct WentBack {
    /// Before which turn the rewind led that was made or undone.
    pub(in crate::host) turn: u64,
    /// What was undone; nothing if it was a rewind.
    pub(in crate::host) undid: Option<WayBack>,
    /// How many paths in the task's directory were changed.
    pub(in crate::host) changed: u64,
    /// What people should know.
    pub(in crate::host) notes: Vec<String>,
}

/// What was kept of a task goes, since its files or its record have gone. Sent by `HostActor`. The reply says what is left.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Vec<String>")]
pub(in crate::host) struct ForgetTask {
    /// Which.
    pub(in crate::host) task: String,
    /// Where it worked; what is kept of it says so, too, if this is no absolute path.
    pub(in crate::host) dir: PathBuf,
    /// Whether its record has gone: else only its checkpoints go.
    pub(in crate::host) record: bool,
    /// Whether it was only not found. Nothing is done if the task was used since this host started: then it is a new one; nor
    /// if its directory is there, and nobody has removed its record here.
    pub(in crate::host) unless_used: bool,
}

/// Finishes what a host that died has left: rewinds of these tasks, turns that did not end, and what was kept of tasks that
/// are no more, if these are all there are. Sent by `HostActor` when the core comes. The reply says what people should know.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Vec<String>")]
pub(in crate::host) struct Tidy {
    /// The tasks.
    pub(in crate::host) tasks: Vec<Whose>,
    /// The ids of all there are; nothing if that is not known.
    pub(in crate::host) all: Option<Vec<String>>,
}

/// Waits until everything that was asked before is done. Sent by `HostActor` when it stops.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(in crate::host) struct Finish;
