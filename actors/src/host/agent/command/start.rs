//! `StartAgent`: an agent is written down, and its sandbox tested.

use std::sync::Arc;

use actix::prelude::{ActorFutureExt, Context, Handler, ResponseActFuture, WrapFuture};
use cofferdam_protocol::pod::SandboxCheck;
use cofferdam_storage::sandbox::Layer;
use tokio::sync::watch;

use super::run::{Wanted, run};
use super::verdict::{Way, check, held};
use super::{Agent, COSH, CommandBackend, Facts, Recovery};
use crate::host::agent::{AgentError, ReadyAgent, StartAgent};

/// A kept home's name in the directory that is the task's own.
const HOME: &str = "home";

impl Handler<StartAgent> for CommandBackend {
    type Result = ResponseActFuture<Self, Result<ReadyAgent, AgentError>>;

    fn handle(&mut self, start: StartAgent, _: &mut Context<Self>) -> Self::Result {
        match self.write_down(start) {
            Ok((task_id, facts)) => self.test(task_id, facts),
            Err(error) => Box::pin(async { Err(error) }.into_actor(self)),
        }
    }
}

impl CommandBackend {
    fn write_down(&mut self, start: StartAgent) -> Result<(String, Facts), AgentError> {
        let preset = self.presets.get(&start.preset).cloned().ok_or_else(|| {
            AgentError::Config(format!("there is no preset {} that can be used", start.preset))
        })?;
        if start.resume && preset.argv_follow_up.is_none() {
            return Err(AgentError::NotResumable(format!(
                "an agent of the preset {id} has one turn, and cannot be resumed; start a new task, or give {id} an \
                 argv_follow_up in the file of presets",
                id = preset.id
            )));
        }
        if self.agents.contains_key(&start.task_id) {
            return Err(AgentError::Failed("the task has an agent already".to_owned()));
        }
        let home = match (preset.keep_home, start.agent_dir) {
            (false, _) => None,
            (true, Some(dir)) => Some(dir.join(HOME)),
            (true, None) => {
                return Err(AgentError::Config(format!(
                    "the preset {} keeps its home, and there is no place for it here; run it with cofferdam serve, or \
                     leave out keep_home",
                    preset.id
                )));
            }
        };
        let facts = Facts {
            core: self.core.clone().filter(|_| preset.id == COSH),
            home,
            preset,
            session_id: start.session_id,
            model: start.model.model,
            policy: start.policy,
            mode: start.mode,
            tools: start.tools,
            system_prompt: start.system_prompt,
            least: Vec::new(),
        };
        let agent = Agent {
            facts: facts.clone(),
            events: start.events,
            next: start.turns + 1,
            work: None,
            recovery: Recovery::default(),
            disposed: false,
        };
        self.agents.insert(start.task_id.clone(), agent);
        Ok((start.task_id, facts))
    }

    fn test(
        &mut self,
        task_id: String,
        facts: Facts,
    ) -> ResponseActFuture<Self, Result<ReadyAgent, AgentError>> {
        let way = Way::of(&facts);
        if let Some((check, layers)) = self.verdicts.get(&way, self.parts.clock.monotonic()) {
            self.needs(&task_id, layers);
            return Box::pin(async move { Ok(ready(&facts, check)) }.into_actor(self));
        }
        let (wanted, told) = watch::channel(Wanted::Work);
        if let Some(agent) = self.agents.get_mut(&task_id) {
            agent.work = Some(Arc::new(wanted));
        }
        let tested = run(self.parts.test(&facts), told, async |_| {});
        Box::pin(tested.into_actor(self).map(move |tested, actor, _| {
            actor.rests(&task_id);
            if !actor.agents.contains_key(&task_id) {
                return Err(AgentError::Gone);
            }
            match tested {
                Ok(ran) => {
                    let check = check(&facts, &ran, actor.parts.clock.wall().0 / 1_000_000);
                    actor.needs(&task_id, held(&ran.layers));
                    actor.verdicts.keep(way, &ran.layers, check.clone(), actor.parts.clock.monotonic());
                    Ok(ready(&facts, check))
                }
                Err(error) => {
                    actor.agents.remove(&task_id);
                    Err(AgentError::Failed(format!("its sandbox's supervisor cannot be started: {error}")))
                }
            }
        }))
    }
}

impl CommandBackend {
    /// No turn of the agent is to run without these layers.
    fn needs(&mut self, task_id: &str, layers: Vec<Layer>) {
        if let Some(agent) = self.agents.get_mut(task_id) {
            agent.facts.least = layers;
        }
    }
}

fn ready(facts: &Facts, check: SandboxCheck) -> ReadyAgent {
    ReadyAgent { check, tools: facts.preset.needs.clone() }
}
