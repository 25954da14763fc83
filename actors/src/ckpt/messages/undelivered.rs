//! An answer that did not reach its client.

use std::hash::Hash;

use actix::Message;
use cofferdam_protocol::ckpt::SnapshotId;

use super::{CheckpointOutcome, CreateCheckpoint, DeleteSnapshot, RecoverWorkspace, UndoDone, UndoRollback};

/// The adapter could not write the answer. If the same peer sends the identical request within 60 s, it gets this
/// answer instead of what the first request's success now causes.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub struct Undelivered<M: Repeatable> {
    /// What was asked.
    pub request: M,
    /// What would have been answered.
    pub answer: M::Answer,
}

/// A request whose success makes the identical request fail, or do something else.
pub trait Repeatable: Clone + Eq + Hash + Send + 'static {
    /// What its success answers.
    type Answer: Clone + PartialEq + Send + 'static;

    /// About how many bytes it takes to remember it.
    fn weight(&self) -> usize;
}

impl Repeatable for CreateCheckpoint {
    type Answer = CheckpointOutcome;

    fn weight(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.workspace.len() + self.id.len() + text(&self.message) + text(&self.metadata)
    }
}

impl Repeatable for DeleteSnapshot {
    type Answer = SnapshotId;

    fn weight(&self) -> usize {
        self.workspace.as_ref().map_or(0, String::len) + self.snapshot.len()
    }
}

impl Repeatable for UndoRollback {
    type Answer = UndoDone;

    fn weight(&self) -> usize {
        self.workspace.len() + self.expected.as_ref().map_or(0, String::len)
    }
}

impl Repeatable for RecoverWorkspace {
    type Answer = String;

    fn weight(&self) -> usize {
        self.workspace.len()
    }
}
