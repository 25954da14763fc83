//! How every failure reaches the ws-ckpt wire: the one table from what went wrong to an error code and its text.
//!
//! Agents' plug-ins match parts of these texts (`already exists`, `active write`, `not found`, `insufficient`), so
//! the texts are as much part of the contract as the codes.

use cofferdam_protocol::ckpt::{InvalidId, WsCkptErrorCode as Code};
use cofferdam_storage::ckpt::Error;

/// Why a request was not carried out, as a client is told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Which kind of failure.
    pub code: Code,
    /// For people; what happened and what to do next.
    pub message: String,
}

/// Whatever can go wrong with a request: below the actors, or between them.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The engine said so.
    #[error(transparent)]
    Storage(#[from] Error),
    /// The actors did.
    #[error(transparent)]
    Routing(#[from] RoutingError),
}

/// What the actors themselves refuse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutingError {
    /// The argument, as it was sent, names no workspace of this peer.
    #[error("workspace not found: {0}")]
    WorkspaceNotFound(String),
    /// No path at all.
    #[error("workspace path is empty")]
    BlankPath,
    /// A path that means something else to every process.
    #[error("workspace path is relative: {0}; give an absolute one")]
    RelativePath(String),
    /// No file below a workspace can be called that.
    #[error("no path below a workspace: {0}; give one as a diff shows it")]
    NoPathBelow(String),
    /// A snapshot cannot be called that.
    #[error(transparent)]
    InvalidSnapshotId(#[from] InvalidId),
    /// Nothing is called that or begins with it.
    #[error("snapshot not found: {0}")]
    SnapshotNotFound(String),
    /// Several snapshots begin with that.
    #[error("ambiguous snapshot prefix '{prefix}': {matches} matches")]
    AmbiguousPrefix {
        /// What was asked for.
        prefix: String,
        /// How many begin with it.
        matches: usize,
    },
    /// No workspace was given and several have such a snapshot.
    #[error("snapshot '{0}' matches in multiple workspaces, please specify --workspace/-w")]
    SeveralWorkspaces(String),
    /// A pinned snapshot is deleted only by force.
    #[error("Snapshot is pinned, use --force to confirm deletion")]
    Pinned,
    /// Another write request of this workspace did not end in time, or too many wait already.
    #[error("Workspace has active write operations. Please wait and retry.")]
    WriteConflict,
    /// Another rollback is the newest than the one that was to be taken back.
    #[error("another rollback is the newest by now; look which one it is, and ask again")]
    AnotherRollback,
    /// Nothing was rolled back or undone since the daemon started.
    #[error("no rollback of this workspace since the daemon started")]
    NoRollback,
    /// The configuration file cannot be used; the old settings stay.
    #[error("Failed to reload config: {0}")]
    Reload(String),
    /// More requests wait than the daemon holds.
    #[error("the daemon is busy with too many requests; try again")]
    Overloaded,
    /// The operation panicked; what it had not finished did not happen.
    #[error("internal error while working on the request; the daemon's log says more")]
    Panicked,
    /// The actors are gone.
    #[error("the daemon is stopping")]
    Stopping,
    /// Something about everybody's data was asked by somebody.
    #[error("only the daemon's own user may do that")]
    NotPrivileged,
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Storage(error) => error.into(),
            Trouble::Routing(error) => error.into(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::WorkspaceNotFound(_) => Code::WorkspaceNotFound,
            Error::SnapshotNotFound(_)
            | Error::SnapshotMissing(_)
            | Error::NothingToUndo
            | Error::NotInTrash(_) => Code::SnapshotNotFound,
            Error::SnapshotExists(_) => Code::SnapshotAlreadyExists,
            Error::InsideWorkspace { .. } => Code::AlreadyInitialized,
            Error::InvalidPath(_) | Error::WorkspaceReplaced(_) | Error::WorkspaceGone(_) => {
                Code::InvalidPath
            }
            Error::Busy => Code::WriteLockConflict,
            Error::NoSpace { what } => {
                let message = format!("insufficient disk space: {what}; free some and try again");
                return Self { code: Code::DiskSpaceInsufficient, message };
            }
            Error::Preflight(_) | Error::Io { .. } => Code::IoError,
            Error::InvalidMetadata(_)
            | Error::Corrupt(_)
            | Error::Catalog(_)
            | Error::Locked { .. }
            | Error::NewerFormat { .. } => Code::InternalError,
        };
        Self { code, message: error.to_string() }
    }
}

