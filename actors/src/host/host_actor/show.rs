//! What the host shows of itself. A state is asked for far more often than it changes, so its body is kept.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use actix::prelude::{ActorFutureExt, Context, Handler, MessageResult, WrapFuture};
use cofferdam_protocol::host::*;
use cofferdam_protocol::pod::{self, CORE_VERSION, ExportRecord, cut};

use super::{Answering, HostActor, at_once};
use crate::host::core::{CoreDescription, Describe, Keeper};
use crate::host::failure::{HostFailure, HostRefusal};
use crate::host::messages::{Ask, GetStatus};
use crate::host::verdict::Compared;
use crate::mailbox::Carries;

/// For how long what the disk looked like is good enough.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Of how many main sessions the state's body is kept.
const BODIES: usize = 16;
/// How much of an agent's last text a list shows, in UTF-16 units.
const LAST_TEXT: usize = 600;
/// How many export records a state shows, and how many files of each.
const EXPORTS: (usize, usize) = (50, 20);
/// How many diagnostics a state shows.
const DIAGNOSTICS: usize = 20;
/// Tools to choose from, whatever was seen.
const TOOLS: [&str; 24] = [
    "agent",
    "apply_patch",
    "bash",
    "edit",
    "fetch",
    "glob",
    "grep",
    "list",
    "ls",
    "multiedit",
    "notebook_edit",
    "notebook_read",
    "patch",
    "pwsh",
    "python",
    "read",
    "search",
    "shell",
    "skill",
    "task",
    "todo_read",
    "todo_write",
    "web_search",
    "write",
];

/// Documents that were made, by main session.
#[derive(Debug, Default)]
pub(super) struct Shown(HashMap<String, Body>);

#[derive(Debug)]
struct Body {
    /// Of what.
    revision: u64,
    /// Where the main session worked then.
    cwd: Option<String>,
    /// When the disk was looked at, on the monotonic clock.
    looked_at: Duration,
    body: Prepared,
}

impl Shown {
    /// Something on the disk has changed.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

/// What is to be looked at on the disk.
struct Look {
    compared: Compared,
    dirs: Vec<(String, PathBuf)>,
}

impl Look {
    /// The verdict on the sandbox root, and the tasks whose directory is missing.
    fn look(self) -> (SandboxVerdict, HashSet<String>) {
        let missing = |(_, dir): &(String, PathBuf)| !dir.is_dir();
        let missing = self.dirs.into_iter().filter(missing).map(|(task, _)| task).collect();
        (self.compared.verdict(), missing)
    }
}

impl HostActor {
    /// The state as the user of a main session sees it.
    fn state(&self, main: &str, sandbox: SandboxVerdict) -> State {
        let tasks = self.cache.tasks();
        let mut tools: Vec<String> = TOOLS.iter().map(|tool| (*tool).to_owned()).collect();
        let seen = tasks.iter().flat_map(|task| task.available_tools.iter().chain(&task.allow));
        tools.extend(
            self.cache.config().into_iter().flat_map(|config| &config.allowed_tools).chain(seen).cloned(),
        );
        tools.sort_unstable();
        tools.dedup();
        let preset = |preset: &crate::host::agent::Preset| PresetChoice {
            id: preset.id.clone(),
            name: preset.name.clone(),
            broken: preset.broken.is_some(),
            why: preset.broken.clone().unwrap_or_default(),
            needs: preset.needs.clone(),
            lacks: self.cache.config().map(|config| config.lacking_tools(&preset.needs)).unwrap_or_default(),
            resumable: preset.resumable,
        };
        State {
            build: HOST_BUILD,
            plugin_version: CORE_VERSION.to_owned(),
            revision: self.cache.revision(),
            core: self.cache.core.clone(),
            config: self.cache.config().cloned(),
            tool_choices: tools,
            preset_choices: self.parts.presets.iter().map(preset).collect(),
            sandbox,
            tasks: tasks.into_iter().map(|task| listed(self.row(task))).collect(),
            exports: self.cache.exports().iter().take(EXPORTS.0).map(shortened).collect(),
            remembered_target: self.cache.remembered_target(main).to_owned(),
            diagnostics: self.cache.diagnostics(DIAGNOSTICS),
            compat: self.parts.compat.clone(),
            store_path: self.cache.store_path.clone(),
        }
    }

