//! What a supervisor is told, and what it says: one JSON value a line.

use std::path::PathBuf;

use cofferdam_protocol::pod::{Probe, SandboxMode};
use serde::{Deserialize, Serialize};

/// The longest order, in bytes: what a program may be given as arguments and environment, and room for paths.
pub const MAX_ORDER: usize = 4 << 20;

/// The word that ends a program before its time, as a line after the order: TERM first, KILL after the order's grace.
pub const CANCEL: &str = "cancel";

/// A sandbox, and what runs in it. Paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// The task's directory.
    pub task_dir: PathBuf,
    /// The sandbox root, in which other tasks are, too.
    pub sandbox_root: PathBuf,
    /// Whether the program may write in the task's directory.
    pub mode: SandboxMode,
    /// Where a directory of this sandbox's own is made, and removed when nothing runs any more: it holds home, temporary
    /// files and what else programs expect to be theirs. Below the state directory.
    pub private_parent: PathBuf,
    /// What cannot be read, apart from what is named here otherwise: see [`default_hidden`](super::default_hidden).
    pub hidden: Vec<PathBuf>,
    /// The user's own home.
    #[serde(default)]
    pub real_home: Option<PathBuf>,
    /// Paths relative to the user's own home that the private one has, too, to be read; what is not there is left out.
    #[serde(default)]
    pub from_home: Vec<PathBuf>,
    /// Files that the private home has when the program starts; what each holds comes with the order.
    #[serde(default)]
    pub home_files: Vec<HomeFile>,
    /// Where the program's home is, if it stays from one sandbox to the next; made if it is missing. The directory that it is in
    /// is there, is ours, and nothing of a sandbox can change it. Without it the home goes with the private directory.
    #[serde(default)]
    pub kept_home: Option<PathBuf>,
    /// What can be read though it lies in something hidden.
    #[serde(default)]
    pub readable: Vec<PathBuf>,
    /// What can be written besides the task's directory; ignored where the mode forbids writing.
    #[serde(default)]
    pub writable: Vec<PathBuf>,
    /// Whom the program runs as, if the supervisor is root; an ordinary user's program runs as that user.
    #[serde(default)]
    pub user: Option<PodUser>,
    /// Whether and how the sandbox is tested before the program starts.
    #[serde(default)]
    pub probe: Option<ProbeOrder>,
    /// The program; without one the sandbox is made, tested, and removed.
    #[serde(default)]
    pub program: Option<Program>,
    /// What the program and all it starts may use.
    #[serde(default)]
    pub limits: Limits,
    /// How long the program may take to end after TERM, in milliseconds.
    #[serde(default = "default_grace")]
    pub grace_ms: u32,
    /// Layers without which nothing runs: those that held when such a sandbox was tested.
    #[serde(default)]
    pub least: Vec<Layer>,
    /// Layers that are left out, for tests of what then still holds.
    #[serde(default)]
    pub without: Vec<LeftOut>,
}

fn default_grace() -> u32 {
    5000
}

/// A file in the private home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeFile {
    /// Where, relative to the private home. Directories on the way are made.
    pub path: PathBuf,
    /// How many bytes of what it has become are wanted back at most, if that is wanted.
    #[serde(default)]
    pub back: Option<u64>,
}

/// A user that owns nothing but tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodUser {
    /// Its id; not 0.
    pub uid: u32,
    /// Its only group; not 0.
    pub gid: u32,
}

impl Default for PodUser {
    /// `nobody`.
    fn default() -> Self {
        Self { uid: 65534, gid: 65534 }
    }
}

/// How a sandbox is tested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeOrder {
    /// Directories outside of the sandbox; in the first in which the program's user can make one, files are made that the
    /// sandbox must keep safe.
    pub places: Vec<PathBuf>,
    /// Our own sockets, which it must not reach.
    pub sockets: Vec<PathBuf>,
    /// A process it must not signal: the daemon.
    pub process: u32,
}

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Program {
    /// Its name or path, and its arguments; not empty.
    pub argv: Vec<String>,
    /// Its whole environment, but for what names the private directory.
    pub env: Vec<(String, String)>,
    /// Where it starts.
    pub cwd: PathBuf,
}

/// What a sandbox may use. Holds where a cgroup of our own can be made; nothing is limited otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Bytes of memory.
    #[serde(default)]
    pub memory: Option<u64>,
    /// Processes and threads.
    #[serde(default)]
    pub processes: Option<u64>,
}

/// A layer that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOut {
    /// All namespaces.
    Namespaces,
    /// The namespace of processes.
    PidNamespace,
    /// A cgroup of our own.
    Cgroup,
    /// Landlock's scopes.
    Scopes,
}

/// What a supervisor says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "report")]
pub enum Report {
    /// A process of ours has been in the sandbox, and these layers held.
    Ready {
        /// All layers, outermost last.
        layers: Vec<LayerState>,
    },
    /// What the test found. Follows `Ready` if a test was ordered.
    Probe(ProbeReport),
    /// The program runs.
    Started,
    /// The program has ended by itself or as it was told to; what it left behind is being ended.
    Exited {
        /// Its exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// A file of the private home that is wanted back was looked for. Comes when nothing runs any more.
    Returned {
        /// Which.
        path: PathBuf,
        /// Why it is not there; else it is where it came from.
        problem: Option<String>,
    },
    /// There is no such sandbox here, or no such program, or something private could not be removed; nothing runs.
    Failed {
        /// Why, and what to do.
        message: String,
    },
}

/// One layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerState {
    /// Which.
    pub layer: Layer,
    /// Whether it holds.
    pub holds: bool,
    /// How far, or why not; for people.
    pub detail: String,
}

/// The layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Rights on files.
    Landlock,
    /// Signals and abstract sockets reach nothing outside.
    Scopes,
    /// System calls.
    Seccomp,
    /// Another view of files: the outside is read-only, what is hidden is not there.
    MountNamespace,
    /// No process outside has a number.
    PidNamespace,
    /// Another user than ours.
    OtherUser,
    /// A cgroup of its own.
    Cgroup,
}

/// What a test of the sandbox found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeReport {
    /// The verdict.
    pub probe: Probe,
    /// Whether every write outside was refused.
    pub fs_denied: bool,
    /// What was tried, which layers hold, and what is not stopped; for people.
    pub note: String,
}
