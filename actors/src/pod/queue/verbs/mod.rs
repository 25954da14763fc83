//! What each method does: a type's [`Verb`] reads like its row in the contract.

mod bulk;
mod cancel;
mod cleanup;
mod config;
mod delete;
mod export;
mod files;
mod held;
mod mark;
mod prepare;
mod read;
mod reattach;
mod reserve;
mod set;
mod turn;

use cofferdam_protocol::pod::{LeaseId, Method, TaskId, TaskResult};
use cofferdam_storage::disk::Disk;
use cofferdam_storage::pod::{PodDb, Protected};

use super::Queue;
use crate::pod::failure::Refusal;

/// A method that works on the queue. The steps are carried out in this order, with nothing in between.
pub(in crate::pod) trait Verb: Method {
    /// What was found or done on the disk first.
    type Found: Default + Send + 'static;

    /// Refuses what needs neither lease nor disk to be refused.
    fn admit(&self, _queue: &Queue) -> Result<(), Refusal> {
        Ok(())
    }

    /// Which lease it needs or takes.
    fn claim(&self) -> Option<Claim> {
        None
    }

    /// Looks at the disk, or works on it, if it has to.
    fn look(&self, _queue: &Queue, _site: &Site) -> Look<Self::Found> {
        Look::Ready(Self::Found::default())
    }

    /// What takes back what [`Self::look`] did on the disk, if it comes to nothing.
    fn discard(_: Self::Found) -> Option<Undo> {
        None
    }

    /// Changes the queue, or refuses and changes nothing.
    fn apply(self, queue: &mut Queue, facts: Facts<Self::Found>) -> Result<Outcome<Self::Result>, Refusal>;
}

/// What is known when a verb is applied.
#[derive(Debug)]
pub(in crate::pod) struct Facts<T> {
    /// The wall time in milliseconds since the epoch.
    pub(in crate::pod) at: i64,
    /// Whether the task was taken, from another holder or from none.
    pub(in crate::pod) taken: bool,
    /// What [`Verb::look`] gave.
    pub(in crate::pod) found: T,
}

/// Where on the disk a pod works.
#[derive(Clone, Debug, Default)]
pub(in crate::pod) struct Site {
    /// The way to the disk.
    pub(in crate::pod) disk: Disk,
    /// What no sandbox root may contain.
    pub(in crate::pod) protected: Protected,
}

/// What a verb has to do with leases.
#[derive(Clone, Debug)]
pub(in crate::pod) enum Claim {
    /// The caller must hold the task; that it asks is a heartbeat.
    Holds(TaskId, LeaseId),
    /// The caller holds the task from now on.
    Takes(TaskId, LeaseId),
}

/// How a verb comes by what it needs from the disk.
pub(in crate::pod) enum Look<T> {
    /// It has it.
    Ready(T),
    /// This says it, on a thread that may wait.
    Blocking(Box<dyn FnOnce() -> T + Send>),
}

/// What a verb answers, once its changes are durable.
pub(in crate::pod) enum Outcome<T> {
    /// This.
    Done(T),
    /// This; and if the changes cannot be made durable, that has to be taken back on the disk.
    DoneOrUndo(T, Undo),
    /// What the database says.
    Read(Reading<T>),
    /// What work on the disk comes to, which begins once everything before is durable and does not hold the queue up.
    Later(Later<T>),
}

/// Work on the disk beside the queue.
pub(in crate::pod) struct Later<T> {
    /// Whose files it holds. They are let go when it has ended, however.
    pub(in crate::pod) holds: Vec<TaskId>,
    /// The work, on a thread that may wait.
    pub(in crate::pod) work: Box<dyn FnOnce() -> Then<T> + Send>,
}

impl<T: 'static> Later<T> {
    /// Work that changes nothing in memory.
    fn answer<E: Into<Refusal>>(
        holds: Vec<TaskId>,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Outcome<T> {
        Outcome::Later(Self { holds, work: Box::new(|| Then::Answer(work().map_err(Into::into))) })
    }
}

/// How work on the disk ends.
pub(in crate::pod) enum Then<T> {
    /// With this.
    Answer(Result<T, Refusal>),
    /// With a change of memory, which says it.
    Change(Changing<T>),
}

/// Changes memory, at that wall time in milliseconds since the epoch.
pub(in crate::pod) type Changing<T> = Box<dyn FnOnce(&mut Queue, i64) -> Result<T, Refusal> + Send>;

/// Asks the database.
pub(in crate::pod) type Reading<T> = Box<dyn FnOnce(&mut PodDb) -> Result<T, Refusal> + Send>;

/// Takes back on the disk what was done there.
pub(in crate::pod) type Undo = Box<dyn FnOnce() + Send>;

impl Queue {
    /// The answer of most methods: the task as it is now.
    fn answer(&self, id: &str) -> Result<Outcome<TaskResult>, Refusal> {
        Ok(Outcome::Done(TaskResult { task: self.shown(self.task(id)?) }))
    }
}
