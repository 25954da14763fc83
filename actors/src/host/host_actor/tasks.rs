//! Starting, cancelling and talking to tasks.

use actix::prelude::{Context, Handler};
use cofferdam_protocol::host::HostEvent;
use cofferdam_protocol::host::{
    CancelTask, FollowUp, GetTranscript, OneTask, SetConfig, StartTask, StartedTask, Transcript,
};
use cofferdam_protocol::pod::{self, ModelChoice, PatchedConfig, PodErrorCode, TaskId, TaskSummary};

use super::{Answering, HostActor, after, at_once};
use crate::host::agent::{self, Preset};
use crate::host::failure::{HostFailure, HostRefusal};
use crate::host::live_task::{self, ReadTranscript, Tell};
use crate::host::memory::{ReadPast, Whose};
use crate::host::messages::Ask;
use crate::mailbox::Carries;
use crate::pod::{Failure, Refusal};

impl HostActor {
    /// A preset by its id.
    pub(super) fn preset(&self, id: &str) -> Option<&Preset> {
        agent::preset(&self.parts.presets, id)
    }

    /// The preset a task is to be started with, if that can be.
    fn usable_preset(&self, asked: Option<&str>) -> Result<Preset, HostRefusal> {
        let config = self.cache.config().ok_or(HostRefusal::Unavailable)?;
        let id = asked.unwrap_or(&config.preset_id);
        let known = || match self.parts.presets.as_slice() {
            [] => "this program knows none".to_owned(),
            presets => {
                let ids: Vec<_> = presets.iter().map(|preset| preset.id.as_str()).collect();
                format!("there are: {}; `cofferdam task presets` tells more of them", ids.join(", "))
            }
        };
        if id.is_empty() {
            return Err(HostRefusal::Config(format!(
                "no preset is chosen, so there is no agent to run; name one with the task (--preset), or for all tasks \
                 with `cofferdam config set presetId=ID`; {}",
                known()
            )));
        }
        let preset = self
            .preset(id)
            .ok_or_else(|| HostRefusal::Config(format!("there is no preset {id}; {}", known())))?;
        if let Some(why) = &preset.broken {
            return Err(HostRefusal::Config(format!("the preset {id} cannot be used: {why}")));
        }
        let lacking = config.lacking_tools(&preset.needs);
        match lacking.is_empty() {
            true => Ok(preset.clone()),
            false => Err(HostRefusal::Config(format!(
                "the preset {id} needs tools that the configuration does not allow: {}; allow them (allowedTools, \
                 allowWrites), or choose another preset",
                lacking.join(", ")
            ))),
        }
    }

    fn start_task(
        &mut self,
        request: StartTask,
        ctx: &Context<Self>,
    ) -> Result<Answering<StartedTask>, HostFailure> {
        let core = self.admits_tasks()?;
        if self.cache.config().is_some_and(|config| config.sandbox_root.is_empty()) {
            return Err(Failure::from(Refusal::NoSandboxRoot).into());
        }
        if request.description.trim().is_empty() {
            return Err(bad("description is empty: say what the task is to do"));
        }
        let preset = self.usable_preset(request.preset_id.as_deref())?;
        let internal = |_| HostFailure::from(HostRefusal::Internal("a task's id cannot be made".to_owned()));
        let task_id = TaskId::new(format!("pod-{}", self.parts.ids.fresh())).map_err(internal)?;
        let id = task_id.as_str().to_owned();
        let session_id = pod::pod_session_id(&dashed(&self.parts.ids.fresh()));
        let preset_id = Some(preset.id.clone());
        let lease_id = self.hold(&id, preset, ctx)?;
        let lease = lease_id.clone();
        let reserve = pod::TaskReserve {
            task_id,
            session_id,
            main_session_id: self.main_of(&request.main_session_id),
            label: request.label,
            description: request.description,
            subdir: request.subdir,
            timeout_ms: None,
            allow: None,
            preset_id,
            model: ModelChoice::default(),
            lease_id,
        };
        let reserved = async move { core.pod.ask(reserve).await.map_err(HostFailure::from) };
        Ok(after(reserved, move |actor, reserved, ctx| {
            let reserved = reserved.inspect_err(|failure| {
                actor.drop_unbegun(&id);
                if failure.code == PodErrorCode::CoreUnavailable.into() {
                    actor.given_up.insert(id.clone(), lease);
                }
            })?;
            actor.cache.adopt_if_new(&reserved.task);
            let row = actor.newest_row(&reserved.task);
            if reserved.start_now {
                actor.begin_unasked(reserved.task, reserved.policy, ctx);
            }
            Ok(StartedTask {
                task_id: row.task.id.clone(),
                session_id: row.task.session_id.clone(),
                task: row,
            })
        }))
    }

    /// A task this host was told of.
    pub(super) fn known_task(&self, id: &str) -> Result<&TaskSummary, HostFailure> {
        self.cache.task(id).ok_or_else(|| HostRefusal::TaskNotFound(id.to_owned()).into())
    }
}

