//! What ends a turn before its agent does: somebody who cancels it, its time, a tool the task does not allow. An agent that
//! does not end its turn then is ended itself.

use actix::prelude::{AsyncContext, Context, Handler, SpawnHandle};
use cofferdam_protocol::host::EntryKind;

use super::core_line::{Ended, Order};
use super::messages::{Cancel, Expired};
use super::prepare::Unready;
use super::state::{Cancelled, State};
use super::{CLEARING, LiveTask, PATIENCE, WATCHDOG};
use crate::host::agent::{CancelCause, CancelTurn};
use crate::host::failure::HostRefusal;

impl Handler<Cancel> for LiveTask {
    type Result = ();

    fn handle(&mut self, Cancel { cause }: Cancel, ctx: &mut Context<Self>) {
        match &mut self.state {
            State::Waiting { cancelled } => *cancelled = true,
            State::Preparing(_) => self.give_up(&Unready::Cancelled, ctx),
            State::InTurn(turn) => {
                turn.cancelled.get_or_insert(Cancelled::Wanted);
                self.cancel_turn(cause, ctx);
            }
            State::Idle | State::Gone | State::Leaving(_) => {}
        }
    }
}

impl Handler<Expired> for LiveTask {
    type Result = ();

    /// The agent has until the watchdog comes to end its turn.
    fn handle(&mut self, Expired { turn: number }: Expired, ctx: &mut Context<Self>) {
        let State::InTurn(turn) = &mut self.state else { return };
        if turn.number != Some(number) || turn.settled {
            return;
        }
        let before = turn.cancelled.replace(Cancelled::Late);
        if before.is_none() {
            self.order(CancelTurn { task_id: self.parts.task_id.clone(), cause: CancelCause::Timeout }, ctx);
        }
    }
}

impl LiveTask {
    /// Watches a turn that begins now.
    pub(super) fn watch(&self, ctx: &mut Context<Self>) -> SpawnHandle {
        let limit = self.facts.timeout.saturating_add(WATCHDOG);
        ctx.run_later(self.parts.real(limit), |actor, ctx| actor.out_of_time(ctx))
    }

    /// The turn is over time, and nobody else has ended it.
    fn out_of_time(&mut self, ctx: &mut Context<Self>) {
        let State::InTurn(turn) = &mut self.state else { return };
        turn.cancelled = Some(Cancelled::Late);
        self.enter(EntryKind::Note, "the turn took too long, and was cancelled");
        self.settle("aborted", "", ctx);
        self.cancel_turn(CancelCause::Timeout, ctx);
    }

    /// The agent called a tool that the task does not allow.
    pub(super) fn guard(&mut self, tool: &str, ctx: &mut Context<Self>) {
        let what = format!("the agent called the tool {tool}, which the task does not allow");
        self.enter(EntryKind::Note, &what);
        match &mut self.state {
            State::InTurn(turn) => {
                // One that is being cancelled already ends as that.
                if turn.cancelled.is_none() {
                    turn.cancelled = Some(Cancelled::Guarded);
                    // Told when nothing of it runs any more.
                    turn.fault = Some(format!("{what}; allow it in the configuration, or ask for less"));
                }
                self.cancel_turn(CancelCause::Guard { what }, ctx);
            }
            // Outside of a turn there is nothing that could be cancelled.
            _ => self.abandon("the agent worked outside of a turn, and was ended", ctx),
        }
    }

    /// Has the agent end its turn, in 10 s at most.
    fn cancel_turn(&mut self, cause: CancelCause, ctx: &mut Context<Self>) {
        if self.cancel_before(ctx) {
            return;
        }
        self.order(CancelTurn { task_id: self.parts.task_id.clone(), cause }, ctx);
        if let State::InTurn(turn) = &mut self.state
            && !turn.exited
        {
            ctx.cancel_future(turn.limit);
            turn.limit = ctx.run_later(self.parts.real(PATIENCE), |actor, ctx| actor.out_of_patience(ctx));
        }
    }

    /// The program of the turn has ended: the turn ends when what is left of that is cleared.
    pub(super) fn exited(&mut self, ctx: &mut Context<Self>) {
        if let State::InTurn(turn) = &mut self.state {
            turn.exited = true;
            ctx.cancel_future(turn.limit);
            turn.limit = ctx.run_later(self.parts.real(CLEARING), |actor, ctx| actor.out_of_patience(ctx));
        }
    }

    /// The agent has not ended its turn.
    fn out_of_patience(&mut self, ctx: &mut Context<Self>) {
        self.settle("aborted", "", ctx);
        self.abandon("the agent did not end its turn in time, and was ended; resume the task to go on", ctx);
    }

    /// Tells the core how the turn ended: once, whatever comes later.
    pub(super) fn settle(&mut self, reason: &str, error: &str, ctx: &mut Context<Self>) {
        let State::InTurn(turn) = &mut self.state else { return };
        if turn.settled {
            return;
        }
        turn.settled = true;
        let fault = turn.fault.take();
        let (reason, error) = fault.as_deref().map_or((reason, error), |fault| ("error", fault));
        let has_begun = turn.number.is_some();
        let number = turn.number.unwrap_or(self.facts.last_turn + 1);
        if has_begun {
            self.facts.last_turn = self.facts.last_turn.max(number);
        }
        let ended = Ended {
            turn: number,
            reason: reason.to_owned(),
            timed_out: turn.cancelled == Some(Cancelled::Late) && fault.is_none(),
            last_text: turn.text.clone(),
            error: error.to_owned(),
        };
        if !has_begun {
            // For the core a task that has ended before would stay as it was, whatever became of this turn. The agent knows
            // of none, and gives its number to the next one: that is no other for the core either.
            self.tell_core(Order::TurnStarted(number), ctx);
        }
        self.tell_core(Order::TurnEnded(ended), ctx);
    }

    /// Ends an agent that does not do as it is told. The lease is kept: there can be another one.
    pub(super) fn abandon(&mut self, note: &str, ctx: &mut Context<Self>) {
        match &self.state {
            State::InTurn(turn) => drop(ctx.cancel_future(turn.limit)),
            State::Idle => {}
            State::Waiting { .. } | State::Preparing(_) | State::Gone | State::Leaving(_) => return,
        }
        self.answer_before(Err(HostRefusal::NotResumable("the agent is gone".to_owned()).into()));
        self.give_slot_back(None, ctx);
        self.dispose_and_remember(ctx);
        self.enter(EntryKind::Note, note);
        self.warn(format!("task {}: {note}", self.parts.task_id));
        self.state = State::Gone;
        self.set_live(false);
    }
}
