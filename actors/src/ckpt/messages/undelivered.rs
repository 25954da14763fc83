//! An answer that did not reach its client.

use std::hash::Hash;

use actix::Message;
use cofferdam_protocol::ckpt::{SnapshotId, WsCkptErrorCode};

use super::{CheckpointOutcome, CreateCheckpoint, DeleteSnapshot, RecoverWorkspace};

/// The adapter could not write the answer. If the same peer sends the identical request within 60 s, it gets this
/// answer instead of the failure that the first request's success now causes.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub struct Undelivered<M: Repeatable> {
    /// What was asked.
    pub request: M,
    /// What would have been answered.
    pub answer: M::Answer,
}

/// A request whose success makes the identical request fail.
pub trait Repeatable: Clone + Eq + Hash + Send + 'static {
    /// What its success answers.
    type Answer: Clone + Send + 'static;

    /// How the identical request fails after the first one's success.
    const REPEATED: WsCkptErrorCode;

    /// About how many bytes it takes to remember it.
    fn weight(&self) -> usize;
}

impl Repeatable for CreateCheckpoint {
    type Answer = CheckpointOutcome;
    const REPEATED: WsCkptErrorCode = WsCkptErrorCode::SnapshotAlreadyExists;

    fn weight(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.workspace.len() + self.id.len() + text(&self.message) + text(&self.metadata)
    }
}

impl Repeatable for DeleteSnapshot {
    type Answer = SnapshotId;
    const REPEATED: WsCkptErrorCode = WsCkptErrorCode::SnapshotNotFound;

    fn weight(&self) -> usize {
        self.workspace.as_ref().map_or(0, String::len) + self.snapshot.len()
    }
}

impl Repeatable for RecoverWorkspace {
    type Answer = String;
    const REPEATED: WsCkptErrorCode = WsCkptErrorCode::WorkspaceNotFound;

    fn weight(&self) -> usize {
        self.workspace.len()
    }
}
