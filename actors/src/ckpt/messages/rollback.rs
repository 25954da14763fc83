//! Going back, and taking that back.

use std::path::PathBuf;
use std::sync::Arc;

use actix::Message;
use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};
use cofferdam_storage::ckpt::{PastRollback, RolledBack, Warning};
use cofferdam_storage::peer::Peer;

use crate::ckpt::Failure;

/// Gives the directory exactly a snapshot's tree. What it held before is kept for [`UndoRollback`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<RollbackDone, Failure>")]
pub struct Rollback {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace.
    pub workspace: String,
    /// Which snapshot: its name, or a unique prefix of it unless it is `exact`.
    pub to: String,
    /// Whether `to` is a full name: one that is gone then names no other.
    pub exact: bool,
}

/// A rollback that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollbackDone {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The snapshot's full name.
    pub to: SnapshotId,
    /// What it changed and what the user should know.
    pub outcome: RolledBack,
}

/// Takes the newest rollback of a workspace back; sent again, takes that back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<UndoDone, Failure>")]
pub struct UndoRollback {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace.
    pub workspace: String,
    /// The operation of the rollback that is meant; if it is not the newest, none is taken back.
    pub expected: Option<String>,
}

/// Which rollback [`UndoRollback`] would take back, whenever it was made; nothing if there is none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<Option<PastRollback>, Failure>")]
pub struct NewestRollback {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace.
    pub workspace: String,
}

/// A rollback that was taken back. If this could not be delivered, the same peer gets it again when it asks the same
/// within 60 s and nothing was rolled back or undone since: a repeated undo would do the rollback again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoDone {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Its path.
    pub path: PathBuf,
    /// The rollback that was taken back.
    pub rollback: PastRollback,
    /// What it changed and what the user should know.
    pub outcome: RolledBack,
}

/// What the newest rollback of a workspace, or the newest undo, did: the wire's answer to a rollback has no room for
/// it. Answered from memory; nothing is known of what happened before the daemon started.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<Arc<LastRollback>, Failure>")]
pub struct GetLastRollback {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace.
    pub workspace: String,
}

/// Which it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastDone {
    /// A rollback to this snapshot.
    To(SnapshotId),
    /// The undo of this rollback.
    Undone(PastRollback),
}

/// A rollback or an undo, as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRollback {
    /// The snapshot's full name, or the rollback that was undone.
    pub done: LastDone,
    /// Paths that were added, replaced, removed or whose metadata was set back.
    pub changed: u64,
    /// What the user should know, [`MAX_WARNINGS`](Self::MAX_WARNINGS) at most.
    pub warnings: Vec<Warning>,
    /// How many warnings there were beyond these.
    pub omitted: u64,
}

impl LastRollback {
    /// The most warnings that are remembered of one rollback: a tree can give a hundred thousand.
    pub const MAX_WARNINGS: usize = 1000;

    /// What is remembered of an outcome.
    pub fn of(done: LastDone, RolledBack { changed, warnings }: &RolledBack) -> Self {
        let kept = &warnings[..warnings.len().min(Self::MAX_WARNINGS)];
        let omitted = (warnings.len() - kept.len()) as u64;
        Self { done, changed: *changed, warnings: kept.to_vec(), omitted }
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_storage::ckpt::WarningKind;
    use cofferdam_storage::path::RelPath;

    use super::*;

    #[test]
    fn of_very_many_warnings_the_first_thousand_are_remembered_and_the_rest_counted() {
        let warning = |n: usize| Warning {
            path: RelPath::new(n.to_string().as_bytes()).unwrap(),
            kind: WarningKind::LateWrite,
        };
        let remembered = |count| {
            let outcome = RolledBack { changed: 5, warnings: (0..count).map(warning).collect() };
            LastRollback::of(LastDone::To(SnapshotId::new("one").unwrap()), &outcome)
        };
        let last = remembered(1003);
        assert_eq!((last.changed, last.warnings.len(), last.omitted), (5, 1000, 3));
        assert_eq!(last.warnings[999], warning(999));
        let last = remembered(1);
        assert_eq!((last.warnings.len(), last.omitted), (1, 0));
    }
}
