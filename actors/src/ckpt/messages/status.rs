//! How the daemon is doing.

use actix::Message;
use cofferdam_protocol::ckpt::StatusReport;
use cofferdam_storage::ckpt::FsUsage;
use cofferdam_storage::peer::Peer;

use crate::ckpt::Failure;

/// The daemon and one workspace, or all that the peer may see. Answered from memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<StatusReport, Failure>")]
pub struct WorkspaceStatus {
    /// Who asks.
    pub peer: Peer,
    /// Which workspace; without it, all.
    pub workspace: Option<String>,
}

/// Figures by which a client warns its user. Answered from memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<Advisory, Failure>")]
pub struct HealthAdvisory {
    /// Who asks.
    pub peer: Peer,
}

/// What [`HealthAdvisory`] answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advisory {
    /// Workspaces of the peer with more than 1000 snapshots.
    pub over_limit_workspaces: u32,
    /// Space on the filesystem that holds the store.
    pub usage: FsUsage,
}
