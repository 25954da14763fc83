//! What the engine's callers see: workspaces, snapshots, changes and the outcomes of operations.

use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};

use crate::clock::WallTime;
use crate::path::RelPath;

/// A registered directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Its name on the wire.
    pub id: WorkspaceId,
    /// Its canonical absolute path when it was registered.
    pub path: PathBuf,
    /// The uid that owns the directory; only that uid and root may see it.
    pub owner: u32,
}

/// A snapshot that List shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name.
    pub id: SnapshotId,
    /// What the client said about it. Shared, as is the metadata: a list of all snapshots is made for each change.
    pub message: Option<Arc<str>>,
    /// Compact JSON with sorted keys.
    pub metadata: Option<Arc<str>>,
    /// Whether only a forced delete removes it.
    pub pinned: bool,
    /// When it was taken.
    pub created_at: WallTime,
    /// Whether data it needs is known to be damaged or gone.
    pub missing: bool,
    /// How many things could not be captured faithfully; see [`Backend::warnings`](super::Backend::warnings).
    pub warnings: u64,
}

/// A workspace and its snapshots in the order in which they were taken, whatever the wall clock did meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceState {
    /// The workspace.
    pub workspace: Workspace,
    /// Its snapshots.
    pub snapshots: Vec<Snapshot>,
}

/// A snapshot somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NewSnapshot {
    /// Its name.
    pub id: SnapshotId,
    /// Free text.
    pub message: Option<String>,
    /// JSON text as the client sent it; checked and normalized before anything is written.
    pub metadata: Option<String>,
    /// Whether only a forced delete removes it.
    pub pin: bool,
    /// Answer [`Checkpointed::Unchanged`] instead of storing a tree equal to the newest snapshot's.
    pub skip_unchanged: bool,
    /// Store an empty directory's tree too instead of answering [`Checkpointed::EmptyWorkspace`].
    pub even_empty: bool,
}

/// What became of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkpointed {
    /// It is durable.
    Created(Snapshot),
    /// The directory is empty; nothing was stored.
    EmptyWorkspace,
    /// The tree equals that of this snapshot; nothing was stored.
    Unchanged(SnapshotId),
}

/// What became of a rollback, or of the undoing of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RolledBack {
    /// Paths that were added, replaced, removed or whose metadata was set back.
    pub changed: u64,
    /// What the user should know: late writes that were kept, things that could not be restored.
    pub warnings: Vec<Warning>,
}

/// A rollback that was taken back, and what became of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// Which one.
    pub rollback: PastRollback,
    /// What taking it back did.
    pub outcome: RolledBack,
}

/// A rollback of the past.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PastRollback {
    /// The operation's name, which no other has.
    pub operation: String,
    /// When it began.
    pub at: WallTime,
    /// Where it went.
    pub kind: RollbackKind,
}

/// Where a rollback went.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RollbackKind {
    /// To the snapshot that had this name then.
    To(SnapshotId),
    /// To the tree before the rollback that had been the newest: it was an undo.
    Undo,
    /// An older version of this program, which did not keep it, made the rollback.
    Unknown,
}

impl RollbackKind {
    /// What a tree is that was captured before such a rollback.
    pub fn before(&self) -> String {
        match self {
            Self::To(snapshot) => format!("the tree before the rollback to {snapshot}"),
            Self::Undo => "the tree before an undo".to_owned(),
            Self::Unknown => "the tree before a rollback".to_owned(),
        }
    }
}

/// A tree in the trash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trashed {
    /// Its number, which no other tree ever has.
    pub item: u64,
    /// The workspace it was captured in. That may be forgotten by now, and another have its id.
    pub workspace: Workspace,
    /// What it was.
    pub tree: TrashedTree,
    /// When it was captured.
    pub created_at: WallTime,
    /// When collection may remove it.
    pub until: WallTime,
    /// Whether data it needs is known to be damaged or gone.
    pub missing: bool,
}

/// What a tree in the trash was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrashedTree {
    /// A snapshot that List showed.
    Snapshot {
        /// Its name.
        id: SnapshotId,
        /// What the client said about it.
        message: Option<String>,
    },
    /// The tree before a rollback, or before an undo.
    Before(RollbackKind),
}

/// Something that was not captured or restored faithfully.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where.
    pub path: RelPath,
    /// What.
    pub kind: WarningKind,
}

/// Why something was not captured or restored faithfully.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarningKind {
    /// It could not be read; the snapshot holds its metadata but not its content. A rollback leaves it alone.
    Unreadable,
    /// It kept changing while it was read; the snapshot holds one reading of it.
    ChangedWhileRead,
    /// Something else is mounted there; recorded, never entered.
    MountPoint,
    /// It was written to while the rollback replaced it; the newer content is in the safety snapshot.
    LateWrite,
    /// Owner, set-id bits or capabilities could not be restored for this user.
    OwnerNotRestored,
}

/// One difference between two trees, as the wire shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where; for a rename the new path.
    pub path: RelPath,
    /// What.
    pub kind: ChangeKind,
}

/// What differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Only in the later tree.
    Added(FileKind),
    /// Content, mode, owner, extended attributes or link target differ, or the kind of file does.
    Modified,
    /// Only in the earlier tree.
    Deleted(FileKind),
    /// The same content under another name, unique on both sides.
    Renamed {
        /// The old path.
        from: RelPath,
    },
}

/// The kinds of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO.
    Fifo,
    /// A bound unix socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// A directory on which something is mounted.
    MountPoint,
}

/// One end of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeRef {
    /// A snapshot.
    Snapshot(SnapshotId),
    /// The live tree.
    Live,
}

/// What is at a path of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What it is.
    pub kind: FileKind,
    /// The bytes of a regular file, holes included; 0 for all else.
    pub size: u64,
    /// The beginning of a regular file, or a link's target; empty for all else. `None` if it may not be read.
    pub bytes: Option<Vec<u8>>,
}

/// How snapshots leave the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// At once; collection reclaims the space.
    Unlink,
    /// Into the trash, where they stay 7 days before collection may reclaim them.
    Trash,
}

/// Space on the filesystem that holds the store, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsUsage {
    /// All of it.
    pub total: u64,
    /// What is in use.
    pub used: u64,
}

/// What the store itself takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreSize {
    /// Bytes of all packs.
    pub pack_bytes: u64,
    /// Packs.
    pub packs: u64,
    /// Bytes of the database and the stat caches.
    pub index_bytes: u64,
    /// Objects in packs.
    pub objects: u64,
}

/// What `check` found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Snapshots that List shows, over all workspaces.
    pub snapshots: u64,
    /// Objects looked at.
    pub objects: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// One line for each damaged thing; empty means sound.
    pub damage: Vec<String>,
}

/// What recovery did when the store was opened; each line is for the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// One line for each operation that was finished, taken back, or is still pending.
    pub lines: Vec<String>,
}
