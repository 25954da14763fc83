//! What `cofferdam serve` hosts beside checkpoints: tasks for agents, and the console.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use cofferdam_actors::host::Parts;
use cofferdam_actors::host::agent::command::{self, CommandParts, Cosh};
use cofferdam_actors::host::agent::{Preset, scripted, supervisor};
use cofferdam_actors::host::core::sidecar::SidecarParts;
use cofferdam_actors::host::core::{CoreParts, Keeper};
use cofferdam_actors::pod::{self, EventSink, LogControl};
use cofferdam_protocol::host::Compat;
use cofferdam_protocol::pod::{LogLevel, PodEvent};
use cofferdam_storage::clock::{Clock, RandomIds};
use cofferdam_storage::pod::{AgentDirs, Surroundings, presets};
use cofferdam_storage::{clock, fault};

use crate::http::HttpAddress;
use crate::paths;
use crate::pod::surroundings;
use crate::session::core_program;

/// What the command line says about it.
#[derive(Args, Debug)]
pub(crate) struct HostingOptions {
    /// Where to serve the console and the HTTP interface, a loopback address with a port, or off [default: 127.0.0.1:4180, or a
    /// free port if that one is taken]
    #[arg(long, value_name = "ADDR")]
    http: Option<HttpAddress>,
    /// The program that keeps the tasks, in a process of its own [default: this process keeps them]
    #[arg(long, value_name = "PROGRAM", env = "COFFERDAM_POD_CORE")]
    pod_core: Option<PathBuf>,
    /// The file with presets of agents' programs [default: pods.toml in the state directory, if it is there]
    #[arg(long, value_name = "FILE")]
    pods_config: Option<PathBuf>,
}

impl HostingOptions {
    /// Where HTTP is served.
    pub(crate) fn http(&self) -> HttpAddress {
        self.http.unwrap_or_default()
    }

    /// What makes the parts that the host works with, on the actors' thread. `socket` is where checkpoints are asked for.
    pub(crate) fn pods(
        &self,
        state_dir: &Path,
        socket: &Path,
    ) -> io::Result<impl FnOnce() -> Parts + Send + 'static + use<>> {
        let (clock, faster) = clock::from_env();
        let keeper = match self.pod_core.as_deref().filter(|program| !program.as_os_str().is_empty()) {
            Some(program) => {
                let program = std::path::absolute(program)?;
                let state_dir = Some(state_dir.to_owned());
                Keeper::Sidecar(SidecarParts { faster, state_dir, ..SidecarParts::new(program) })
            }
            None => Keeper::Embedded(pod::Parts {
                disk: fault::disk_from_env(),
                clock: Arc::clone(&clock),
                ids: Arc::new(RandomIds),
                tick: Duration::from_secs(1) / faster,
                events: Arc::new(Nobody),
                surroundings: beside(state_dir),
                logs: Arc::new(DaemonLog),
            }),
        };
        let agents = self.agents(state_dir, socket, Arc::clone(&clock), faster)?;
        let kept = AgentDirs::new(fault::disk_from_env(), state_dir.join("pod"));
        let served = self.http() != HttpAddress::Off;
        let core = CoreParts { database: state_dir.join("pod/pod.db"), legacy: None, keeper };
        Ok(move || Parts {
            core,
            presets: [scripted(faster), agents()].concat(),
            clock,
            faster,
            ids: Arc::new(RandomIds),
            compat: Compat { bootstrap: served, index_inject: served, events: true, follow_up: true },
            temp_dirs: temp_dirs(),
            agents: Some(kept),
        })
    }
}

impl HostingOptions {
    /// What starts those who run programs, on the actors' thread.
    fn agents(
        &self,
        state_dir: &Path,
        socket: &Path,
        clock: Arc<dyn Clock>,
        faster: u32,
    ) -> io::Result<impl FnOnce() -> Vec<Preset> + Send + 'static + use<>> {
        let vars: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let mut presets = match &self.pods_config {
            Some(file) => presets::load(&std::path::absolute(file)?, false),
            None => presets::load(&paths::pods_config(state_dir), true),
        };
        let shell = command::shell(vars.get("PATH").map(String::as_str));
        // Whoever calls one of his own that has taken its place.
        if !presets.iter().flatten().any(|preset| preset.id == command::SHELL) {
            presets.insert(0, shell);
        }
        let parts = CommandParts {
            // Of this very release, even if another one was installed meanwhile.
            supervisor: supervisor(PathBuf::from("/proc/self/exe")),
            private: state_dir.join("pod/private"),
            state: state_dir.to_owned(),
            home: std::env::home_dir().filter(|home| home.is_absolute()),
            sockets: vec![socket.to_owned(), paths::control_socket(state_dir).path],
            places: temp_dirs(),
            vars,
            clock,
            faster,
        };
        let cosh = Cosh(core_program());
        Ok(move || command::start(parts, presets, cosh))
    }
}

/// What of the state directory no agent may write to; the database's directory is protected anyway.
const OWN_DIRS: [&str; 6] = ["", "run", "ckpt", "ckpt/packs", "ckpt/cache", "ckpt/journal"];

/// Where this process finds itself, and what is its own.
fn beside(state_dir: &Path) -> Surroundings {
    let mut surroundings = surroundings();
    surroundings.system.extend(OWN_DIRS.map(|dir| state_dir.join(dir)));
    surroundings.own = vec![state_dir.to_owned()];
    surroundings
}

fn temp_dirs() -> Vec<PathBuf> {
    let mut dirs = vec![std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
    dirs.sort_unstable();
    dirs.dedup();
    dirs
}

/// Hears of events until the host puts itself in this place.
struct Nobody;

impl EventSink for Nobody {
    fn event(&self, _: PodEvent) {}
}

/// The daemon's log is that of all it does: its command line says how much, and it goes to stderr.
struct DaemonLog;

impl LogControl for DaemonLog {
    fn set_level(&self, _: LogLevel) {}

    fn open_beside(&self, _: &Path) -> Option<PathBuf> {
        None
    }
}
