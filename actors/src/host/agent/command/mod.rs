//! Agents that are programs, one process per turn, each in a sandbox that the kernel enforces.
//!
//! Between turns an agent is a record. For a turn, and to test the sandbox before the first one, a supervisor is run
//! (`storage::sandbox`), which ends with everything it started.
//!
//! - `shell`: the preset that is always there; others come from a file (`storage::pod::presets`);
//! - `order`: what a supervisor is told; `template`: what its program is started with;
//! - `run`: a supervisor from start to end; `output`: what is printed, made into events; `texts`: lines, made fit to be read;
//! - `cosh`: the agent that keeps its conversation itself, where a turn takes more;
//! - `home`: whether an agent has kept anything at home;
//! - `start`, `turn`, `dispose`: the messages; `verdict`: what tests of sandboxes found.

mod cosh;
mod dispose;
mod home;
mod order;
mod output;
mod run;
mod shell;
mod start;
mod template;
#[cfg(test)]
mod tests;
mod texts;
mod turn;
mod verdict;

pub use cosh::{COSH, CoreProgram, Cosh};
pub use shell::{SHELL, shell};
pub(super) use texts::readable;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::{Actor, Context, Recipient};
use cofferdam_protocol::pod::{SandboxMode, SandboxPolicy};
use cofferdam_storage::clock::Clock;
use cofferdam_storage::disk::Disk;
use cofferdam_storage::pod::presets::{BrokenPreset, CommandPreset};
use cofferdam_storage::sandbox::{Layer, sweep};
use tokio::sync::watch;

use self::cosh::Recovery;
use self::run::Wanted;
use self::verdict::Verdicts;
use super::{AgentBackend, AgentEvent, Preset};

/// What the backend works with.
#[derive(Clone)]
pub struct CommandParts {
    /// The program `cofferdam`, which is a supervisor with the right subcommand.
    pub supervisor: PathBuf,
    /// Where each sandbox has a directory of its own while it is there. The directory above it is there.
    pub private: PathBuf,
    /// The state directory.
    pub state: PathBuf,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Our own sockets, which no agent must reach.
    pub sockets: Vec<PathBuf>,
    /// Where, beside the sandbox root, the test of a sandbox may try to write.
    pub places: Vec<PathBuf>,
    /// The environment of which presets choose.
    pub vars: BTreeMap<String, String>,
    /// Wall time for what is shown, monotonic time for how old a verdict is.
    pub clock: Arc<dyn Clock>,
    /// How many times faster than the machine's the clock's monotonic time runs.
    pub faster: u32,
}

/// The backend.
pub struct CommandBackend {
    parts: CommandParts,
    presets: HashMap<String, Arc<CommandPreset>>,
    /// The program of the agent `cosh`, if there is that preset.
    core: Option<CoreProgram>,
    verdicts: Verdicts,
    agents: HashMap<String, Agent>,
}

/// What is known of an agent.
struct Agent {
    facts: Facts,
    events: Recipient<AgentEvent>,
    /// The number of its next turn.
    next: u64,
    /// What runs for it, if something does.
    work: Option<Arc<watch::Sender<Wanted>>>,
    /// What turns of one that keeps its conversation itself resume.
    recovery: Recovery,
    /// Nobody wants it any more.
    disposed: bool,
}

impl Agent {
    /// A turn begins: its number, and what hears what is wanted of it.
    fn next_turn(&mut self) -> (u64, watch::Receiver<Wanted>) {
        let turn = self.next;
        self.next += 1;
        let (wanted, told) = watch::channel(Wanted::Work);
        self.work = Some(Arc::new(wanted));
        (turn, told)
    }
}

/// What every turn of an agent needs to know.
#[derive(Clone)]
struct Facts {
    preset: Arc<CommandPreset>,
    /// The program of the agent `cosh`, if it is that.
    core: Option<CoreProgram>,
    session_id: String,
    model: String,
    policy: SandboxPolicy,
    mode: SandboxMode,
    tools: Vec<String>,
    system_prompt: String,
    /// Its home, if that is kept.
    home: Option<PathBuf>,
    /// The layers that held when its sandbox was tested: without one of them no turn runs.
    least: Vec<Layer>,
}

/// Starts the backend in the running actix system, and makes its presets known; `cosh` is there unless another one has its name.
/// Without a program that can be started as a supervisor none of them can be used.
pub fn start(
    parts: CommandParts,
    mut presets: Vec<Result<CommandPreset, BrokenPreset>>,
    cosh: Cosh,
) -> Vec<Preset> {
    let taken = presets.iter().any(|preset| match preset {
        Ok(CommandPreset { id, .. }) | Err(BrokenPreset { id, .. }) => id == COSH,
    });
    if !taken {
        presets.push(cosh.preset());
    }
    let supervisor = parts.supervisor.metadata().map(drop);
    let no_supervisor = supervisor.err().map(|error| {
        format!(
            "there is no sandbox, since the program for it, {}, is not found: {error}",
            parts.supervisor.display()
        )
    });
    let usable = presets.iter().flatten().map(|preset| (preset.id.clone(), Arc::new(preset.clone())));
    let path = parts.vars.get("PATH").cloned();
    let backend = CommandBackend {
        presets: usable.collect(),
        core: cosh.0.ok().filter(|_| !taken),
        verdicts: Verdicts::default(),
        agents: HashMap::new(),
        parts,
    };
    let backend: AgentBackend = backend.start().into();
    let shown = |preset: Result<CommandPreset, BrokenPreset>| match preset {
        Ok(preset) => Preset {
            broken: no_supervisor.clone().or_else(|| shell::missing(&preset, path.as_deref())),
            resumable: preset.argv_follow_up.is_some(),
            id: preset.id,
            name: preset.name,
            needs: preset.needs,
            backend: backend.clone(),
        },
        Err(BrokenPreset { id, why }) => Preset {
            name: id.clone(),
            id,
            broken: Some(why),
            resumable: false,
            needs: Vec::new(),
            backend: backend.clone(),
        },
    };
    presets.into_iter().map(shown).collect()
}

impl CommandBackend {
    /// What ran for an agent is over.
    fn rests(&mut self, task_id: &str) {
        let Some(agent) = self.agents.get_mut(task_id) else { return };
        agent.work = None;
        if agent.disposed {
            self.agents.remove(task_id);
        }
    }
}

impl Actor for CommandBackend {
    type Context = Context<Self>;

    /// Removes what sandboxes of a daemon that was killed have left.
    fn started(&mut self, _: &mut Context<Self>) {
        let private = self.parts.private.clone();
        // Nobody waits for it: every supervisor does the same.
        drop(tokio::task::spawn_blocking(move || sweep(&Disk::default(), &private)));
    }
}

impl CommandParts {
    /// How long a span of monotonic time takes on the machine's clock.
    fn real(&self, span: Duration) -> Duration {
        span / self.faster.max(1)
    }
}
