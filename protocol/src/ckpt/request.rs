//! What a client may ask.

use serde::{Deserialize, Serialize};

/// One request. A workspace argument is a workspace id or a path; a snapshot argument is an id or a unique prefix
/// of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WsCkptRequest {
    /// Register a directory. Idempotent.
    Init {
        /// Its path.
        workspace: String,
    },
    /// Take a snapshot; registers the workspace first if need be.
    Checkpoint {
        /// Which workspace.
        workspace: String,
        /// The snapshot's name, unique within the workspace; what it may be says [`SnapshotId`](super::SnapshotId).
        id: String,
        /// Free text.
        message: Option<String>,
        /// JSON text.
        metadata: Option<String>,
        /// Whether only a forced delete removes it.
        pin: bool,
    },
    /// Give the directory a snapshot's tree.
    Rollback {
        /// Which workspace.
        workspace: String,
        /// Which snapshot.
        to: String,
    },
    /// Remove a snapshot.
    Delete {
        /// Which workspace; without it, the one workspace in which the snapshot is found.
        workspace: Option<String>,
        /// Which snapshot.
        snapshot: String,
        /// Also if it is pinned.
        force: bool,
    },
    /// List snapshots, oldest first.
    List {
        /// Of which workspace; without it, of all.
        workspace: Option<String>,
        /// A wish about the client's own output; the daemon ignores it.
        format: Option<String>,
    },
    /// How two snapshots differ.
    Diff {
        /// Which workspace.
        workspace: String,
        /// The earlier one.
        from: String,
        /// The later one, or `@live` for the directory as it is now.
        to: String,
    },
    /// What the daemon looks after.
    Status {
        /// Which workspace; without it, all.
        workspace: Option<String>,
    },
    /// Remove the oldest snapshots that are not pinned.
    Cleanup {
        /// Which workspace.
        workspace: String,
        /// How many to keep; 20 if not said.
        keep: Option<u32>,
    },
    /// The configuration in effect.
    Config,
    /// Read the configuration file again.
    ReloadConfig,
    /// Stop looking after a workspace.
    Recover {
        /// Which workspace.
        workspace: String,
    },
    /// Figures by which a client warns its user.
    HealthAdvisory,
}
