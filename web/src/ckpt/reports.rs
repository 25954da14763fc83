//! The JSON documents of the checkpoint routes, for both ends.

use cofferdam_actors::ckpt::{LastRollback, UndoDone, shown_path};
use cofferdam_protocol::ckpt::StatusReport;
use cofferdam_storage::ckpt::{CheckReport, StoreSize, Warning, WarningKind};
use serde::{Deserialize, Serialize};

/// Asks for the newest rollback to be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UndoRequest {
    /// A workspace's id or absolute path.
    pub workspace: String,
}

/// Asks for the store to be verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// Read every byte of every object, not only the indexes.
    #[serde(default)]
    pub read_data: bool,
}

/// The workspaces of the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspacesReport {
    /// By id.
    pub workspaces: Vec<WorkspaceReport>,
}

/// One workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceReport {
    /// Its id.
    pub id: String,
    /// Its path as it was registered.
    pub path: String,
    /// How many snapshots it has.
    pub snapshots: u32,
}

/// What a snapshot does not hold faithfully.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarningsReport {
    /// Empty if it holds everything.
    pub warnings: Vec<WarningReport>,
}

/// Something that was not captured or restored faithfully.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarningReport {
    /// The path below the workspace; bytes that are not UTF-8 are escaped.
    pub path: String,
    /// `unreadable`, `changed-while-read`, `mount-point`, `late-write` or `owner-not-restored`.
    pub kind: String,
    /// The same for people.
    pub text: String,
}

/// A rollback that was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoReport {
    /// The workspace's id.
    pub workspace: String,
    /// Its path.
    pub path: String,
    /// Paths that were added, replaced, removed or whose metadata was set back.
    pub changed: u64,
    /// What the user should know.
    pub warnings: Vec<WarningReport>,
}

/// What the newest rollback of a workspace, or the newest undo, did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRollbackReport {
    /// The snapshot's full id; null for an undo.
    pub snapshot: Option<String>,
    /// Paths that were added, replaced, removed or whose metadata was set back.
    pub changed: u64,
    /// What the user should know, 1000 warnings at most.
    pub warnings: Vec<WarningReport>,
    /// How many warnings there were beyond these.
    pub omitted: u64,
}

/// What verifying the store found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSummary {
    /// Snapshots that a list shows, over all workspaces.
    pub snapshots: u64,
    /// Objects looked at.
    pub objects: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// One line for each damaged thing; empty means sound.
    pub damage: Vec<String>,
}

/// What the store takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeReport {
    /// Bytes of all packs.
    pub pack_bytes: u64,
    /// Packs.
    pub packs: u64,
    /// Bytes of the database and the stat caches.
    pub index_bytes: u64,
    /// Objects in packs.
    pub objects: u64,
}

impl From<StatusReport> for WorkspacesReport {
    fn from(status: StatusReport) -> Self {
        let one = |info: cofferdam_protocol::ckpt::WorkspaceInfo| WorkspaceReport {
            id: info.ws_id,
            path: info.path,
            snapshots: info.snapshot_count,
        };
        Self { workspaces: status.workspaces.into_iter().map(one).collect() }
    }
}

impl From<Vec<Warning>> for WarningsReport {
    fn from(warnings: Vec<Warning>) -> Self {
        Self { warnings: warnings.iter().map(WarningReport::from).collect() }
    }
}

impl From<&Warning> for WarningReport {
    fn from(Warning { path, kind }: &Warning) -> Self {
        let (kind, text) = match kind {
            WarningKind::Unreadable => ("unreadable", "could not be read; a rollback leaves it alone"),
            WarningKind::ChangedWhileRead => {
                ("changed-while-read", "kept changing while it was read; one reading of it is kept")
            }
            WarningKind::MountPoint => ("mount-point", "something is mounted there; not entered"),
            WarningKind::LateWrite => {
                ("late-write", "was written to during the rollback; undo brings the newer content back")
            }
            WarningKind::OwnerNotRestored => {
                ("owner-not-restored", "owner, set-id bits or capabilities could not be restored")
            }
        };
        Self { path: path.to_string(), kind: kind.to_owned(), text: text.to_owned() }
    }
}

impl From<UndoDone> for UndoReport {
    fn from(UndoDone { workspace, path, outcome }: UndoDone) -> Self {
        Self {
            workspace: workspace.to_string(),
            path: shown_path(&path),
            changed: outcome.changed,
            warnings: outcome.warnings.iter().map(WarningReport::from).collect(),
        }
    }
}

impl From<&LastRollback> for LastRollbackReport {
    fn from(LastRollback { to, changed, warnings, omitted }: &LastRollback) -> Self {
        Self {
            snapshot: to.as_ref().map(ToString::to_string),
            changed: *changed,
            warnings: warnings.iter().map(WarningReport::from).collect(),
            omitted: *omitted,
        }
    }
}

impl From<CheckReport> for CheckSummary {
    fn from(CheckReport { snapshots, objects, bytes_read, damage }: CheckReport) -> Self {
        Self { snapshots, objects, bytes_read, damage }
    }
}

impl From<StoreSize> for SizeReport {
    fn from(StoreSize { pack_bytes, packs, index_bytes, objects }: StoreSize) -> Self {
        Self { pack_bytes, packs, index_bytes, objects }
    }
}
