//! How a write gets its turn at a workspace, and how long a client waits for it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::RecipientRequest;
use actix::prelude::*;
use cofferdam_protocol::ckpt::{WorkspaceId, WsCkptErrorCode};
use cofferdam_storage::peer::Peer;
use tokio::sync::watch;

use super::super::operations::Operation;
use super::super::ticket::Ticket;
use super::super::workspace_actor::{Write, Writer, Written};
use super::{Failure, RoutingError, SnapshotActor, Step, refuse};
use crate::mailbox::Carries;

/// How long a write waits for its turn. The contract's client waits 5 s for its answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(4);

/// Whose write it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// A client's: it is refused if it does not begin within [`PATIENCE`]. Once begun, it is waited for.
    Client,
    /// Our own: it waits for as long as it takes.
    Background,
}

impl SnapshotActor {
    /// Has the workspace's actor run an operation, and publishes what it did before the answer goes out. `argument`
    /// is what the client called the workspace.
    pub(super) fn write<O>(
        &mut self,
        id: WorkspaceId,
        argument: String,
        peer: Peer,
        operation: O,
    ) -> Step<O::Done>
    where
        O: Operation,
        Writer: Carries<Write<O>>,
    {
        self.write_in(Turn::Client, id, argument, peer, operation)
    }

    /// As [`write`](Self::write), with another patience.
    pub(super) fn write_in<O>(
        &mut self,
        turn: Turn,
        id: WorkspaceId,
        argument: String,
        peer: Peer,
        operation: O,
    ) -> Step<O::Done>
    where
        O: Operation,
        Writer: Carries<Write<O>>,
    {
        let Some(registered) = self.registry.get(&id) else {
            return refuse(RoutingError::WorkspaceNotFound(argument));
        };
        let Ok(place) = Arc::clone(&registered.places).try_acquire_owned() else {
            return refuse(RoutingError::WriteConflict);
        };
        let ticket = Ticket::new(operation);
        let reply = registered.writer.recipient().send(Write { peer, ticket: ticket.clone(), place });
        let priming = registered.priming.subscribe();
        let written = await_turn(turn, reply, ticket, priming);
        Box::pin(written.into_actor(self).map(move |written, actor, ctx| {
            actor.written(&id, written, ctx).map_err(|failure| match failure.code {
                WsCkptErrorCode::WorkspaceNotFound => RoutingError::WorkspaceNotFound(argument).into(),
                _ => failure,
            })
        }))
    }

    fn written<T>(
        &mut self,
        id: &WorkspaceId,
        written: Result<Written<T>, RoutingError>,
        ctx: &mut Context<Self>,
    ) -> Result<T, Failure> {
        let Written { result, view } = written?;
        match view {
            Some(view) => self.registry.publish(id, view),
            None => self.registry.remove(id),
        }
        self.read_usage(ctx);
        result
    }
}

async fn await_turn<O: Operation>(
    turn: Turn,
    reply: RecipientRequest<Write<O>>,
    ticket: Ticket<O>,
    mut priming: watch::Receiver<bool>,
) -> Result<Written<O::Done>, RoutingError> {
    // An actor that is gone has unregistered its workspace; the caller puts in what the client called it.
    let closed = |_| RoutingError::WorkspaceNotFound(String::new());
    let mut reply = pin!(reply);
    if turn == Turn::Client {
        let patience = async {
            // Fails if the workspace is forgotten meanwhile; then the reply comes at once.
            let _ = priming.wait_for(|priming| !priming).await;
            tokio::time::sleep(PATIENCE).await;
        };
        tokio::select! {
            biased;
            written = &mut reply => return written.map_err(closed),
            () = patience => if ticket.give_up() {
                return Err(RoutingError::WriteConflict);
            },
        }
    }
    reply.await.map_err(closed)
}
