//! Settings.

use actix::Message;
use cofferdam_protocol::ckpt::ConfigReport;
use cofferdam_storage::peer::Peer;

use crate::ckpt::Failure;

/// The settings in effect. Answered from memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<ConfigReport, Failure>")]
pub struct GetConfig {
    /// Who asks.
    pub peer: Peer,
}

/// Reads the settings again and applies them at once. If they cannot be used, the old ones stay.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<(), Failure>")]
pub struct ReloadConfig {
    /// Who asks.
    pub peer: Peer,
}
