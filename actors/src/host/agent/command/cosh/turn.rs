//! A turn: the conversation is put into the private home, the program holds it there, and what it has become comes back.

use std::io;

use actix::prelude::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use cofferdam_protocol::pod::session_uuid;
use cofferdam_protocol::session::SessionId;
use cofferdam_storage::sandbox::Program;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::CoreProgram;
use super::recovery::Shown;
use super::seed::{Back, Beginning, Seed};
use super::talk::Talk;
use crate::host::agent::command::output::Output;
use crate::host::agent::command::run::{Job, Ran, Wanted, run};
use crate::host::agent::command::turn::{left, outcome};
use crate::host::agent::command::{CommandBackend, CommandParts, Facts};
use crate::host::agent::{AgentError, AgentEvent, FollowUpAgent};
use crate::session::recovery::Attempt;

/// What came of a turn.
struct Carried {
    ran: io::Result<Ran>,
    back: Back,
}

impl CommandBackend {
    /// Begins a turn of an agent that rests.
    pub(in crate::host::agent::command) fn begin_cosh(
        &mut self,
        FollowUpAgent { task_id, prompt, conversation }: FollowUpAgent,
        ctx: &mut Context<Self>,
    ) -> Result<(), AgentError> {
        let agent = self.agents.get_mut(&task_id).ok_or(AgentError::Gone)?;
        let facts = agent.facts.clone();
        let program = facts.core.clone().ok_or(AgentError::Gone)?;
        let uuid = session_uuid(&facts.session_id).unwrap_or(&facts.session_id);
        let id = SessionId::new(uuid).map_err(|error| AgentError::Failed(error.to_string()))?;
        let talk = Talk::new(&prompt, id.as_str(), &facts.tools);
        let attempt = agent.recovery.begin(&facts.policy.root, id.as_str());
        let (turn, told) = agent.next_turn();
        let events = agent.events.clone();
        let parts = self.parts.clone();
        let beginning = Beginning {
            root: facts.policy.root.clone().into(),
            id,
            stored: conversation.map(|stored| (*stored).clone()),
            system_prompt: facts.system_prompt.clone(),
            home: parts.home.clone(),
            now: parts.now_ms(),
        };
        let work = async move {
            // Whoever listens does not wait for anybody; one that is gone misses nothing.
            let tell = async |event| {
                let _ = events.send(event).await;
            };
            tell(AgentEvent::TurnStarted { turn }).await;
            parts.carry(&program, &facts, beginning, talk, told, tell).await
        };
        let ended = work.into_actor(self).map(move |carried, actor, ctx| {
            actor.cosh_ended(&task_id, turn, &attempt, carried, ctx);
        });
        ctx.spawn(ended);
        Ok(())
    }

    /// A turn is over. What it ends with is said last.
    fn cosh_ended(
        &mut self,
        task_id: &str,
        turn: u64,
        attempt: &Attempt,
        carried: Result<Carried, String>,
        ctx: &mut Context<Self>,
    ) {
        let ran = carried.as_ref().ok().and_then(|carried| carried.ran.as_ref().ok());
        if self.was_weaker(task_id, ran, ctx) {
            return;
        }
        if let Some(agent) = self.agents.get_mut(task_id).filter(|agent| !agent.disposed) {
            let mut said = Vec::new();
            let shown = match carried {
                // Nothing was resumed that could have been lost.
                Err(why) => Some(Shown::Failed(why)),
                Ok(Carried { ran, back }) => {
                    said.extend(left(&ran));
                    let run = ran.as_ref().map(|ran| ran.printed.session.clone()).unwrap_or_default();
                    let shown = agent.recovery.finish(attempt, &run, ended(ran));
                    said.extend(kept(back, shown.as_ref()));
                    shown
                }
            };
            let (reason, error) = match shown {
                Some(Shown::Completed) => ("completed", String::new()),
                Some(Shown::Cancelled) => ("aborted", String::new()),
                Some(Shown::Failed(why)) => ("error", why),
                None => ("interrupted", "a newer turn has taken this one's place".to_owned()),
            };
            said.push(AgentEvent::TurnEnded { turn, reason: reason.to_owned(), error });
            // Sent now, and heard after the next line: whoever hears it may go on with the agent at once.
            let sent: Vec<_> = said.into_iter().map(|event| agent.events.send(event)).collect();
            let heard = async {
                for one in sent {
                    let _ = one.await;
                }
            };
            ctx.spawn(heard.into_actor(self));
        }
        self.rests(task_id);
    }
}