/// A request that makes no sense.
pub(super) fn bad(why: &str) -> HostFailure {
    HostRefusal::BadRequest(why.to_owned()).into()
}

/// 32 hexadecimal digits as a UUID is written; anything else as it is.
fn dashed(digits: &str) -> String {
    match (digits.get(..8), digits.get(8..12), digits.get(12..16), digits.get(16..20), digits.get(20..32)) {
        (Some(a), Some(b), Some(c), Some(d), Some(e)) => format!("{a}-{b}-{c}-{d}-{e}"),
        _ => digits.to_owned(),
    }
}

impl Handler<Ask<StartTask>> for HostActor {
    type Result = Answering<StartedTask>;

    fn handle(&mut self, Ask(request): Ask<StartTask>, ctx: &mut Context<Self>) -> Self::Result {
        self.start_task(request, ctx).unwrap_or_else(|refusal| at_once(Err(refusal)))
    }
}

impl Handler<Ask<CancelTask>> for HostActor {
    type Result = Answering<OneTask>;

    fn handle(&mut self, Ask(request): Ask<CancelTask>, _: &mut Context<Self>) -> Self::Result {
        let core = match self.core() {
            Ok(core) => core,
            Err(refusal) => return at_once(Err(refusal)),
        };
        let CancelTask { task_id, reason } = request;
        let cancel = pod::TaskCancel { task_id: task_id.clone() };
        let cancelled = async move { core.pod.ask(cancel).await.map_err(HostFailure::from) };
        after(cancelled, move |actor, cancelled, _| {
            let is_away = |failure: &HostFailure| failure.code == PodErrorCode::CoreUnavailable.into();
            // A core that does not answer keeps nobody from ending an agent.
            if cancelled.as_ref().map_or_else(is_away, |_| true) {
                actor.cancel_agent(&task_id, reason);
            }
            let task = cancelled?.task;
            Ok(OneTask { task: actor.newest_row(&task) })
        })
    }
}

impl Handler<Ask<FollowUp>> for HostActor {
    type Result = Answering<OneTask>;

    fn handle(&mut self, Ask(request): Ask<FollowUp>, ctx: &mut Context<Self>) -> Self::Result {
        let FollowUp { task_id, text } = request;
        if let Err(refusal) = self.if_not_rewinding(&task_id) {
            return at_once(Err(refusal));
        }
        if text.trim().is_empty() {
            return at_once(Err(bad("text is empty: say what the agent is to do")));
        }
        self.with_agent(&task_id, ctx, move |actor, task| {
            let addr = actor.live.get(&task.id).map(|entry| entry.addr.clone());
            let told = async move {
                let Some(addr) = addr else {
                    return Err(HostRefusal::NotResumable("the agent is gone".to_owned()).into());
                };
                let told = addr.recipient().send(Tell { text }).await;
                told.unwrap_or_else(|_| Err(HostRefusal::NotResumable("the agent is gone".to_owned()).into()))
            };
            after(told, move |actor, told, _| {
                told?;
                Ok(OneTask { task: actor.newest_row(&task) })
            })
        })
    }
}

impl Handler<Ask<GetTranscript>> for HostActor {
    type Result = Answering<Transcript>;

    fn handle(&mut self, Ask(request): Ask<GetTranscript>, _: &mut Context<Self>) -> Self::Result {
        let GetTranscript { task_id, from } = request;
        let turns = match self.known_task(&task_id) {
            Ok(task) => task.turns,
            Err(refusal) => return at_once(Err(refusal)),
        };
        let gone = move || Transcript { entries: Vec::new(), next: 1, truncated: turns > 0 };
        let Some(entry) = self.live.get(&task_id) else {
            let Some(whose) = self.cache.task(&task_id).and_then(Whose::of) else {
                return at_once(Ok(gone()));
            };
            let past = self.memory.recipient().send(ReadPast(whose));
            let read = async move {
                let past = past.await.unwrap_or_default();
                Ok(if past.is_empty() { gone() } else { live_task::transcript_of(past, from) })
            };
            return after(read, |_, read, _| read);
        };
        let addr = entry.addr.clone();
        let read = async move {
            Ok(addr.recipient().send(ReadTranscript { from }).await.unwrap_or_else(|_| gone()))
        };
        after(read, |_, read, _| read)
    }
}

impl Handler<Ask<SetConfig>> for HostActor {
    type Result = Answering<PatchedConfig>;

    fn handle(&mut self, Ask(request): Ask<SetConfig>, _: &mut Context<Self>) -> Self::Result {
        let core = match self.core() {
            Ok(core) => core,
            Err(refusal) => return at_once(Err(refusal)),
        };
        let set = pod::ConfigSet { patch: request.patch };
        let patched = async move { core.pod.ask(set).await.map_err(HostFailure::from) };
        after(patched, |actor, patched, _| {
            let patched: PatchedConfig = patched?;
            actor.cache.set_config(patched.config.clone());
            actor.listeners.tell(HostEvent::StateChanged);
            Ok(patched)
        })
    }
}
