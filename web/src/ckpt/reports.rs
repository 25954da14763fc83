//! The JSON documents of the checkpoint routes, for both ends.

use cofferdam_actors::ckpt::{LastDone, LastRollback, UndoDone, shown_path};
use cofferdam_protocol::ckpt::Timestamp;
use cofferdam_storage::ckpt::{
    CheckReport, PastRollback, RollbackKind, StoreSize, Trashed, TrashedTree, Warning, WarningKind,
};
use serde::{Deserialize, Serialize};

/// Asks for a directory to be registered, or for one that is in the place of a registered one to be taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InitRequest {
    /// Its absolute path.
    pub path: String,
}

/// A directory that is registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitReport {
    /// The workspace's id.
    pub workspace: String,
}

/// Asks for the newest rollback to be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UndoRequest {
    /// A workspace's id or absolute path.
    pub workspace: String,
    /// The operation of the rollback that is meant, as `last-rollback` says; if another one is the newest, none is taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
}

/// Asks for the store to be verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// Read every byte of every object, not only the indexes.
    #[serde(default)]
    pub read_data: bool,
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

/// Asks for something to be brought back from the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreRequest {
    /// The id or absolute path of the workspace of which it becomes a snapshot.
    pub workspace: String,
    /// Its number in the trash.
    pub item: u64,
    /// What to call it; its own name if absent.
    #[serde(default)]
    pub id: Option<String>,
    /// Whether from then on only a forced delete removes it.
    #[serde(default)]
    pub pin: bool,
}

/// Something that was brought back from the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredReport {
    /// The snapshot's id.
    pub snapshot: String,
}

/// What is in the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashReport {
    /// In the order in which it was captured.
    pub items: Vec<TrashedReport>,
}

/// A tree in the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashedReport {
    /// Its number, which no other tree ever has.
    pub item: u64,
    /// The path of the directory it was captured in.
    pub path: String,
    /// What the snapshot was called; null for the tree before a rollback.
    pub snapshot: Option<String>,
    /// What the client said about the snapshot; for the tree before a rollback, which one that was.
    pub message: Option<String>,
    /// When it was captured.
    pub created_at: Timestamp,
    /// Until when it is kept.
    pub until: Timestamp,
    /// Whether data it needs is known to be damaged or gone.
    pub missing: bool,
}

/// A rollback of the past.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackReport {
    /// The operation's name, which no other has.
    pub operation: String,
    /// When it began.
    pub at: Timestamp,
    /// The id its snapshot had; null for an undo, and if it is not known.
    pub snapshot: Option<String>,
    /// Whether it was an undo.
    pub undo: bool,
}

/// A rollback that was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoReport {
    /// The workspace's id.
    pub workspace: String,
    /// Its path.
    pub path: String,
    /// Which rollback was taken back; a daemon of an older version does not say.
    pub rollback: Option<RollbackReport>,
    /// Paths that were added, replaced, removed or whose metadata was set back.
    pub changed: u64,
    /// What the user should know.
    pub warnings: Vec<WarningReport>,
}

/// What the newest rollback of a workspace, or the newest undo, did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRollbackReport {
    /// What an undo would take back; null where it is not said.
    pub rollback: Option<RollbackReport>,
    /// The snapshot's full id; null for an undo, and if it is not known.
    pub snapshot: Option<String>,
    /// The rollback that was taken back; null for a rollback, and if it was before the daemon started.
    pub undone: Option<RollbackReport>,
    /// Paths that were added, replaced, removed or whose metadata was set back; null if that was before the daemon started.
    pub changed: Option<u64>,
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
    fn from(UndoDone { workspace, path, rollback, outcome }: UndoDone) -> Self {
        Self {
            workspace: workspace.to_string(),
            path: shown_path(&path),
            rollback: Some((&rollback).into()),
            changed: outcome.changed,
            warnings: outcome.warnings.iter().map(WarningReport::from).collect(),
        }
    }
}

impl From<&PastRollback> for RollbackReport {
    fn from(PastRollback { operation, at, kind }: &PastRollback) -> Self {
        let snapshot = match kind {
            RollbackKind::To(snapshot) => Some(snapshot.to_string()),
            RollbackKind::Undo | RollbackKind::Unknown => None,
        };
        Self {
            operation: operation.clone(),
            at: Timestamp::from_unix_nanos(at.0),
            snapshot,
            undo: *kind == RollbackKind::Undo,
        }
    }
}

impl From<Vec<Trashed>> for TrashReport {
    fn from(trash: Vec<Trashed>) -> Self {
        Self { items: trash.into_iter().map(TrashedReport::from).collect() }
    }
}

impl From<Trashed> for TrashedReport {
    fn from(Trashed { item, workspace, tree, created_at, until, missing }: Trashed) -> Self {
        let (snapshot, message) = match tree {
            TrashedTree::Snapshot { id, message } => (Some(id.to_string()), message),
            TrashedTree::Before(rollback) => (None, Some(rollback.before())),
        };
        Self {
            item,
            path: shown_path(&workspace.path),
            snapshot,
            message,
            created_at: Timestamp::from_unix_nanos(created_at.0),
            until: Timestamp::from_unix_nanos(until.0),
            missing,
        }
    }
}

impl From<&PastRollback> for LastRollbackReport {
    /// One of before the daemon started.
    fn from(rollback: &PastRollback) -> Self {
        let rollback = RollbackReport::from(rollback);
        let snapshot = rollback.snapshot.clone();
        Self {
            rollback: Some(rollback),
            snapshot,
            undone: None,
            changed: None,
            warnings: Vec::new(),
            omitted: 0,
        }
    }
}

impl From<&LastRollback> for LastRollbackReport {
    fn from(LastRollback { done, changed, warnings, omitted }: &LastRollback) -> Self {
        let (snapshot, undone) = match done {
            LastDone::To(snapshot) => (Some(snapshot.to_string()), None),
            LastDone::Undone(rollback) => (None, Some(rollback.into())),
        };
        Self {
            rollback: None,
            snapshot,
            undone,
            changed: Some(*changed),
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
