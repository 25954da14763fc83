//! What a sandbox is, and what its self-test found.

use serde::{Deserialize, Serialize};

use super::methods::lenient;

/// Where a task may write (spec §5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxPolicy {
    /// The sandbox root, as system calls take it.
    pub root: String,
    /// The sandbox root, as people read it.
    pub root_display: String,
    /// The task's own directory.
    pub task_dir: String,
    /// Whether names that differ only in case are the same file there.
    pub case_insensitive: bool,
    /// What separates the segments of a path.
    pub separator: String,
    /// What long paths begin with; empty where there is no such thing.
    pub long_path_prefix: String,
}

/// What a sandbox lets an agent do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Write below the root.
    WorkspaceWrite,
    /// Write nowhere.
    ReadOnly,
}

/// What became of the self-test's write outside of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// It was refused, as it should be.
    Denied,
    /// It succeeded: the sandbox does not hold.
    Allowed,
    /// It failed in a way that proves nothing.
    Ambiguous,
    /// The root has no directory above it to try.
    SkippedNoParent,
    /// The test could not be made.
    Failed,
}

/// The self-test's verdict (spec §5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxCheck {
    /// What the sandbox was to allow.
    pub mode: SandboxMode,
    /// The root it was to allow it in.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub root: String,
    /// What was found.
    pub probe: Probe,
    /// Whether a write outside was refused.
    pub fs_denied: bool,
    /// For people.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub note: String,
    /// When, in milliseconds since the epoch.
    #[serde(default, deserialize_with = "lenient::moment")]
    pub at: i64,
}

impl SandboxMode {
    /// The word on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WorkspaceWrite => "workspace-write",
            Self::ReadOnly => "read-only",
        }
    }
}

impl Probe {
    /// The word on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Allowed => "allowed",
            Self::Ambiguous => "ambiguous",
            Self::SkippedNoParent => "skipped-no-parent",
            Self::Failed => "failed",
        }
    }
}
