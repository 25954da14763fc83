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
            Error::SnapshotNotFound(_) | Error::SnapshotMissing(_) | Error::NothingToUndo => {
                Code::SnapshotNotFound
            }
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
            RoutingError::BlankPath | RoutingError::RelativePath(_) | RoutingError::InvalidSnapshotId(_) => {
                Code::InvalidPath
            }
            RoutingError::SnapshotNotFound(_)
            | RoutingError::AmbiguousPrefix { .. }
            | RoutingError::SeveralWorkspaces(_) => Code::SnapshotNotFound,
            RoutingError::Pinned => Code::ConfirmationRequired,
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
