//! What a live task is told by the host, and what it says.

use actix::prelude::Message;
use cofferdam_protocol::host::{Transcript, TranscriptEntry};
use cofferdam_protocol::pod::{Config, LogLevel, SandboxPolicy, TaskSummary};

use crate::host::agent::CancelCause;
use crate::host::failure::HostFailure;
use crate::host::messages::MainSession;
use crate::mailbox::mailboxes;

mailboxes! {
    /// The way to a live task.
    pub(in crate::host) struct LiveTaskAddr {
        begin: Begin,
        tell: Tell,
        give_back_slot: GiveBackSlot,
        cancel: Cancel,
        expired: Expired,
        release: Release,
        transcript: ReadTranscript,
        note: Noted,
    }
}

/// Makes the agent ready, and begins the first turn if there is something to tell it. Sent by `HostActor` when the task has a
/// slot, or was reattached; also to one whose agent is gone, when it was reattached with the same lease. The reply comes when
/// the agent is ready; a failure is in the task's record too, unless the task was only resumed, and the actor ends.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<(), HostFailure>")]
pub(in crate::host) struct Begin {
    /// The task as it is now.
    pub(in crate::host) task: TaskSummary,
    /// Where it may write; asked for with `sandbox.prepare` if it is not known.
    pub(in crate::host) policy: Option<SandboxPolicy>,
    /// The configuration.
    pub(in crate::host) config: Config,
    /// The conversation it was started from, as far as its client says where it works.
    pub(in crate::host) main: Option<MainSession>,
    /// Whether the agent goes on with its old conversation: then no turn begins.
    pub(in crate::host) resume: bool,
}

/// Tells the agent something: one more turn. Sent by `HostActor`. Refused while a turn runs.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<(), HostFailure>")]
pub(in crate::host) struct Tell {
    /// What.
    pub(in crate::host) text: String,
}

/// Gives the slot of a task back that was resumed and not told anything: until somebody does, it is what it was before. Sent by
/// `HostActor`, once the agent is ready. The reply is the task after that, once it is durable; nothing if a turn runs, or if
/// the core cannot be told, which does the same by itself after a minute.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Option<TaskSummary>")]
pub(in crate::host) struct GiveBackSlot;

/// Cancels the turn that runs, or that is about to begin: an agent that is not ready yet is ended, and the actor with it. Sent
/// by `HostActor`, after the core was told.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub(in crate::host) struct Cancel {
    /// Why.
    pub(in crate::host) cause: CancelCause,
}

/// The core says that a turn is out of time. Sent by `HostActor`.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(in crate::host) struct Expired {
    /// Which turn.
    pub(in crate::host) turn: u64,
}

/// Ends the agent and lets the task go. The reply comes when nothing of the agent runs any more, behind
/// [`LiveChange::Ended`]; the actor stops then. It is an error if the agent does not end within 10 s: then the actor stays,
/// keeps the lease and can be asked again. An open turn is settled first if the core can still be told. Sent by `HostActor`.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Result<(), StillRunning>")]
pub(in crate::host) struct Release(pub(in crate::host) LetGo);

/// Why a task is let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum LetGo {
    /// Nobody wants it any more: a turn that runs was aborted.
    Unwanted,
    /// The host stops: a turn that runs was interrupted.
    Stopping,
    /// The core does not know this lease any more, and is told nothing.
    Forgotten,
}

/// An agent that does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task's agent has not ended within 10 s; try again, or end its process")]
pub(in crate::host) struct StillRunning;

/// Asks what was said and done. Sent by `HostActor`.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Transcript")]
pub(in crate::host) struct ReadTranscript {
    /// Leave out entries whose number is lower.
    pub(in crate::host) from: u64,
}

/// Writes something into the transcript: what was done to the task that its agent does not know. Sent by `HostActor`.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub(in crate::host) struct Noted(pub(in crate::host) String);

/// What becomes of a live task. Sent to `HostActor`.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub(in crate::host) struct LiveNotice {
    /// Which task.
    pub(in crate::host) task_id: String,
    /// Whose: one that was let go may still say something while another has taken its place.
    pub(in crate::host) lease: String,
    /// What.
    pub(in crate::host) what: LiveChange,
}

/// What becomes of a live task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::host) enum LiveChange {
    /// There is an agent now, or none any more.
    Agent {
        /// Which of the two.
        live: bool,
    },
    /// Something was said or done.
    Entry(TranscriptEntry),
    /// Something was said or done while the host was too busy to hear it.
    Missed,
    /// Something a person should know.
    Diagnostic {
        /// How grave.
        level: LogLevel,
        /// What.
        message: String,
    },
    /// Everything is let go: nothing of the agent runs any more, and this actor stops.
    Ended,
}