/// How the turn ended, as far as the program and its sandbox say.
fn ended(ran: io::Result<Ran>) -> Shown {
    let completed = ran.as_ref().is_ok_and(|ran| {
        !ran.cancelled && ran.printed.outcome.as_ref().is_some_and(|outcome| !outcome.is_error)
    });
    if completed {
        // However the program then ended: its turn had.
        return Shown::Completed;
    }
    match outcome(ran) {
        ("aborted", _) => Shown::Cancelled,
        ("completed", _) => Shown::Failed("the program ended before its turn did".to_owned()),
        (_, why) => Shown::Failed(why),
    }
}

/// What is said of the conversation. What the program has not stored, or not so that it can be read, stays as it was heard.
fn kept(back: Back, shown: Option<&Shown>) -> Option<AgentEvent> {
    let why = match back {
        Back::Stored(envelope) => return Some(AgentEvent::Conversation(envelope)),
        // It said so itself, or it was not let.
        Back::Untouched if shown != Some(&Shown::Completed) => return None,
        Back::Untouched => "it has not stored the turn".to_owned(),
        Back::Unusable(why) => why,
    };
    Some(AgentEvent::Note(format!(
        "the agent's own conversation cannot be used, and what was heard of the turn is kept: {why}"
    )))
}

impl CommandParts {
    async fn carry(
        &self,
        program: &CoreProgram,
        facts: &Facts,
        beginning: Beginning,
        talk: Talk,
        told: watch::Receiver<Wanted>,
        tell: impl AsyncFn(AgentEvent),
    ) -> Result<Carried, String> {
        let lost = |_| "the conversation cannot be written down".to_owned();
        let seed = spawn_blocking(move || beginning.seed()).await.map_err(lost)??;
        if let Some(warning) = &seed.warning {
            tell(AgentEvent::Note(warning.clone())).await;
        }
        let job = self.cosh(program, facts, &seed, talk).map_err(|error| error.to_string())?;
        let ran = run(job, told, tell).await;
        let returned = ran.as_ref().ok().and_then(|ran| ran.returned.get(seed.session()?)).cloned();
        let back = match &ran {
            // No program had it.
            Ok(Ran { exited: None, failure: Some(_), .. }) | Err(_) => Back::Untouched,
            Ok(_) => {
                let now = self.now_ms();
                let back = spawn_blocking(move || seed.back(returned.as_ref(), now)).await;
                back.unwrap_or_else(|_| Back::Unusable("it cannot be read".to_owned()))
            }
        };
        Ok(Carried { ran, back })
    }

    fn cosh(&self, program: &CoreProgram, facts: &Facts, seed: &Seed, talk: Talk) -> io::Result<Job> {
        let path = program.path.to_str().ok_or_else(|| {
            io::Error::other(format!("the program's path {} is not UTF-8", program.path.display()))
        })?;
        let uuid = session_uuid(&facts.session_id).unwrap_or(&facts.session_id);
        let mut argv = vec![path];
        argv.extend(program.part);
        argv.extend(["--headless", "--workspace", &seed.workspace, "--resume", uuid]);
        if !facts.model.is_empty() {
            argv.extend(["--model", &facts.model]);
        }
        let argv = argv.into_iter().map(str::to_owned).collect();
        let cwd = facts.policy.task_dir.clone().into();
        let mut order = self.order(facts);
        order.program = Some(Program { argv, env: self.environment(facts), cwd });
        order.home_files.clone_from(&seed.files);
        let files = seed.content.iter().map(|file| file.try_clone()).collect::<io::Result<Vec<_>>>()?;
        Ok(Job { files, ..self.job(order, String::new(), Output::Cosh(Box::new(talk))) })
    }

    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.wall().0 / 1_000_000).unwrap_or(0)
    }
}
