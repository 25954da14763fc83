//! Requests that come twice: a client that lost patience, or whose answer was lost, asks the same again.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use actix::prelude::*;
use cofferdam_protocol::ckpt::{SnapshotId, WsCkptErrorCode};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::messages::*;
use super::{Failure, RoutingError, SnapshotActor, Step};

/// How long an answer that could not be delivered is good for the identical request.
const REMEMBERED: Duration = Duration::from_secs(60);
/// The most undelivered answers of one kind; beyond, the oldest is forgotten.
const MAX_REMEMBERED: usize = 128;
/// A request of more bytes is not remembered.
const MAX_WEIGHT: usize = 64 << 10;

/// What is known about requests that may come again.
#[derive(Default)]
pub(super) struct Repeats {
    checkpoints: Running<CreateCheckpoint, CheckpointOutcome>,
    rollbacks: Running<Rollback, RollbackDone>,
    undos: Running<UndoRollback, UndoDone>,
    deletes: Running<DeleteSnapshot, SnapshotId>,
    recovers: Running<RecoverWorkspace, String>,
    lost_checkpoints: Undeliverable<CreateCheckpoint>,
    lost_deletes: Undeliverable<DeleteSnapshot>,
    lost_recovers: Undeliverable<RecoverWorkspace>,
    lost_undos: Undeliverable<UndoRollback>,
}

/// Requests under way, each with those that came again and wait for its answer.
type Running<M, T> = HashMap<M, Vec<oneshot::Sender<Result<T, Failure>>>>;

/// Answers that did not reach their client.
pub(super) struct Undeliverable<M: Repeatable>(HashMap<M, Kept<M::Answer>>);

/// An answer that may be needed again.
struct Kept<A> {
    answer: A,
    /// The end of its time.
    end: Instant,
    /// How many who asked the same have it to come, or have it: it is not lost before all of them have lost it.
    others: usize,
}

/// A request that is joined rather than run beside itself.
pub(super) trait Joinable:
    Message<Result = Result<Self::Done, Failure>> + Clone + Eq + Hash + 'static
{
    /// What its success answers.
    type Done: Clone + 'static;

    /// The requests of this kind that are under way.
    fn running(repeats: &mut Repeats) -> &mut Running<Self, Self::Done>;
}

/// A request whose answer is kept for a while if it could not be delivered.
pub(super) trait Rememberable: Repeatable {
    /// The answers to requests of this kind that did not reach their client.
    fn undeliverable(repeats: &mut Repeats) -> &mut Undeliverable<Self>;
}

/// A request whose success makes the identical request fail.
pub(super) trait FailsRepeated: Rememberable {
    /// How that fails.
    const CODE: WsCkptErrorCode;
}

impl FailsRepeated for CreateCheckpoint {
    const CODE: WsCkptErrorCode = WsCkptErrorCode::SnapshotAlreadyExists;
}

impl FailsRepeated for DeleteSnapshot {
    const CODE: WsCkptErrorCode = WsCkptErrorCode::SnapshotNotFound;
}

impl FailsRepeated for RecoverWorkspace {
    const CODE: WsCkptErrorCode = WsCkptErrorCode::WorkspaceNotFound;
}

macro_rules! repeats {
    ($($message:ty => $done:ty, $running:ident $(, $lost:ident)?;)+) => {$(
        impl Joinable for $message {
            type Done = $done;
            fn running(repeats: &mut Repeats) -> &mut Running<Self, $done> {
                &mut repeats.$running
            }
        }
        $(impl Rememberable for $message {
            fn undeliverable(repeats: &mut Repeats) -> &mut Undeliverable<Self> {
                &mut repeats.$lost
            }
        })?
    )+};
}
repeats! {
    CreateCheckpoint => CheckpointOutcome, checkpoints, lost_checkpoints;
    Rollback => RollbackDone, rollbacks;
    UndoRollback => UndoDone, undos, lost_undos;
    DeleteSnapshot => SnapshotId, deletes, lost_deletes;
    RecoverWorkspace => String, recovers, lost_recovers;
}

