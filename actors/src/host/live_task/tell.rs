//! `Tell`: one more turn. The first one begins the same way.

use std::mem::replace;
use std::sync::Arc;

use actix::prelude::{ActorFutureExt, AsyncContext, Context, Handler, ResponseFuture, WrapFuture};
use cofferdam_protocol::host::EntryKind;
use cofferdam_protocol::session::Envelope;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::core_line::Order;
use super::messages::Tell;
use super::prepare::failed;
use super::state::{Answer, Before, State, Turn, answered};
use super::{LiveTask, START_LIMIT};
use crate::Carries;
use crate::host::agent::{AgentError, FollowUpAgent};
use crate::host::failure::{HostFailure, HostRefusal};

impl Handler<Tell> for LiveTask {
    type Result = ResponseFuture<Result<(), HostFailure>>;

    fn handle(&mut self, Tell { text }: Tell, ctx: &mut Context<Self>) -> Self::Result {
        if let Some(refusal) = self.refusal(&text) {
            return Box::pin(async { Err(refusal.into()) });
        }
        let (reply, answer) = oneshot::channel();
        self.begin_turn(text, EntryKind::User, Some(reply), ctx);
        answered(answer)
    }
}

impl LiveTask {
    /// Why the agent cannot be told anything now, if it cannot.
    fn refusal(&self, text: &str) -> Option<HostRefusal> {
        let busy = |why: &str| Some(HostRefusal::TaskBusy(why.to_owned()));
        match &self.state {
            _ if text.trim().is_empty() => {
                Some(HostRefusal::BadRequest("the text is empty; say something".to_owned()))
            }
            State::Idle => None,
            State::Waiting { .. } => busy("the task has no agent yet; wait until it has one"),
            State::Preparing(_) => busy("the task's agent is being made ready; wait until it is"),
            State::InTurn(_) => busy("the task's agent is in a turn; wait for its end, or cancel it"),
            State::Gone => {
                Some(HostRefusal::NotResumable("the task's agent is gone; resume the task first".to_owned()))
            }
            State::Leaving(_) => Some(HostRefusal::Unavailable),
        }
    }

    /// Tells an agent that waits something. Without a reply it is the first: then a failure is the task's.
    pub(super) fn begin_turn(
        &mut self,
        text: String,
        kind: EntryKind,
        reply: Option<Answer<HostFailure>>,
        ctx: &mut Context<Self>,
    ) {
        self.enter(kind, &text);
        let limit = self.watch(ctx);
        self.turns += 1;
        let serial = self.turns;
        self.state = State::InTurn(Turn::to_begin(limit, Before { serial, reply }));
        self.keep_before(text, serial, ctx);
    }

    /// Tells the agent what was kept for it.
    pub(super) fn tell_agent(
        &mut self,
        prompt: String,
        conversation: Option<Arc<Envelope>>,
        reply: Option<Answer<HostFailure>>,
        ctx: &mut Context<Self>,
    ) {
        // Sent before anything else, so that a cancellation comes after it.
        let backend: &actix::Recipient<FollowUpAgent> = self.parts.preset.backend.recipient();
        let sent = backend.send(FollowUpAgent { task_id: self.parts.task_id.clone(), prompt, conversation });
        let told = timeout(self.parts.real(START_LIMIT), sent);
        ctx.spawn(told.into_actor(self).map(|told, actor, ctx| {
            let failure = match told {
                Ok(Ok(Ok(()))) => None,
                Ok(Ok(Err(error))) => Some(actor.not_taken(error, reply.is_none(), ctx)),
                // Who runs it is stopping, and has taken it along.
                Ok(Err(_)) => Some(actor.not_taken(AgentError::Gone, reply.is_none(), ctx)),
                Err(_) => Some(actor.not_answered(ctx)),
            };
            if let Some(reply) = reply {
                let _ = reply.send(failure.map_or(Ok(()), Err));
            }
        }));
    }

    /// The agent begins no turn.
    fn not_taken(&mut self, error: AgentError, first: bool, ctx: &mut Context<Self>) -> HostFailure {
        let message = format!("the agent did not take what it was told: {error}");
        if let State::InTurn(turn @ Turn { number: None, .. }) = &self.state {
            ctx.cancel_future(turn.limit);
            let (cancelled, settled) = (turn.cancelled.is_some(), turn.settled);
            self.remember(ctx);
            if cancelled {
                self.settle("aborted", "", ctx);
            } else if first && !settled {
                let code = error_code(&error).to_owned();
                self.tell_core(Order::Error { code, message: message.clone() }, ctx);
            }
            self.enter(EntryKind::Note, &message);
            let gone = error == AgentError::Gone;
            self.give_slot_back(None, ctx);
            let _ = replace(&mut self.state, if gone { State::Gone } else { State::Idle });
            if gone {
                self.set_live(false);
            }
        }
        match error {
            AgentError::Busy => HostRefusal::TaskBusy(message).into(),
            AgentError::Gone | AgentError::NotResumable(_) => HostRefusal::NotResumable(message).into(),
            AgentError::Config(_) => HostRefusal::Config(message).into(),
            AgentError::Failed(_) => failed(message),
        }
    }

    /// The turn does not begin, since what there is cannot be kept in order. The agent stays.
    pub(super) fn not_begun(&mut self, why: &str, first: bool, ctx: &mut Context<Self>) {
        let State::InTurn(turn) = &self.state else { return };
        ctx.cancel_future(turn.limit);
        // It was never a turn; what was to be told is in the transcript.
        self.heard = None;
        if first {
            let code = "NOT_KEPT".to_owned();
            self.tell_core(Order::Error { code, message: why.to_owned() }, ctx);
        }
        self.give_slot_back(None, ctx);
        self.enter(EntryKind::Note, why);
        self.state = State::Idle;
    }

    /// The agent does not say whether it begins a turn.
    fn not_answered(&mut self, ctx: &mut Context<Self>) -> HostFailure {
        let message = "the agent did not answer within 30 s, and was ended; resume the task to go on";
        self.settle("error", message, ctx);
        self.abandon(message, ctx);
        failed(message.to_owned())
    }
}

/// The audit's word for it.
fn error_code(error: &AgentError) -> &'static str {
    match error {
        AgentError::Config(_) => "AGENT_CONFIG",
        AgentError::Busy => "AGENT_BUSY",
        AgentError::Gone => "AGENT_GONE",
        AgentError::NotResumable(_) => "AGENT_NOT_RESUMABLE",
        AgentError::Failed(_) => "AGENT_FAILED",
    }
}