    fn look(&self, main: &str) -> Look {
        let root = self.cache.config().map(|config| config.sandbox_root.clone()).unwrap_or_default();
        let resumable = |task: &&&pod::TaskSummary| task.status.is_terminal() && !task.legacy;
        let dir = |task: &&pod::TaskSummary| (task.id.clone(), PathBuf::from(&task.task_dir));
        Look {
            compared: Compared {
                root,
                main_cwd: self.main_cwd(main),
                temp_dirs: self.parts.temp_dirs.clone(),
            },
            dirs: self.cache.tasks().iter().filter(resumable).map(dir).collect(),
        }
    }

    fn keep_body(&mut self, main: String, sandbox: SandboxVerdict) -> Prepared {
        let body = Prepared(success_body(&self.state(&main, sandbox)));
        if self.shown.0.len() >= BODIES && !self.shown.0.contains_key(&main) {
            self.shown.0.clear();
        }
        let kept = Body {
            revision: self.cache.revision(),
            cwd: self.main_cwd(&main),
            looked_at: self.parts.clock.monotonic(),
            body: body.clone(),
        };
        self.shown.0.insert(main, kept);
        body
    }

    /// The core's program; empty if it runs in this process.
    fn core_path(&self) -> String {
        match &self.parts.core.keeper {
            Keeper::Embedded(_) => String::new(),
            Keeper::Sidecar(parts) => parts.program.display().to_string(),
        }
    }

    /// The sessions that are live.
    fn live_sessions(&self) -> Vec<LiveSession> {
        let root = self.cache.config().map(|config| config.sandbox_root.clone()).unwrap_or_default();
        // By its text: this document is made without looking at the disk.
        let inside = |cwd: &str| !root.is_empty() && Path::new(cwd).starts_with(&root);
        let pods = self.live.agents().filter_map(|id| self.cache.task(id)).map(|task| LiveSession {
            id: task.session_id.clone(),
            origin: "pod".to_owned(),
            cwd: task.task_dir.clone(),
            inside_sandbox: true,
        });
        let mains = self.listeners.mains().into_iter().map(|main| LiveSession {
            id: main.id.clone(),
            origin: if main.subagent { "subagent" } else { "main" }.to_owned(),
            cwd: main.cwd.clone(),
            inside_sandbox: inside(&main.cwd),
        });
        let mut live: Vec<_> = pods.chain(mains).collect();
        live.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        live
    }
}

/// A task as a list shows it.
fn listed(mut row: TaskRow) -> TaskRow {
    row.task = row.task.for_list();
    row.task.last_text.truncate(cut(&row.task.last_text, LAST_TEXT).len());
    row
}

/// An export record with its first files.
fn shortened(export: &ExportRecord) -> ExportRecord {
    let total = export.items_total.unwrap_or(export.items.len());
    let items: Vec<_> = export.items.iter().take(EXPORTS.1).cloned().collect();
    let truncated = items.len() < total;
    ExportRecord {
        items_total: truncated.then_some(total),
        items_truncated: truncated,
        items,
        ..export.clone()
    }
}

impl Handler<Ask<GetState>> for HostActor {
    type Result = Answering<Prepared>;

    fn handle(&mut self, Ask(request): Ask<GetState>, _: &mut Context<Self>) -> Self::Result {
        let main = self.main_of(&request.main_session_id);
        if let Some(kept) = self.shown.0.get(&main)
            && kept.revision == self.cache.revision()
            && self.parts.clock.monotonic().saturating_sub(kept.looked_at) < LOOK_AGAIN
            && kept.cwd == self.main_cwd(&main)
        {
            return at_once(Ok(kept.body.clone()));
        }
        let look = self.look(&main);
        let looked = tokio::task::spawn_blocking(move || look.look());
        Box::pin(looked.into_actor(self).map(move |looked, actor, _| {
            let internal =
                |_| HostFailure::from(HostRefusal::Internal("the disk could not be looked at".to_owned()));
            let (verdict, missing) = looked.map_err(internal)?;
            actor.cache.set_missing(missing);
            Ok(actor.keep_body(main, verdict))
        }))
    }
}

impl Handler<GetStatus> for HostActor {
    type Result = MessageResult<GetStatus>;

