//! What the daemon answers.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::retention::CleanupRetention;
use super::timestamp::Timestamp;

/// One response. Every request is answered by its own variant or by [`Error`](Self::Error); Checkpoint also by
/// [`CheckpointSkipped`](Self::CheckpointSkipped).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum WsCkptResponse {
    /// The workspace is registered.
    InitOk {
        /// Its id.
        ws_id: String,
    },
    /// The snapshot is durable.
    CheckpointOk {
        /// Its id.
        snapshot_id: String,
    },
    /// The directory holds the snapshot's tree.
    RollbackOk {
        /// The **workspace's** id.
        from: String,
        /// The snapshot's full id.
        to: String,
    },
    /// The snapshot is gone.
    DeleteOk {
        /// Its full id.
        target: String,
    },
    /// The request was not carried out.
    Error {
        /// Which kind of failure.
        code: WsCkptErrorCode,
        /// For people.
        message: String,
    },
    /// Snapshots, oldest first.
    ListOk {
        /// All that were asked for; there is no paging.
        snapshots: Vec<SnapshotEntry>,
    },
    /// Differences, by path.
    DiffOk {
        /// Empty if the trees are equal.
        changes: Vec<DiffEntry>,
    },
    /// The daemon and its workspaces.
    StatusOk {
        /// The figures.
        report: StatusReport,
    },
    /// Snapshots were removed.
    CleanupOk {
        /// Their ids, oldest first.
        removed: Vec<String>,
    },
    /// The configuration in effect.
    ConfigOk {
        /// The settings.
        config: ConfigReport,
    },
    /// The configuration was read again.
    ReloadConfigOk,
    /// No snapshot was needed.
    CheckpointSkipped {
        /// Why.
        reason: String,
    },
    /// The workspace is no longer registered.
    RecoverOk {
        /// Its path as it was registered.
        workspace: String,
    },
    /// Figures by which a client warns its user.
    HealthAdvisoryOk {
        /// Workspaces with more than 1000 snapshots.
        over_limit_workspace_count: u32,
        /// Size of the filesystem that holds the store.
        fs_total_bytes: u64,
        /// What of it is in use.
        fs_used_bytes: u64,
    },
}

/// Why a request was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WsCkptErrorCode {
    /// Workspace does not exist.
    WorkspaceNotFound,
    /// Snapshot does not exist, its prefix is ambiguous, or its data is lost.
    SnapshotNotFound,
    /// The directory lies inside a workspace.
    AlreadyInitialized,
    /// Btrfs operation error.
    BtrfsError,
    /// I/O error.
    IoError,
    /// Invalid path or snapshot id.
    InvalidPath,
    /// Confirmation needed, such as for deleting a pinned snapshot.
    ConfirmationRequired,
    /// Everything else.
    InternalError,
    /// Snapshot id conflict.
    SnapshotAlreadyExists,
    /// Another write operation holds the workspace.
    WriteLockConflict,
    /// Insufficient disk space.
    DiskSpaceInsufficient,
}

impl WsCkptErrorCode {
    /// Every code, in the order of the wire.
    pub const ALL: [Self; 11] = [
        Self::WorkspaceNotFound,
        Self::SnapshotNotFound,
        Self::AlreadyInitialized,
        Self::BtrfsError,
        Self::IoError,
        Self::InvalidPath,
        Self::ConfirmationRequired,
        Self::InternalError,
        Self::SnapshotAlreadyExists,
        Self::WriteLockConflict,
        Self::DiskSpaceInsufficient,
    ];
}

impl fmt::Display for WsCkptErrorCode {
    /// The name as the contract spells it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One snapshot of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotEntry {
    /// Its name.
    pub id: String,
    /// The path of its workspace as it was registered.
    pub workspace: String,
    /// What is known about it.
    pub meta: SnapshotMeta,
}

/// What is known about a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotMeta {
    /// Free text.
    pub message: Option<String>,
    /// JSON text, compact and with sorted keys. On the wire it is text; in JSON, a value.
    #[serde(with = "metadata")]
    pub metadata: Option<String>,
    /// Whether only a forced delete removes it.
    pub pinned: bool,
    /// When it was taken.
    pub created_at: Timestamp,
    /// Whether its data is damaged or gone.
    pub missing: bool,
}

/// One difference between two trees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffEntry {
    /// The path relative to the workspace; for a rename, the new one.
    pub path: String,
    /// What happened to it.
    pub change_type: DiffKind,
    /// Such as `directory`, `symlink`, or `old → new`.
    pub detail: Option<String>,
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DiffKind {
    /// It is new.
    Added,
    /// It is another.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name.
    Renamed,
}

/// The daemon and its workspaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReport {
    /// Whole seconds since the daemon started.
    pub uptime_secs: u64,
    /// The workspaces.
    pub workspaces: Vec<WorkspaceInfo>,
    /// Size of the filesystem that holds the store.
    pub fs_total_bytes: u64,
    /// What of it is in use.
    pub fs_used_bytes: u64,
}

/// One workspace of a status report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceInfo {
    /// Its id.
    pub ws_id: String,
    /// Its path as it was registered.
    pub path: String,
    /// How many snapshots it has.
    pub snapshot_count: u32,
}

/// The configuration in effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfigReport {
    /// Where the snapshots are kept.
    pub mount_path: String,
    /// The socket this very protocol is spoken on.
    pub socket_path: String,
    /// What is logged.
    pub log_level: String,
    /// Whether snapshots are removed on a schedule.
    pub auto_cleanup: bool,
    /// What that leaves.
    pub auto_cleanup_keep: CleanupRetention,
    /// How often; 0 is never.
    pub auto_cleanup_interval_secs: u64,
    /// How often the daemon looks after its own health; 0 is never.
    pub health_check_interval_secs: u64,
    /// Size of the image in GB; 0 if there is none.
    pub img_size: u64,
    /// The most the image may take of its filesystem; 0 if there is none.
    pub img_max_percent: f64,
}

/// JSON text within bincode, a nested value within JSON.
mod metadata {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    pub(super) fn serialize<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return text.serialize(serializer);
        }
        // Another daemon may send what is not JSON: shown as the text it is rather than not at all.
        let value =
            text.as_ref().map(|text| serde_json::from_str(text).unwrap_or(Value::from(text.as_str())));
        value.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<String>, D::Error> {
        if !deserializer.is_human_readable() {
            return Option::deserialize(deserializer);
        }
        let value: Option<Value> = Option::deserialize(deserializer)?;
        Ok(value.map(|value| value.to_string()))
    }
}
