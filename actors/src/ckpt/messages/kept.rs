//! Checkpoints that the program takes for itself, of directories that are nobody's workspace.
//!
//! The host of agents sends these, and no adapter does: nothing that a client can ask shows such a directory or takes
//! it as an argument, and the same directory may be a workspace besides. Paths are absolute; links on the way to a
//! directory are resolved, the directory itself is none. Everything is done with the daemon's own rights.

use std::path::PathBuf;

use actix::Message;
use cofferdam_storage::ckpt::{RolledBack, Snapshot, Warning};

use crate::ckpt::Failure;

/// Takes a snapshot of a directory, also of an empty one or of one that has not changed. It survives power loss when
/// this is answered. A directory of which nothing is kept yet is registered, one that was replaced is taken over with
/// its snapshots. A name that it has already is an error. The answer says what of it is not in the snapshot as it was.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<Vec<Warning>, Failure>")]
pub struct KeepTree {
    /// Which directory.
    pub dir: PathBuf,
    /// The snapshot's name.
    pub id: String,
    /// JSON text; [`ListKept`] gives it back.
    pub metadata: Option<String>,
}

/// Gives a directory exactly the tree of a snapshot: all of it, or after an error or a crash nothing. A directory that
/// was replaced since is an error. Sent again it has nothing to do.
///
/// Who may want what there was before keeps it first ([`KeepTree`]), under a name of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<RolledBack, Failure>")]
pub struct RewindTree {
    /// Which directory.
    pub dir: PathBuf,
    /// The snapshot's whole name.
    pub to: String,
}

/// The snapshots of a directory, in the order in which they were taken; none if it is not known. Answered from memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<Vec<Snapshot>, Failure>")]
pub struct ListKept {
    /// Which directory.
    pub dir: PathBuf,
}

/// Removes all snapshots of a directory at once and for good. It may be gone already, and need not be known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<(), Failure>")]
pub struct ForgetTree {
    /// Which directory.
    pub dir: PathBuf,
}
