//! What the agent does.

use std::mem::replace;

use actix::prelude::{AsyncContext, Context, Handler};
use cofferdam_protocol::host::EntryKind;
use cofferdam_protocol::pod::cut;

use super::LiveTask;
use super::core_line::Order;
use super::prepare::{Unready, told_tools};
use super::state::{Cancelled, State, Turn};
use crate::host::agent::AgentEvent;
use crate::host::failure::HostRefusal;
use crate::host::memory::Heard;

/// The most of a text that the core keeps, in UTF-16 units (spec §5).
const TEXT_CHARS: usize = 4000;

impl Handler<AgentEvent> for LiveTask {
    type Result = ();

    fn handle(&mut self, event: AgentEvent, ctx: &mut Context<Self>) {
        // What an agent says that was ended comes too late.
        if matches!(self.state, State::Waiting { .. } | State::Gone | State::Leaving(_)) {
            return;
        }
        match event {
            AgentEvent::TurnStarted { turn } => self.turn_started(turn, ctx),
            AgentEvent::Tools(tools) => self.has_tools(&tools, ctx),
            AgentEvent::Text(text) => self.said(&text, ctx),
            AgentEvent::Thinking(text) => self.enter(EntryKind::Thinking, &text),
            AgentEvent::ToolCall { name, input } => {
                if let Some(heard) = &mut self.heard {
                    heard.called(&name, &input);
                }
                self.enter(EntryKind::Tool, &format!("{name} {input}"));
                if !self.facts.tools.contains(&name) {
                    self.guard(&name, ctx);
                }
            }
            AgentEvent::Note(text) => self.enter(EntryKind::Note, &text),
            AgentEvent::ToolResult { text } => {
                if let Some(heard) = &mut self.heard {
                    heard.answered(&text);
                }
                self.enter(EntryKind::Tool, &text);
            }
            AgentEvent::Conversation(own) => {
                if let Some(heard) = &mut self.heard {
                    heard.keeps(own);
                }
            }
            AgentEvent::Exited => self.exited(ctx),
            AgentEvent::TurnEnded { turn, reason, error } => self.turn_ended(turn, &reason, &error, ctx),
            AgentEvent::Gone { message } => self.gone(message, ctx),
        }
    }
}

impl LiveTask {
    fn turn_started(&mut self, number: u64, ctx: &mut Context<Self>) {
        // It begins one by itself while it is about to be told something: that comes too late.
        self.answer_before(Err(HostRefusal::TaskBusy("the agent began a turn by itself".to_owned()).into()));
        let limit = match &mut self.state {
            // It was cancelled before it began; the cancellation is on its way to the agent.
            State::InTurn(turn) if turn.number.is_none() && turn.cancelled.is_some() => turn.limit,
            State::InTurn(turn) if turn.number == Some(number) => return,
            State::InTurn(turn) => {
                ctx.cancel_future(turn.limit);
                self.watch(ctx)
            }
            // An agent may begin one by itself.
            State::Idle => self.watch(ctx),
            State::Waiting { .. } | State::Preparing(_) | State::Gone | State::Leaving(_) => return,
        };
        let told = match &mut self.state {
            State::InTurn(Turn { number: None, cancelled, fault, settled, .. }) => {
                (*cancelled, fault.take(), *settled)
            }
            // Another one, whose predecessor's end was missed.
            _ => (None, None, false),
        };
        let (cancelled, fault, settled) = told;
        self.state = State::InTurn(Turn {
            number: Some(number),
            text: None,
            cancelled,
            fault,
            settled,
            exited: false,
            limit,
            before: None,
        });
        self.heard.get_or_insert_with(|| Heard::new(number, None));
        self.facts.last_turn = self.facts.last_turn.max(number);
        self.enter(EntryKind::Turn, &format!("turn {number} began"));
        if !settled {
            self.tell_core(Order::TurnStarted(number), ctx);
        }
    }

    fn said(&mut self, text: &str, ctx: &mut Context<Self>) {
        if text.trim().is_empty() {
            return;
        }
        if let Some(heard) = &mut self.heard {
            heard.said(text);
        }
        self.enter(EntryKind::Assistant, text);
        let text = cut(text, TEXT_CHARS).to_owned();
        if let State::InTurn(turn) = &mut self.state {
            turn.text = Some(text.clone());
        }
        self.tell_core(Order::LastText(text), ctx);
    }

    fn has_tools(&mut self, tools: &[String], ctx: &mut Context<Self>) {
        let tools = told_tools(tools);
        if tools != self.facts.available {
            self.facts.available.clone_from(&tools);
            self.tell_core(Order::Tools(tools), ctx);
        }
    }

    fn turn_ended(&mut self, number: u64, reason: &str, error: &str, ctx: &mut Context<Self>) {
        let State::InTurn(turn) = &mut self.state else { return };
        // An end that was delayed until the next turn had begun.
        if turn.number.is_some_and(|open| number < open) {
            return;
        }
        turn.number = Some(number);
        ctx.cancel_future(turn.limit);
        self.facts.last_turn = self.facts.last_turn.max(number);
        self.remember(ctx);
        self.settle(reason, error, ctx);
        let text = match error {
            "" => format!("turn {number} ended: {reason}"),
            error => format!("turn {number} ended: {reason}: {error}"),
        };
        self.enter(EntryKind::Turn, &text);
        self.state = State::Idle;
    }

    /// The agent is gone by itself.
    fn gone(&mut self, message: String, ctx: &mut Context<Self>) {
        self.answer_before(Err(HostRefusal::NotResumable("the agent is gone".to_owned()).into()));
        match &self.state {
            State::Preparing(_) => return self.give_up(&Unready::Gone(message), ctx),
            State::InTurn(turn) => {
                ctx.cancel_future(turn.limit);
                let cancelled = turn.cancelled;
                self.remember(ctx);
                match cancelled {
                    Some(Cancelled::Wanted | Cancelled::Late) => self.settle("aborted", "", ctx),
                    Some(Cancelled::Guarded) | None => self.settle("error", &message, ctx),
                }
            }
            State::Waiting { .. } | State::Idle | State::Gone | State::Leaving(_) => {}
        }
        self.give_slot_back(None, ctx);
        self.enter(EntryKind::Note, &format!("the agent is gone: {message}"));
        let _ = replace(&mut self.state, State::Gone);
        self.set_live(false);
    }
}