impl From<RoutingError> for Failure {
    fn from(error: RoutingError) -> Self {
        let code = match &error {
            RoutingError::WorkspaceNotFound(_) => Code::WorkspaceNotFound,
            RoutingError::BlankPath
            | RoutingError::RelativePath(_)
            | RoutingError::NoPathBelow(_)
            | RoutingError::InvalidSnapshotId(_) => Code::InvalidPath,
            RoutingError::SnapshotNotFound(_)
            | RoutingError::AmbiguousPrefix { .. }
            | RoutingError::SeveralWorkspaces(_)
            | RoutingError::NoRollback => Code::SnapshotNotFound,
            RoutingError::Pinned | RoutingError::AnotherRollback => Code::ConfirmationRequired,
            RoutingError::WriteConflict => Code::WriteLockConflict,
            RoutingError::Reload(_)
            | RoutingError::Overloaded
            | RoutingError::Panicked
            | RoutingError::Stopping
            | RoutingError::NotPrivileged => Code::InternalError,
        };
        Self { code, message: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};
    use cofferdam_storage::ckpt::Obstacle;
    use cofferdam_storage::path::RelPath;

    use super::*;

    #[track_caller]
    fn check(trouble: impl Into<Trouble>, code: Code, message: &str) {
        assert_eq!(Failure::from(trouble.into()), Failure { code, message: message.to_owned() });
    }

    #[test]
    fn what_the_engine_says_reaches_the_wire_with_its_code_and_the_texts_that_plug_ins_know() {
        let ws = || WorkspaceId::new("ws-00ab12").unwrap();
        let snapshot = || SnapshotId::new("one").unwrap();
        let io = |kind: ErrorKind| Error::io("reading a", kind.into());
        check(Error::WorkspaceNotFound(ws()), Code::WorkspaceNotFound, "workspace not found: ws-00ab12");
        check(Error::SnapshotNotFound(snapshot()), Code::SnapshotNotFound, "snapshot not found: one");
        check(
            Error::SnapshotExists(snapshot()),
            Code::SnapshotAlreadyExists,
            "snapshot id 'one' already exists in workspace",
        );
        check(
            Error::InsideWorkspace { workspace: ws(), path: "/p".into() },
            Code::AlreadyInitialized,
            "already inside workspace ws-00ab12 (/p)",
        );
        check(
            Error::InvalidPath("path does not exist: /x".to_owned()),
            Code::InvalidPath,
            "path does not exist: /x",
        );
        check(
            Error::SnapshotMissing(snapshot()),
            Code::SnapshotNotFound,
            "Snapshot 'one' subvolume is missing (data lost). Delete it with --force.",
        );
        check(
            Error::Busy,
            Code::WriteLockConflict,
            "Workspace has active write operations. Please wait and retry.",
        );
        check(
            io(ErrorKind::StorageFull),
            Code::DiskSpaceInsufficient,
            "insufficient disk space: reading a; free some and try again",
        );
        check(
            io(ErrorKind::QuotaExceeded),
            Code::DiskSpaceInsufficient,
            "insufficient disk space: reading a; free some and try again",
        );
        check(io(ErrorKind::PermissionDenied), Code::IoError, "reading a: permission denied");
        let obstacle = Obstacle { path: RelPath::new(b"a/b").unwrap(), why: "it is immutable".to_owned() };
        check(
            Error::Preflight(vec![obstacle]),
            Code::IoError,
            "rollback not begun, nothing was changed: a/b: it is immutable",
        );
        for error in [Error::WorkspaceReplaced("/p".into()), Error::WorkspaceGone("/p".into())] {
            let failure = Failure::from(error);
            assert_eq!(failure.code, Code::InvalidPath);
            assert!(failure.message.starts_with("/p "), "{failure}");
        }
        for error in [
            Error::Corrupt("x".to_owned()),
            Error::Catalog("x".to_owned()),
            Error::InvalidMetadata("x".to_owned()),
        ] {
            assert_eq!(Failure::from(error).code, Code::InternalError);
        }
        assert_eq!(Failure::from(Error::NothingToUndo).code, Code::SnapshotNotFound);
    }

    #[test]
    fn what_the_actors_refuse_reaches_the_wire_likewise() {
        let text = || "x".to_owned();
        check(RoutingError::WorkspaceNotFound(text()), Code::WorkspaceNotFound, "workspace not found: x");
        check(RoutingError::BlankPath, Code::InvalidPath, "workspace path is empty");
        check(RoutingError::SnapshotNotFound(text()), Code::SnapshotNotFound, "snapshot not found: x");
        check(
            RoutingError::AmbiguousPrefix { prefix: text(), matches: 3 },
            Code::SnapshotNotFound,
            "ambiguous snapshot prefix 'x': 3 matches",
        );
        check(
            RoutingError::SeveralWorkspaces(text()),
            Code::SnapshotNotFound,
            "snapshot 'x' matches in multiple workspaces, please specify --workspace/-w",
        );
        check(
            RoutingError::Pinned,
            Code::ConfirmationRequired,
            "Snapshot is pinned, use --force to confirm deletion",
        );
        check(
            RoutingError::AnotherRollback,
            Code::ConfirmationRequired,
            "another rollback is the newest by now; look which one it is, and ask again",
        );
        check(
            RoutingError::WriteConflict,
            Code::WriteLockConflict,
            "Workspace has active write operations. Please wait and retry.",
        );
        check(
            RoutingError::NoRollback,
            Code::SnapshotNotFound,
            "no rollback of this workspace since the daemon started",
        );
        check(RoutingError::Reload(text()), Code::InternalError, "Failed to reload config: x");
    }
}
