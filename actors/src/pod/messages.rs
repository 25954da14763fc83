//! What the pod's actors say to each other.

use std::time::Duration;

use actix::Message;
use cofferdam_protocol::pod::{ExportCreate, LeaseId, LogLevel, TaskId};
use cofferdam_storage::pod::export::ExportRequest;
use cofferdam_storage::pod::{Change, KeptExport, StillLocked};

use super::failure::{Failure, Refusal};

/// Takes a task for a holder. Sent by `TaskQueueActor` for `task.reserve` and `task.reattach`. Succeeds if nobody holds
/// the task, if the same lease does, or if the holder was not heard of for 30 s; else says for how long still. Counts as
/// a heartbeat.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<Acquired, Duration>")]
pub struct AcquireLease {
    /// Which task.
    pub task: TaskId,
    /// Who holds it from now on.
    pub lease: LeaseId,
}

/// How a task was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// The same lease held it already.
    Same,
    /// Nobody held it.
    Free,
    /// Its holder was not heard of any more.
    TakenOver,
}

/// Says that a holder lives: every call with a lease does. The reply says whether it holds the task; if not, nothing
/// changes.
#[derive(Clone, Debug, Message)]
#[rtype(result = "bool")]
pub struct Heartbeat {
    /// Which task.
    pub task: TaskId,
    /// Who.
    pub lease: LeaseId,
}

/// Asks how long ago a task's holder was heard of; `None` if nobody holds it. No heartbeat.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Option<Duration>")]
pub struct CheckLease {
    /// Which task.
    pub task: TaskId,
}

/// Nobody holds the task any more.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub struct ReleaseLease {
    /// Which task.
    pub task: TaskId,
}

/// Asks how many leases there are.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "usize")]
pub struct CountLeases;

/// What time can be up for. A task has at most one of each kind; the turn's number tells an old one from a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deadline {
    /// The turn of that number.
    Turn(u64),
    /// What the host has to settle that turn after its deadline.
    Grace(u64),
    /// A reattached task's first turn.
    FirstTurn,
    /// What the host has to settle a task whose cancellation was asked for.
    Cancellation,
    /// A holder's next heartbeat, while a task is starting.
    Heartbeat,
}

/// Says when time is up; replaces a deadline of the same task and kind. Sent by `TaskQueueActor`, after the change that
/// it belongs to is durable.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub struct ArmDeadline {
    /// Whose.
    pub task: TaskId,
    /// What for.
    pub deadline: Deadline,
    /// From now.
    pub after: Duration,
}

/// Takes deadlines of a task back.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub struct DisarmDeadline {
    /// Whose.
    pub task: TaskId,
    /// Those of the same kind; `None`: all.
    pub deadline: Option<Deadline>,
}

/// Time is up, but for a grace period. Sent by `DeadlineTicker`, once for each deadline armed.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub struct DeadlineExpired {
    /// Whose.
    pub task: TaskId,
    /// What for.
    pub deadline: Deadline,
}

/// The grace period of a turn is over. Sent by `DeadlineTicker`.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub struct GraceOver {
    /// Whose.
    pub task: TaskId,
    /// Which turn.
    pub turn: u64,
}

/// Asks whether an export may begin. Sent by `ExportActor`; if the reply is not a refusal the task's files are held until
/// [`ReleaseFiles`].
#[derive(Debug, Message)]
#[rtype(result = "Result<AdmittedExport, Refusal>")]
pub struct AdmitExport {
    /// The id it gets.
    pub id: String,
    /// What is asked.
    pub request: ExportCreate,
}

/// An export that may begin.
#[derive(Debug)]
pub struct AdmittedExport {
    /// What is to be exported.
    pub request: ExportRequest,
    /// Whose files are held.
    pub held: TaskId,
    /// The session that its target is to be remembered for, if that is allowed.
    pub remember_for: Option<String>,
    /// Whether the host wants to know how far it is.
    pub wants_progress: bool,
    /// To be kept for as long as the export writes.
    pub locked: StillLocked,
}

/// Asks for an export that is to be undone. Sent by `ExportActor`; if the reply names a task its files are held until
/// [`ReleaseFiles`].
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<AdmittedUndo, Failure>")]
pub struct AdmitUndo {
    /// Which export.
    pub export: String,
}

/// An export that may be undone.
#[derive(Debug)]
pub struct AdmittedUndo {
    /// It.
    pub export: KeptExport,
    /// Whether what was exported has to be what it was.
    pub verify: bool,
    /// Whose files are held.
    pub held: Option<TaskId>,
    /// To be kept for as long as the undo writes.
    pub locked: StillLocked,
}

/// Nobody works on the task's files any more. Sent by `ExportActor`.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub struct ReleaseFiles {
    /// Whose.
    pub task: TaskId,
}

/// Asks for an export with all of its files; `None` if there is none of that id. Sent by `ExportActor`.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<Option<KeptExport>, Failure>")]
pub struct FindExport {
    /// Which one.
    pub export: String,
}

/// Asks which records are too many by the configuration, oldest first. Sent by `ExportActor`.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<Vec<String>, Failure>")]
pub struct FindSurplusExports {
    /// One that stays in any case.
    pub besides: String,
}

/// Makes changes durable, before the reply. Sent by `ExportActor`, since one writer owns the database.
#[derive(Debug, Message)]
#[rtype(result = "Result<(), Failure>")]
pub struct SaveChanges(pub Vec<Change>);

/// Something a person should know. Sent by `ExportActor`.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub struct Diagnose {
    /// How bad it is.
    pub level: LogLevel,
    /// For people.
    pub message: String,
}
