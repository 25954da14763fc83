//! `Begin`: an agent is made ready, and then, perhaps, told what the task is.

use std::mem::replace;

use actix::prelude::{ActorFutureExt, AsyncContext, Context, Handler, ResponseFuture, WrapFuture};
use cofferdam_protocol::host::EntryKind;
use tokio::sync::oneshot;

use super::LiveTask;
use super::core_line::{Ended, Order};
use super::messages::Begin;
use super::prepare::{Ready, Unready, tools};
use super::state::{Answer, Facts, Preparing, State, answered};
use crate::host::failure::{HostFailure, HostRefusal};

impl Handler<Begin> for LiveTask {
    type Result = ResponseFuture<Result<(), HostFailure>>;

    fn handle(&mut self, begin: Begin, ctx: &mut Context<Self>) -> Self::Result {
        let (reply, answer) = oneshot::channel();
        let refused = match &self.state {
            State::Waiting { cancelled } => {
                let cancelled = *cancelled;
                self.prepare(begin, reply, ctx);
                if cancelled {
                    self.give_up(&Unready::Cancelled, ctx);
                }
                return answered(answer);
            }
            State::Gone => {
                self.prepare(begin, reply, ctx);
                return answered(answer);
            }
            State::Preparing(_) | State::Idle | State::InTurn(_) => {
                HostRefusal::TaskBusy("the task has an agent already".to_owned())
            }
            State::Leaving(_) => HostRefusal::Unavailable,
        };
        Box::pin(async { Err(refused.into()) })
    }
}

impl LiveTask {
    fn prepare(&mut self, begin: Begin, reply: Answer<HostFailure>, ctx: &mut Context<Self>) {
        self.facts = Facts::of(&begin.task, &tools(&begin), self.facts.last_turn);
        let resume = begin.resume;
        self.resumed = resume;
        let former = replace(&mut self.had_agent, true);
        let work = self.parts.clone().prepare(begin, self.facts.last_turn, former, ctx.address().recipient());
        let work = ctx.spawn(work.into_actor(self).map(|outcome, actor, ctx| match outcome {
            Ok(ready) => actor.ready(ready, ctx),
            Err(why) => actor.give_up(&why, ctx),
        }));
        self.state = State::Preparing(Preparing { work, reply, resume });
    }

    /// There is an agent.
    fn ready(&mut self, ready: Ready, ctx: &mut Context<Self>) {
        let State::Preparing(Preparing { reply, resume, .. }) = replace(&mut self.state, State::Idle) else {
            return;
        };
        self.facts.available = ready.available;
        self.facts.last_turn = self.facts.last_turn.max(ready.last_turn);
        self.entries.begin_with(ready.past);
        self.set_live(true);
        for note in &ready.notes {
            self.enter(EntryKind::Note, note);
        }
        // Whoever asked may not care any more.
        let _ = reply.send(Ok(()));
        if ready.task.status.is_active() && !resume {
            self.begin_turn(ready.task.description, EntryKind::Prompt, None, ctx);
        }
    }

    /// There will be no agent: what was begun is ended, and the actor with it.
    pub(super) fn give_up(&mut self, why: &Unready, ctx: &mut Context<Self>) {
        let State::Preparing(Preparing { work, reply, resume }) = replace(&mut self.state, State::Gone)
        else {
            return;
        };
        ctx.cancel_future(work);
        let failure = HostFailure::from(why);
        if why.is_lost() {
            self.line.close();
        }
        match why {
            Unready::Cancelled | Unready::Released(_) if resume => {}
            Unready::Cancelled => self.settle_unbegun("aborted", ctx),
            Unready::Released(why) => self.settle_unbegun(why.reason(), ctx),
            why => {
                let message = why.to_string();
                self.warn(format!("task {} has no agent: {message}", self.parts.task_id));
                if !resume && !why.is_known() {
                    self.tell_core(Order::Error { code: failure.code.word(), message }, ctx);
                }
            }
        }
        self.give_slot_back(None, ctx);
        self.enter(EntryKind::Note, &failure.message);
        let _ = reply.send(Err(failure));
        self.leave(ctx);
    }

    /// Settles a task whose first turn will not begin: the core knows no other way to say so.
    fn settle_unbegun(&mut self, reason: &str, ctx: &mut Context<Self>) {
        let ended = Ended {
            turn: self.facts.last_turn + 1,
            reason: reason.to_owned(),
            timed_out: false,
            last_text: None,
            error: String::new(),
        };
        self.tell_core(Order::TurnEnded(ended), ctx);
    }
}
