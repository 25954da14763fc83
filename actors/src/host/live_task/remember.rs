//! What is kept of a turn: what there is before it, and what was heard of it.

use actix::prelude::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use cofferdam_protocol::host::EntryKind;
use tokio::sync::oneshot;

use super::LiveTask;
use super::core_line::Order;
use super::state::{Before, State};
use crate::Carries;
use crate::host::agent::DisposeAgent;
use crate::host::failure::{HostFailure, HostRefusal};
use crate::host::memory::{BeginTurn, Begun, EndTurn, Heard};

impl LiveTask {
    /// Keeps what there is, for a turn that is about to begin; goes on with what it was for when that is done, unless the turn
    /// is not to begin any more.
    pub(super) fn keep_before(&mut self, told: String, serial: u64, ctx: &mut Context<Self>) {
        let turn = self.facts.last_turn + 1;
        // Of a turn whose agent had to be ended, if there is one.
        self.remember(ctx);
        self.heard = Some(Heard::new(turn, Some(&told)));
        let memory = self.parts.memory.clone();
        let begin = self.facts.whose.clone().map(|whose| BeginTurn { whose, turn, told: told.clone() });
        let begun = async move {
            match begin {
                None => Ok(Begun::default()),
                Some(begin) => match memory.recipient().send(begin).await {
                    Ok(begun) => begun,
                    Err(_) => Err(HostRefusal::Unavailable.into()),
                },
            }
        };
        ctx.spawn(begun.into_actor(self).map(move |begun, actor, ctx| {
            if let State::InTurn(turn) = &mut actor.state
                && turn.before.as_ref().is_some_and(|before| before.serial == serial)
                && let Some(Before { reply, .. }) = turn.before.take()
            {
                actor.kept(begun, told, reply, ctx);
            }
        }));
    }

    /// What there is is kept; the agent can be told.
    fn kept(
        &mut self,
        begun: Result<Begun, HostFailure>,
        told: String,
        reply: Option<super::state::Answer<HostFailure>>,
        ctx: &mut Context<Self>,
    ) {
        match begun {
            Ok(Begun { conversation, notes }) => {
                for note in notes {
                    self.note(&note);
                }
                self.tell_agent(told, conversation, reply, ctx);
            }
            Err(failure) => {
                let told = failure.message.clone();
                self.not_begun(&told, reply.is_none(), ctx);
                if let Some(reply) = reply {
                    let _ = reply.send(Err(failure));
                }
            }
        }
    }

    /// Stores what was heard of a turn that is over. The core hears of its end after that.
    pub(super) fn remember(&mut self, ctx: &mut Context<Self>) {
        let (Some(heard), Some(whose)) = (self.heard.take(), self.facts.whose.clone()) else { return };
        let (done, stored) = oneshot::channel();
        let sent = self.parts.memory.recipient().send(EndTurn { whose, heard });
        ctx.spawn(sent.into_actor(self).map(|notes, actor, _| {
            for note in notes.unwrap_or_default() {
                actor.note(&note);
            }
            // Nobody waits for it if the core is not told anything any more.
            let _ = done.send(());
        }));
        self.tell_core(Order::After(stored), ctx);
    }

    /// Ends the agent, and then stores what was heard of the turn in which it was.
    pub(super) fn dispose_and_remember(&mut self, ctx: &mut Context<Self>) {
        let dispose = DisposeAgent { task_id: self.parts.task_id.clone() };
        let sent = self.parts.preset.backend.recipient().send(dispose);
        let serial = self.turns;
        ctx.spawn(sent.into_actor(self).map(move |_, actor, ctx| {
            if actor.turns == serial {
                actor.remember(ctx);
            }
        }));
    }

    /// A turn whose agent was not told yet is cancelled: nobody else has to do anything for that. Says whether there is one.
    pub(super) fn cancel_before(&mut self, ctx: &mut Context<Self>) -> bool {
        let State::InTurn(turn) = &self.state else { return false };
        if turn.before.is_none() {
            return false;
        }
        ctx.cancel_future(turn.limit);
        self.answer_before(Ok(()));
        self.remember(ctx);
        self.settle("aborted", "", ctx);
        self.enter(EntryKind::Turn, "the turn was cancelled before the agent was told");
        self.state = State::Idle;
        true
    }

    /// Answers whoever waits for the beginning of a turn that will not begin as it was to.
    pub(super) fn answer_before(&mut self, answer: Result<(), HostFailure>) {
        if let State::InTurn(turn) = &mut self.state
            && let Some(Before { reply: Some(reply), .. }) = turn.before.take()
        {
            let _ = reply.send(answer);
        }
    }

    /// Tells people something of what is kept, in the transcript and beside it.
    pub(super) fn note(&mut self, note: &str) {
        self.enter(EntryKind::Note, note);
        self.warn(note.to_owned());
    }
}
