//! `FollowUpAgent` and `CancelTurn`: a turn is a process.

use std::io;

use actix::prelude::{ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};

use tokio::task::spawn_blocking;

use super::CommandBackend;
use super::home::is_new;
use super::output::Printed;
use super::run::{Ran, Wanted, run};
use super::texts::readable;
use super::verdict::{Way, held};
use crate::host::agent::jsonl::Outcome;
use crate::host::agent::{AgentError, AgentEvent, CancelTurn, FollowUpAgent};

impl Handler<FollowUpAgent> for CommandBackend {
    type Result = Result<(), AgentError>;

    fn handle(&mut self, follow_up: FollowUpAgent, ctx: &mut Context<Self>) -> Self::Result {
        let agent = self.agents.get_mut(&follow_up.task_id).filter(|agent| !agent.disposed);
        let agent = agent.ok_or(AgentError::Gone)?;
        if agent.work.is_some() {
            return Err(AgentError::Busy);
        }
        if agent.facts.core.is_some() {
            return self.begin_cosh(follow_up, ctx);
        }
        let FollowUpAgent { task_id, prompt, conversation } = follow_up;
        let facts = agent.facts.clone();
        let begins = agent.next == 1;
        let mut job = self.parts.turn(&facts, begins, prompt.clone())?;
        // After a rewind to its beginning, or the host's death in its first turn, an agent that keeps its conversation at home has
        // none to go on with. That the host has none does not say that: somebody may have removed that one alone. Nor does a home with nothing in it: the agent may
        // keep its conversation elsewhere, if there is one.
        let answered = conversation.is_some_and(|conversation| {
            conversation.messages.iter().any(|message| message.role == "assistant")
        });
        let anew = match facts.home {
            Some(home) if !begins && !answered => {
                let first = self.parts.turn(&agent.facts, true, prompt);
                first.ok().map(|first| (home, facts.preset.from_home.clone(), first))
            }
            _ => None,
        };
        let (turn, told) = agent.next_turn();
        let events = agent.events.clone();
        let work = async move {
            // Whoever listens does not wait for anybody; one that is gone misses nothing.
            let _ = events.send(AgentEvent::TurnStarted { turn }).await;
            if let Some((home, shown, first)) = anew
                && spawn_blocking(move || is_new(&home, &shown)).await.unwrap_or(false)
            {
                job = first;
            }
            let said = async |event| {
                let _ = events.send(event).await;
            };
            run(job, told, said).await
        };
        ctx.spawn(work.into_actor(self).map(move |ran, actor, ctx| actor.ended(&task_id, turn, ran, ctx)));
        Ok(())
    }
}

impl CommandBackend {
    /// Whether a turn did not run, since its sandbox would not have been the one that was tested. Then the agent is gone, and the
    /// next one's sandbox is tested anew.
    pub(super) fn was_weaker(&mut self, task_id: &str, ran: Option<&Ran>, ctx: &mut Context<Self>) -> bool {
        let agent = self.agents.get(task_id).filter(|agent| !agent.disposed);
        let (Some(agent), Some(ran)) = (agent, ran.filter(|ran| !ran.layers.is_empty())) else {
            return false;
        };
        self.verdicts.compare(&Way::of(&agent.facts), &ran.layers);
        let holding = held(&ran.layers);
        if ran.exited.is_some() || agent.facts.least.iter().all(|layer| holding.contains(layer)) {
            return false;
        }
        let why = ran.failure.as_deref().unwrap_or("the sandbox lacks what it had when it was tested");
        let message = format!("{why}; resume the task, and its sandbox is tested anew");
        let said = agent.events.send(AgentEvent::Gone { message });
        ctx.spawn(said.into_actor(self).map(|_, _, _| ()));
        self.agents.remove(task_id);
        true
    }

    /// A turn is over. What it ends with is said last.
    fn ended(&mut self, task_id: &str, turn: u64, ran: io::Result<Ran>, ctx: &mut Context<Self>) {
        if self.was_weaker(task_id, ran.as_ref().ok(), ctx) {
            return;
        }
        if let Some(agent) = self.agents.get(task_id)
            && !agent.disposed
        {
            let left = left(&ran);
            let (reason, error) = outcome(ran);
            let ended = AgentEvent::TurnEnded { turn, reason: reason.to_owned(), error };
            // Sent now, and heard after the next line: whoever hears it may go on with the agent at once.
            for event in left.into_iter().chain([ended]) {
                let said = agent.events.send(event);
                ctx.spawn(said.into_actor(self).map(|_, _, _| ()));
            }
        }
        self.rests(task_id);
    }
}

/// What people are told of what is left of a turn; nothing if nothing is.
pub(super) fn left(ran: &io::Result<Ran>) -> Option<AgentEvent> {
    ran.as_ref().ok().and_then(Ran::left).map(AgentEvent::Note)
}

/// Why a turn has ended, and what went wrong.
pub(super) fn outcome(ran: io::Result<Ran>) -> (&'static str, String) {
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => return ("error", format!("the sandbox's supervisor cannot be started: {error}")),
    };
    if ran.cancelled {
        return ("aborted", String::new());
    }
    match ran.printed {
        Printed { unusable: Some(why), .. } => return ("error", with(why, &ran.errors)),
        Printed { outcome: Some(Outcome { is_error: true, text, subtype, .. }), .. } => {
            return match (text.as_str(), subtype.as_str()) {
                ("", "") => ("error", with("the program says that it failed".to_owned(), &ran.errors)),
                ("", what) => {
                    ("error", with(format!("the program says that it failed: {what}"), &ran.errors))
                }
                (text, _) => ("error", readable(text.as_bytes())),
            };
        }
        Printed { .. } => {}
    }
    let what = match (ran.exited, ran.failure) {
        (Some((Some(0), _)), _) => return ("completed", String::new()),
        (Some((Some(code), _)), _) => format!("the program ended with exit code {code}"),
        (Some((None, Some(signal))), _) => format!("the program was ended by signal {signal}"),
        (Some((None, None)), _) => "the program ended, and nobody knows how".to_owned(),
        (None, Some(failure)) => failure,
        (None, None) => {
            "the sandbox's supervisor ended before the program did; the daemon's log may say more".to_owned()
        }
    };
    ("error", with(what, &ran.errors))
}

/// What went wrong, with what the program complained about.
fn with(what: String, errors: &str) -> String {
    if errors.is_empty() { what } else { format!("{what}: {errors}") }
}

impl Handler<CancelTurn> for CommandBackend {
    type Result = ();

    fn handle(&mut self, CancelTurn { task_id, .. }: CancelTurn, _: &mut Context<Self>) {
        if let Some(agent) = self.agents.get(&task_id).filter(|agent| !agent.disposed)
            && let Some(work) = &agent.work
        {
            work.send_replace(Wanted::Cancel);
        }
    }
}