impl<M: Repeatable> Default for Undeliverable<M> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<M: Repeatable> Undeliverable<M> {
    /// Keeps an answer for a while; in the place of the oldest if there are too many.
    fn keep(&mut self, request: M, answer: M::Answer, others: usize) {
        let now = Instant::now();
        self.0.retain(|_, kept| kept.end > now);
        if self.0.len() >= MAX_REMEMBERED {
            let oldest = self.0.iter().min_by_key(|(_, kept)| kept.end);
            if let Some(oldest) = oldest.map(|(request, _)| request.clone()) {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(request, Kept { answer, end: now + REMEMBERED, others });
    }

    /// One of those who asked did not get the answer.
    fn lose(&mut self, request: M, answer: M::Answer) {
        let shared = self.0.get(&request).filter(|kept| kept.answer == answer);
        let others = shared.map_or(0, |kept| kept.others.saturating_sub(1));
        self.keep(request, answer, others);
    }

    /// The answer to the identical request, if that was lost.
    fn lost(&self, request: &M) -> Option<&M::Answer> {
        let kept = self.0.get(request).filter(|kept| kept.end > Instant::now() && kept.others == 0);
        kept.map(|kept| &kept.answer)
    }
}

impl SnapshotActor {
    /// Runs a request, or waits for the identical one that is under way.
    pub(super) fn joined<M: Joinable>(
        &mut self,
        request: M,
        run: impl FnOnce(&mut Self, M) -> Step<M::Done>,
    ) -> Step<M::Done> {
        if let Some(waiting) = M::running(&mut self.repeats).get_mut(&request) {
            let (sender, receiver) = oneshot::channel();
            waiting.push(sender);
            let answer = async { receiver.await.unwrap_or_else(|_| Err(RoutingError::Stopping.into())) };
            return Box::pin(answer.into_actor(self));
        }
        M::running(&mut self.repeats).insert(request.clone(), Vec::new());
        Box::pin(run(self, request.clone()).map(move |result, actor, _| {
            for waiting in M::running(&mut actor.repeats).remove(&request).unwrap_or_default() {
                // One that waits may have gone away.
                let _ = waiting.send(result.clone());
            }
            result
        }))
    }

    /// As [`joined`](Self::joined); and if the request only fails because its first try succeeded and that answer
    /// was lost, the answer is that one.
    pub(super) fn repeatable<M, T>(
        &mut self,
        request: M,
        run: impl FnOnce(&mut Self, M) -> Step<T>,
    ) -> Step<T>
    where
        M: Joinable<Done = T> + FailsRepeated<Answer = T>,
        T: Clone + 'static,
    {
        self.joined(request, |actor, request| {
            Box::pin(run(actor, request.clone()).map(move |result, actor, _| match result {
                Err(failure) if failure.code == M::CODE => {
                    M::undeliverable(&mut actor.repeats).lost(&request).cloned().ok_or(failure)
                }
                result => result,
            }))
        })
    }

    /// The answer to an identical undo, if that was lost and nothing was rolled back or undone since. It is given once:
    /// who asks again then means it.
    pub(super) fn lost_undo(&mut self, request: &UndoRollback) -> Option<UndoDone> {
        let lost = self.repeats.lost_undos.lost(request)?;
        let newest = self.registry.get(&lost.workspace)?.view.last_rollback.as_ref()?;
        if !matches!(&newest.done, LastDone::Undone(rollback) if *rollback == lost.rollback) {
            return None;
        }
        self.repeats.lost_undos.0.remove(request).map(|kept| kept.answer)
    }

    /// An undo is done, and others who asked the same wait for its answer: whoever of them gets it knows, and asks
    /// again only to have it taken back.
    pub(super) fn share_undo(&mut self, request: UndoRollback, answer: &UndoDone) {
        match self.repeats.undos.get(&request).map_or(0, Vec::len) {
            0 => {}
            waiting => self.repeats.lost_undos.keep(request, answer.clone(), waiting + 1),
        }
    }
}

impl<M: Rememberable> Handler<Undelivered<M>> for SnapshotActor {
    type Result = ();

    fn handle(&mut self, Undelivered { request, answer }: Undelivered<M>, _: &mut Context<Self>) {
        if request.weight() <= MAX_WEIGHT {
            M::undeliverable(&mut self.repeats).lose(request, answer);
        }
    }
}