    fn handle(&mut self, _: GetStatus, _: &mut Context<Self>) -> Self::Result {
        MessageResult(Status {
            build: HOST_BUILD,
            plugin_version: CORE_VERSION.to_owned(),
            token_prefix: String::new(),
            core: self.cache.core.clone(),
            task_count: self.cache.task_count(),
            store_path: self.cache.store_path.clone(),
            core_path: self.core_path(),
            sandbox: StatusSandbox {
                root: self.cache.config().map(|config| config.sandbox_root.clone()).unwrap_or_default(),
                live_sessions: self.live_sessions(),
            },
            compat: self.parts.compat.clone(),
            diagnostics: self.cache.diagnostics(DIAGNOSTICS),
        })
    }
}

impl Handler<Ask<GetDiagnostics>> for HostActor {
    type Result = Answering<DiagnosticsPage>;

    fn handle(&mut self, Ask(GetDiagnostics {}): Ask<GetDiagnostics>, _: &mut Context<Self>) -> Self::Result {
        let core = match self.core() {
            Ok(core) => core,
            Err(refusal) => return at_once(Err(refusal)),
        };
        let answers = self.core_answers();
        let asked = async move {
            let report = match answers {
                true => core.pod.ask(pod::DiagnosticsGet {}).await.ok(),
                false => None,
            };
            let described = Carries::<Describe>::recipient(&core.control).send(Describe).await.ok();
            (report, described)
        };
        Box::pin(asked.into_actor(self).map(|(core_report, described), actor, _| {
            let CoreDescription { state, path, stderr_tail } = described.unwrap_or_else(|| CoreDescription {
                state: actor.cache.core.clone(),
                path: actor.core_path(),
                stderr_tail: Vec::new(),
            });
            Ok(DiagnosticsPage {
                build: HOST_BUILD,
                plugin_version: CORE_VERSION.to_owned(),
                core: state,
                log_level: core_report.as_ref().and_then(|report| Some(report.config.as_ref()?.log_level)),
                core_report,
                core_path: path,
                stderr_tail,
                diagnostics: actor.cache.diagnostics(usize::MAX),
                live_agents: actor.live.agents().count(),
                main_sessions: actor.listeners.mains().len(),
                compat: actor.parts.compat.clone(),
            })
        }))
    }
}

impl Handler<Ask<RestartCore>> for HostActor {
    type Result = Answering<RestartedCore>;

    fn handle(&mut self, Ask(RestartCore {}): Ask<RestartCore>, _: &mut Context<Self>) -> Self::Result {
        let core = match self.core() {
            Ok(core) => core,
            Err(refusal) => return at_once(Err(refusal)),
        };
        // Not settled: their tasks are what the restart interrupts (spec §9.1).
        let released = self.release_all();
        let restarted = async move {
            let stubborn = released.await;
            let restarted = Carries::<crate::host::core::Restart>::recipient(&core.control)
                .send(crate::host::core::Restart)
                .await
                .unwrap_or_else(|_| Err(crate::pod::Refusal::Stopping.into()));
            let state = Carries::<Describe>::recipient(&core.control).send(Describe).await.ok();
            (stubborn, restarted, state)
        };
        Box::pin(restarted.into_actor(self).map(|(stubborn, restarted, described), actor, _| {
            for agent in stubborn {
                actor.diagnose(pod::LogLevel::Error, agent);
            }
            restarted?;
            let core = described.map_or_else(|| actor.cache.core.clone(), |described| described.state);
            Ok(RestartedCore { core })
        }))
    }
}
